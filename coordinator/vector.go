package coordinator

import (
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/contract"
)

// vector of a round.
func (t *terms) vector(rank int, clip float64, rotation [32]byte) (contract.Vector, error) {
	l, err := t.contract.Lattice(t.layout.Size(rank), clip, rotation)
	if err != nil || t.clipping == nil {
		return contract.Vector{Lattice: l}, err
	}
	count, err := dp.NewCountCode(l.B2(), l.MaxSymbol(), t.z, t.countNoise())
	return contract.Vector{Lattice: l, Count: count}, err
}

// decode turns the noisy sum into the mean update of the expected number of
// units and the clip norm of the next round. kept is the share of the units that the
// sum is of.
func (t *terms) decode(v contract.Vector, sum []int64, kept float64) (mean []float32, clip float64, err error) {
	d, units := v.Lattice.D(), kept*t.units
	if mean, err = v.Lattice.DecodeMean(sum[:d], units); err != nil || t.clipping == nil {
		return mean, v.Lattice.Clip(), err
	}
	clip, err = t.clipping.Next(v.Lattice.Clip(), v.Count.Decode(sum[d:]), units)
	return mean, clip, err
}
