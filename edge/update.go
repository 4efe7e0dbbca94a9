package edge

import (
	"errors"
	"fmt"
	"io"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/contract"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/trainer"
)

// ErrDiverged is an update that is not finite.
var ErrDiverged = trainer.ErrDiverged

// update is a round's vector as it grows: the sum of what this device's units
// contribute, each trained, clipped and quantized by itself, so that no unit
// moves it by more than the sensitivity that the noise is made for.
type update struct {
	lattice *quant.Lattice
	count   dp.CountCode // of the units within the clip norm; zero: not asked for
	figures dp.FigureCode
	sum     []int32 // lattice.D() symbols and behind them the count's and the figures'
	one     []int32 // a unit's, on its way into sum

	rounding io.Reader
}

func newUpdate(l *quant.Lattice, count dp.CountCode, figures dp.FigureCode, rounding io.Reader) *update {
	size := l.D() + count.Coordinates + figures.Size()
	return &update{lattice: l, count: count, figures: figures, sum: make([]int32, size), one: make([]int32, size), rounding: rounding}
}

// add takes a unit's trained difference, which the lattice clips as it rounds it, and which
// counts by its weight, and what the unit found in a job of so many labels; it returns the
// norm that the difference had.
func (u *update) add(delta []float32, weight float64, measured *contract.Metrics, labels int) (norm float64, err error) {
	defer clear(u.one)
	encoded, err := u.lattice.EncodeWeighted(u.one[:u.lattice.D()], delta, weight, u.rounding)
	if errors.Is(err, quant.ErrNotFinite) {
		return 0, fmt.Errorf("%w: %w", ErrDiverged, err)
	} else if err != nil {
		return 0, err
	}
	behind := u.one[u.lattice.D():]
	u.count.Encode(behind, encoded.Norm <= u.lattice.Clip())
	if err := u.encode(behind[u.count.Coordinates:], measured, labels); err != nil {
		return 0, err
	}
	return encoded.Norm, dp.AddUnit(u.sum, u.one, u.lattice.B2()+u.count.B2()+u.figures.B2())
}
