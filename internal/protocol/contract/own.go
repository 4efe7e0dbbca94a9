package contract

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/quant"
)

// Own is the noise that each device adds to its vector before it masks it, and what the
// room for it follows from. The zero value is none.
type Own struct {
	Noise  float64 // standard deviation over the norm bound of a unit's vector
	Delta  float64 // the job's, and its Rounds: beyond its room noise reaches with a hundredth of Delta at most
	Rounds uint64
}

// Vector puts a unit's vector together.
func (t Terms) Vector(l *quant.Lattice, count dp.CountCode, figures dp.FigureCode) (Vector, error) {
	v := Vector{Lattice: l, Count: count, Figures: figures, Groups: t.Job.Groups}
	if k := int64(max(1, v.Groups)); v.PartB2() > math.MaxInt64/(k*k) {
		return Vector{}, fmt.Errorf("%w: %s over %d values has symbols too large to add up %d groups of them", ErrUplink, t.Job.Uplink, l.Dim(), k)
	}
	o := t.Job.Own
	if o.Noise == 0 {
		return v, nil
	}
	var err error
	if v.Own, err = (dp.OwnNoise{Multiplier: o.Noise}).Variance(v.B2()); err != nil {
		return Vector{}, fmt.Errorf("%w: %s over %d values: %w", ErrUplink, t.Job.Uplink, l.Dim(), err)
	}
	// A sum of discrete Gaussians is subgaussian (Canonne, Kamath, Steinke 2020): beyond a
	// standard deviations it reaches with probability 2 exp(-a^2/2) at most. Five such
	// events in each coordinate of twice the rounds are to have delta/100 together. The
	// logarithm is a whole number to base 2, which every machine computes alike.
	events := 1000 * float64(v.Size()) * 2 * float64(o.Rounds) / o.Delta
	if !(o.Delta > 0) || !(events > 1) || math.IsInf(events, 1) {
		return Vector{}, fmt.Errorf("%w: own noise with delta %v over %d rounds", ErrUplink, o.Delta, o.Rounds)
	}
	_, exponent := math.Frexp(events)
	v.tail = math.Sqrt(2 * math.Ln2 * float64(exponent))
	return v, nil
}

// reach bounds what the noise of n devices comes to in one coordinate.
func (v Vector) reach(n int) int64 {
	if v.tail == 0 {
		return 0
	}
	return int64(math.Ceil(v.tail * math.Sqrt(v.Own.Float()) * math.Sqrt(float64(n))))
}

// room gives a configuration the room that vectors and noise take on the ring, and no more:
// what many devices' noise comes to grows with the root of their number.
func (t Terms) room(v Vector) (width, symbol, sum int) {
	symbol = int(v.Lattice.MaxSymbol()) * t.Job.Parts()
	if v.tail == 0 {
		return t.Width, symbol, 0
	}
	n := t.Job.Masking.ShardMax
	most := int64(n)*int64(symbol) + v.reach(n)
	width = max(t.fixed(), bits.Len64(2*uint64(most)))
	return width, symbol + int(v.reach(1)), int(min(most, math.MaxInt32))
}

// fixed is the width of a scheme that has one, 0 of the others.
func (t Terms) fixed() int {
	one, err := quant.Width(t.Scheme, 1)
	if err != nil || one == bits.Len64(2*uint64(t.Scheme.MaxSymbol())) {
		return 0
	}
	return one
}

// Bits is the width of a masked coordinate.
func (t Terms) Bits(v Vector) int {
	width, _, _ := t.room(v)
	return width
}

// checkNoisy is CheckSum where devices added noise: the same limits, and beside them what
// their noise may come to. Honest data passes but with a hundredth of delta in all of a
// job's rounds.
func (v Vector) checkNoisy(sum []int64, n, devices int) error {
	d, reach := v.Lattice.D(), v.reach(devices)
	var alarm *quant.SumRangeError
	within := func(at int, x, limit int64) {
		if x > limit || x < -limit {
			if alarm == nil {
				alarm = &quant.SumRangeError{Index: at, Value: x, Limit: limit, Survivors: n}
			}
			alarm.Count++
		}
	}
	square := 0.0
	for i, x := range sum[:d] {
		within(i, x, int64(v.Lattice.MaxSymbol())*int64(n)+reach)
		square += float64(x) * float64(x)
	}
	count := sum[d : d+v.Count.Coordinates]
	for i, x := range count {
		within(d+i, x, int64(v.Count.Symbol)*int64(n)+reach)
	}
	if alarm != nil {
		return alarm
	}
	if !v.checkFigures(sum[d+len(count):], n, reach) {
		return errFigures
	}
	for _, x := range count {
		if apart := x - sum[d]; apart > 2*reach || apart < -2*reach {
			return fmt.Errorf("%w: the coordinates of a shard's count do not agree", quant.ErrRange)
		}
	}
	// The squared norm of a subgaussian vector is beyond s^2 (d + 2 sqrt(d t) + 2 t) with
	// probability exp(-t) at most (Hsu, Kakade, Zhang 2012).
	t, size := v.tail*v.tail/2, float64(d)
	noise := v.Own.Float() * float64(devices) * (size + 2*math.Sqrt(size*t) + 2*t)
	most := float64(n)*math.Sqrt(float64(v.Lattice.B2())) + math.Sqrt(noise)
	if square > most*most*(1+1e-9) {
		return fmt.Errorf("%w: the norm of a shard's sum is more than %d vectors and their devices' noise can have", quant.ErrRange, n)
	}
	return nil
}
