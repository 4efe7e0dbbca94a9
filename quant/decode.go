package quant

import (
	"fmt"
	"math"
)

// CheckSum returns a *SumRangeError if a coordinate of the centre-lifted sum
// of one shard is larger than the survivors could have made it, and an error
// that wraps ErrLength if sum does not have D coordinates. It must see the
// exact sum, before noise.
func (l *Lattice) CheckSum(sum []int64, survivors int) error {
	if len(sum) != l.D() {
		return fmt.Errorf("%w: sum of %d coordinates, lattice has %d", ErrLength, len(sum), l.D())
	}
	if survivors < 0 {
		return fmt.Errorf("%w: %d survivors", ErrRange, survivors)
	}
	limit := int64(l.MaxSymbol()) * int64(survivors)
	var alarm *SumRangeError
	for i, t := range sum {
		if t > limit || t < -limit {
			if alarm == nil {
				alarm = &SumRangeError{Index: i, Value: t, Limit: limit, Survivors: survivors}
			}
			alarm.Count++
		}
	}
	if alarm != nil {
		return alarm
	}
	return nil
}

// DecodeMean turns the noisy sum of all shards into the estimate of the mean
// update, Dim values. nbar is the job's fixed expected cohort, not the number
// of survivors: dividing by what happened would leak it and break the
// guarantee. The sum is scaled by Delta/(nbar*erf(L/sqrt 2)), where erf makes
// up for what clipping coordinates at L standard deviations takes away, and
// rotated back. Errors wrap ErrLength, ErrRange or ErrNotFinite.
func (l *Lattice) DecodeMean(sum []int64, nbar float64) ([]float32, error) {
	if len(sum) != l.D() {
		return nil, fmt.Errorf("%w: sum of %d coordinates, lattice has %d", ErrLength, len(sum), l.D())
	}
	if !(nbar > 0) || math.IsInf(nbar, 0) {
		return nil, fmt.Errorf("%w: expected cohort %g, must be positive and finite", ErrRange, nbar)
	}
	scale := l.delta / (nbar * math.Erf(l.scheme.spec.l/math.Sqrt2))
	scale /= float64(l.rot.r)
	s := l.scratch.Get().(*scratch)
	defer l.scratch.Put(s)
	for i, t := range sum {
		s.tmp[i] = float32(float64(t) * scale)
	}
	l.rot.inverse(s.y, s.tmp)
	out := make([]float32, l.d)
	copy(out, s.y)
	for i, v := range out {
		if v-v != 0 {
			return nil, fmt.Errorf("%w: decoded value %d is %g", ErrNotFinite, i, v)
		}
	}
	return out, nil
}
