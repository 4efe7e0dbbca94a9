package leak

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// embeddings are what the first layer of a base reads: what its attacker knows of each
// token at each place.
type embeddings struct {
	p *probe

	words, positions, types []float32
	weight, bias            []float32 // of the norm
	centred                 bool      // the norm takes the mean away
	middle                  []float32 // mean of the positions
	mean                    []float64 // of all tokens' inputs
}

// firstMaps are the linear maps that read embeddings, by the base's names.
func (e *embeddings) firstMaps() []string {
	return e.p.Base.Config.Entrance().Maps
}

// load reads the tables.
func (e *embeddings) load() (err error) {
	c := e.p.Base.Config
	read := func(name string) []float32 {
		var values []float32
		if err == nil && name != "" {
			values, err = e.p.Base.Tensor(name)
		}
		return values
	}
	h := c.HiddenSize
	in := c.Entrance()
	e.words, e.positions, e.types = read(in.Words), read(in.Positions), read(in.Types)
	e.weight, e.bias, e.centred = slices.Clone(read(in.Gain)), read(in.Bias), in.Centred
	if in.GainsFromOne {
		for i := range e.weight {
			e.weight[i]++
		}
	}
	if err != nil {
		return err
	}
	if e.positions != nil {
		e.positions = e.positions[c.FirstPosition()*h:]
		e.middle = make([]float32, h)
		n := min(e.p.Sequence, e.places())
		for at := range n {
			for i := range h {
				e.middle[i] += e.positions[at*h+i] / float32(n)
			}
		}
	}
	e.mean = make([]float64, h)
	x := make([]float64, h)
	zero := make([]float64, h)
	sum := make([]float64, h)
	e.mean = zero
	for v := range c.VocabSize {
		e.at(x, v, -1)
		for i := range sum {
			sum[i] += x[i] / float64(c.VocabSize)
		}
	}
	e.mean = sum
	return nil
}

// places is how many places of a text have embeddings of their own.
func (e *embeddings) places() int { return len(e.positions) / e.p.Base.Config.HiddenSize }

// at writes what the first layer reads of a token at a place, less the mean of all; place
// -1 is any.
func (e *embeddings) at(x []float64, token, place int) {
	h := len(x)
	c := e.p.Base.Config
	mean, square := 0.0, 0.0
	for i := range x {
		x[i] = float64(e.words[token*h+i])
		switch {
		case e.positions == nil:
		case place < 0:
			x[i] += float64(e.middle[i])
		default:
			x[i] += float64(e.positions[place*h+i])
		}
		if e.types != nil {
			x[i] += float64(e.types[i])
		}
		mean += x[i] / float64(h)
	}
	if !e.centred {
		mean = 0
	}
	for i := range x {
		square += (x[i] - mean) * (x[i] - mean) / float64(h)
	}
	scale := 1 / math.Sqrt(square+c.LayerNormEps)
	for i := range x {
		x[i] = (x[i] - mean) * scale * float64(e.weight[i])
		if e.bias != nil {
			x[i] += float64(e.bias[i])
		}
		x[i] -= e.mean[i]
	}
}

// withoutMean takes out of a gradient's rows what lies along the mean of all tokens: it is
// of every text.
func (e *embeddings) withoutMean(g *mat.Dense) *mat.Dense {
	square := dot(e.mean, e.mean)
	if square == 0 {
		return g
	}
	out := mat.DenseCopyOf(g)
	n, _ := out.Dims()
	for i := range n {
		row := out.RawRowView(i)
		along := dot(row, e.mean) / square
		for k := range row {
			row[k] -= along * e.mean[k]
		}
	}
	return out
}
