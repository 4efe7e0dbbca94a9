package program

import (
	"slices"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant/nf4"
)

// survivesNF4 reports whether a tensor's values are 4-bit codes already: then a
// device that keeps the codes trains against the weights that are evaluated and
// released, to the bit.
func survivesNF4(data []float32) bool {
	codes := make([]byte, nf4.CodesLen(len(data)))
	scales := make([]float32, nf4.Blocks(len(data), nf4.Block))
	if nf4.Encode(codes, scales, data, nf4.Block) != nil {
		return false
	}
	back := make([]float32, len(data))
	nf4.Decode(back, codes, scales, nf4.Block)
	return slices.Equal(back, data)
}

// Compactable returns the names of the base's matrices that devices keep as 4-bit codes: those that
// are codes already, or lose nothing by becoming codes.
func Compactable(base *model.Base) map[string]bool {
	names := map[string]bool{}
	for _, t := range base.Config.BaseTensors() {
		if len(t.Shape) != 2 {
			continue
		}
		if _, _, stored, err := base.StoredNF4(t.Name); err == nil && stored {
			names[t.Name] = true
		} else if data, err := base.Tensor(t.Name); err == nil && survivesNF4(data) {
			names[t.Name] = true
		}
	}
	return names
}
