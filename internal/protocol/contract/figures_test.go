package contract

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/secagg"
)

// figured is a vector with figures.
func figured(t *testing.T, figures dp.FigureCode) Vector {
	t.Helper()
	terms, err := Job{Uplink: "nf4", Masking: secagg.Config{ShardMax: 8}}.Terms()
	if err == nil {
		var l *quant.Lattice
		if l, err = terms.Lattice(50, 1, [32]byte{1}); err == nil {
			var v Vector
			if v, err = terms.Vector(l, dp.CountCode{Coordinates: 2, Symbol: 3}, figures); err == nil {
				return v
			}
		}
	}
	t.Fatal(err)
	return Vector{}
}

// What units find comes back as their mean; what is beyond the bounds counts as these.
func TestHear(t *testing.T) {
	c, source := dp.FigureCode{Coordinates: 50, Symbol: 100}, rand.NewChaCha8([32]byte{3})
	sum, one := make([]int64, c.Size()), make([]int32, c.Size())
	all := []Metrics{{0.5, 1, 4}, {1, 0, 1}, {1e9, 0.5, math.NaN()}, {math.NaN(), 0.25, 1e9}, {0, 2, 1e-9}}
	for _, s := range all {
		if err := c.Encode(one, s.Figures(4), source); err != nil {
			t.Fatal(err)
		}
		for i, v := range one {
			sum[i] += int64(v)
		}
	}
	h, ok := DecodeMetrics(c, sum, 0, 4)
	bound := LossBound(4)
	loss := (0.5 + 1 + bound + bound/2 + 0) / 5 // what is not a number is in the middle
	speed := math.Exp2((2 + 0 + 1 + 9 - 7) / 5.0)
	if !ok || h.Units.Mean != 5 || math.Abs(h.Loss.Mean-loss) > 0.002 || math.Abs(h.Right.Mean-(1+0+0.5+0.25+1)/5) > 0.001 ||
		math.Abs(h.Speed.Mean/speed-1) > 0.01 || h.Loss.Noise != 0 || h.Speed.Noise != 1 {
		t.Errorf("heard %+v, want a loss of %v and a speed of %v", h, loss, speed)
	}
	if h, ok := DecodeMetrics(c, make([]int64, c.Size()), 5, 4); ok {
		t.Errorf("of nobody %+v was heard", h)
	}
	if h, _ := DecodeMetrics(c, sum, 60, 4); !(h.Right.Noise > 0) || h.Right.Noise > 0.01 {
		t.Errorf("the noise is %v", h.Right.Noise)
	}
}

// One who is within the code moves a mean by its bound over the units; beyond the code a
// shard's sum must be one that its units can have, or all of it is dropped.
func TestFiguresOfALiar(t *testing.T) {
	c, source := dp.FigureCode{Coordinates: 3, Symbol: 7}, rand.NewChaCha8([32]byte{4})
	v := figured(t, c)
	const units = 8
	at := v.Size() - c.Size()
	honest := func(said ...Metrics) []int64 {
		sum, one := make([]int64, v.Size()), make([]int32, c.Size())
		sum[at-1], sum[at-2] = int64(len(said))*3, int64(len(said))*3
		for _, s := range said {
			if err := c.Encode(one, s.Figures(2), source); err != nil {
				t.Fatal(err)
			}
			for i, x := range one {
				sum[at+i] += int64(x)
			}
		}
		return sum
	}
	all := make([]Metrics, units)
	for i := range all {
		all[i] = Metrics{Loss: 0.3, Right: 0.9, Speed: 2}
	}
	sum := honest(all...)
	if err := v.CheckSum(sum, units, units); err != nil {
		t.Fatal(err)
	}
	before, _ := DecodeMetrics(c, sum[at:], 0, 2)
	all[0] = Metrics{Loss: 1e30, Right: -1e30, Speed: 1e30}
	sum = honest(all...)
	after, _ := DecodeMetrics(c, sum[at:], 0, 2)
	const rounding = 0.06 // of 8 units, 1/21 each at most
	if err := v.CheckSum(sum, units, units); err != nil || before.Right.Mean-after.Right.Mean > (1+rounding)/units+rounding ||
		(after.Loss.Mean-before.Loss.Mean)/LossBound(2) > (1+rounding)/units+rounding {
		t.Errorf("%+v became %+v, %v", before, after, err)
	}
	for name, lie := range map[string]func(f []int64){
		"more than all units can say":      func(f []int64) { f[3], f[4], f[5] = 60, 60, 60 },
		"a unit that counts twice":         func(f []int64) { f[0], f[1], f[2] = 63, 63, 63 },
		"less than nobody":                 func(f []int64) { f[0], f[1], f[2] = -7, -7, -7 },
		"part of a unit":                   func(f []int64) { f[0], f[1], f[2] = 50, 50, 50 },
		"coordinates that disagree":        func(f []int64) { f[0] -= 7 },
		"and those of another figure":      func(f []int64) { f[6], f[7] = 30, -30 },
		"more said than there is to say":   func(f []int64) { f[0], f[1], f[2], f[9], f[10], f[11] = 7, 7, 7, 21, 21, 21 },
		"as much, with the opposite sign":  func(f []int64) { f[0], f[1], f[2], f[9], f[10], f[11] = 7, 7, 7, -21, -21, -21 },
		"a number near the end of numbers": func(f []int64) { f[4] = math.MaxInt32 },
	} {
		sum := honest(all...)
		lie(sum[at:])
		if err := v.CheckSum(sum, units, units); !errors.Is(err, quant.ErrRange) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
