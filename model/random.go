package model

import (
	"math"
	"math/rand/v2"
	"strings"
)

// RandomBase is an untrained base of a configuration, as transformers starts one:
// matrices and tables are normal with deviation 0.02, norms one, biases zero,
// convolutions of recordings by how many values each sums up. The same
// seed gives the same base. tokenizer is tokenizer.json; nil for a base of images.
func RandomBase(c Config, seed uint64, tokenizer []byte) (*Base, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	var tensors []Tensor
	for _, s := range c.BaseTensors() {
		t := Tensor{s.Name, s.Shape, make([]float32, Elements(s.Shape))}
		for i := range t.Data {
			switch {
			case strings.HasSuffix(s.Name, ".bias"):
			case len(s.Shape) == 1:
				t.Data[i] = 1
			case strings.Contains(s.Name, "conv") && len(s.Shape) == 3: // He et al. 2015
				t.Data[i] = float32(math.Sqrt(2/float64(s.Shape[1]*s.Shape[2])) * rng.NormFloat64())
			default:
				t.Data[i] = float32(0.02 * rng.NormFloat64())
			}
		}
		tensors = append(tensors, t)
	}
	return NewBase(c, tensors, tokenizer, F32)
}
