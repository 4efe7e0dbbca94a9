package coordinator

import (
	"fmt"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/quant"
)

// vector is what one unit of privacy (a device, or a provider in one) adds to a
// round: the lattice's symbols and behind them, in a job that adapts the clip
// norm, the count of those within it. One noise draw covers all of it.
type vector struct {
	lattice *quant.Lattice
	count   dp.CountCode
}

// vector of a round.
func (t *terms) vector(rank int, clip float64, rotation [32]byte) (vector, error) {
	l, err := quant.NewLattice(t.scheme, t.layout.Size(rank), clip, rotation)
	if err != nil || t.clipping == nil {
		return vector{lattice: l}, err
	}
	count, err := dp.NewCountCode(l.B2(), l.MaxSymbol(), t.z, t.countNoise())
	return vector{l, count}, err
}

// size is the number of coordinates.
func (v vector) size() int { return v.lattice.D() + v.count.Coordinates }

// b2 bounds the squared integer norm of one unit's vector: the sensitivity.
func (v vector) b2() int64 { return v.lattice.B2() + v.count.B2() }

// checkSum refuses a shard's exact sum that no honest devices could have made,
// n being the most units that they hold together.
func (v vector) checkSum(sum []int64, n int) error {
	if len(sum) != v.size() {
		return fmt.Errorf("%w: sum of %d coordinates, the round has %d", quant.ErrLength, len(sum), v.size())
	}
	d := v.lattice.D()
	if err := v.lattice.CheckSum(sum[:d], n); err != nil {
		return err
	}
	limit := int64(v.count.Symbol) * int64(n)
	for i, x := range sum[d:] {
		if x > limit || x < -limit {
			return &quant.SumRangeError{Index: d + i, Value: x, Limit: limit, Survivors: n, Count: 1}
		}
	}
	return nil
}

// decode turns the noisy sum into the mean update of the expected number of
// units and the clip norm of the next round.
func (t *terms) decode(v vector, sum []int64) (mean []float32, clip float64, err error) {
	d := v.lattice.D()
	if mean, err = v.lattice.DecodeMean(sum[:d], t.units); err != nil || t.clipping == nil {
		return mean, v.lattice.Clip(), err
	}
	clip, err = t.clipping.Next(v.lattice.Clip(), v.count.Decode(sum[d:]), t.units)
	return mean, clip, err
}
