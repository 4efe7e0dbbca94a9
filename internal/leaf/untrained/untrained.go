// Package untrained makes small bases for tests, whose weights a seed gives.
package untrained

import (
	"strings"

	"github.com/starling-fl/starling/model"
)

// Tensors fills a configuration's tensors as an untrained encoder has
// them; scale widens matrices so that attention is not flat.
func Tensors(c model.Config, seed uint64, scale float32) []model.Tensor {
	var ts []model.Tensor
	state := seed
	next := func() float32 { // uniform in -1..1
		state = state*6364136223846793005 + 1442695040888963407
		return float32(int64(state>>40)-1<<23) / (1 << 23)
	}
	for _, s := range c.BaseTensors() {
		d := make([]float32, model.Elements(s.Shape))
		for i := range d {
			switch {
			case len(s.Shape) == 2:
				d[i] = scale * next()
			case strings.HasSuffix(s.Name, "weight"):
				d[i] = 1 + 0.1*next()
			default:
				d[i] = 0.1 * next()
			}
		}
		ts = append(ts, model.Tensor{Name: s.Name, Shape: s.Shape, Data: d})
	}
	return ts
}
