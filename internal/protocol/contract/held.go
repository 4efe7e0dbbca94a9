package contract

import (
	"iter"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
)

// HeldSlices is the number of slices that a device keeps and that a coordinator makes differences to.
const HeldSlices = 3

// Slice is an adapter's values at a rank, as devices decode them.
type Slice struct {
	Rank   int
	Values []float32
}

// Held are the slices that a device may still hold, newest first. The zero value
// holds none. Not safe for concurrent use.
type Held struct{ slices []Slice }

// Remember adds a slice, unless it is the newest already; the oldest of more than
// HeldSlices goes. The caller must not change its values.
func (h *Held) Remember(s Slice) {
	if len(h.slices) > 0 && h.slices[0].Rank == s.Rank && quant.Digest(h.slices[0].Values) == quant.Digest(s.Values) {
		return
	}
	h.slices = append([]Slice{s}, h.slices[:min(len(h.slices), HeldSlices-1)]...)
}

// At yields the slices held at a rank, newest first: those of that rank, and larger ones cut down to it. An error
// ends it.
func (h *Held) At(l *model.Layout, rank int) iter.Seq2[[]float32, error] {
	return func(yield func([]float32, error) bool) {
		for _, s := range h.slices {
			if s.Rank < rank {
				continue
			}
			values := s.Values
			if s.Rank > rank {
				a := model.NewAdapter(l, 0)
				if err := a.SetSlice(s.Rank, s.Values); err != nil {
					yield(nil, err)
					return
				}
				values = a.Slice(rank)
			}
			if !yield(values, nil) {
				return
			}
		}
	}
}
