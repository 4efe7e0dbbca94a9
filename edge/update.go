package edge

import (
	"errors"
	"fmt"
	"io"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/model/trainer"
	"github.com/starling-fl/starling/quant"
)

// ErrDiverged is an update that is not finite.
var ErrDiverged = trainer.ErrDiverged

// update is a round's vector as it grows: the sum of what this device's units
// contribute, each trained, clipped and quantized by itself, so that no unit
// moves it by more than the sensitivity that the noise is made for, and no group of
// a unit by more than its share of that.
type update struct {
	contract.Vector
	sum []int32 // of Size symbols
	one []int32 // a unit's, or one of its groups', on its way into sum

	rounding io.Reader
}

func newUpdate(v contract.Vector, rounding io.Reader) *update {
	return &update{Vector: v, sum: make([]int32, v.Size()), one: make([]int32, v.Size()), rounding: rounding}
}

// add takes the trained difference of a unit, or of a group, which the lattice clips as it rounds
// it, and which counts by its weight, and what was found in a job of so many labels; it returns the
// norm that the difference had.
func (u *update) add(delta []float32, weight float64, measured *contract.Metrics, labels int) (norm float64, err error) {
	defer clear(u.one)
	encoded, err := u.Lattice.EncodeWeighted(u.one[:u.Lattice.D()], delta, weight, u.rounding)
	if errors.Is(err, quant.ErrNotFinite) {
		return 0, fmt.Errorf("%w: %w", ErrDiverged, err)
	} else if err != nil {
		return 0, err
	}
	behind := u.one[u.Lattice.D():]
	u.Count.Encode(behind, encoded.Norm <= u.Lattice.Clip())
	if err := u.encode(behind[u.Count.Coordinates:], measured, labels); err != nil {
		return 0, err
	}
	return encoded.Norm, dp.AddUnit(u.sum, u.one, u.PartB2())
}
