package nn

import (
	"math"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// TestHandWrittenGradients holds vocabularyLoss and smoothGelu against autodiff
// of the plain forms.
func TestHandWrittenGradients(t *testing.T) {
	const k, u, h = 5, 7, 4
	prog, err := Compile(nil, "gradients", func(g *graph.Graph) ([]Param, []Output, error) {
		p := newParams(g)
		x := p.add("x", Input, dtypes.Float32, k, h)
		words := p.add("words", Input, dtypes.Float32, u, h)
		bias := p.add("bias", Input, dtypes.Float32, u)
		w := p.add("w", Input, dtypes.Float32, k)
		targets := p.add("targets", Input, dtypes.Int32, k)
		var outs []Output
		for _, smooth := range []bool{false, true} {
			f := elementary{smooth}
			state := f.activation(x, "gelu_new")
			var loss, root *graph.Node
			if smooth {
				loss, root = elementary{smooth: true}.vocabularyLoss(state, words, bias, targets, w)
			} else {
				loss = weightedMean(f.surprise(linear(state, words, bias), targets), w)
				root = loss
			}
			outs = append(outs, Output{Node: loss}, Output{Node: graph.MulScalar(state, 1)})
			for _, g := range graph.Gradient(root, x, words, bias) {
				outs = append(outs, Output{Node: g})
			}
		}
		return p.list, outs, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	fill := func(n int, scale float64) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(scale * math.Sin(float64(i*i)+float64(n)))
		}
		return v
	}
	values := []any{fill(k*h, 3), fill(u*h, 1.5), fill(u, 1), []float32{1, 0.5, 0, 2, 1}, []int32{0, 6, 3, 3, 2}}
	var in []compute.Buffer
	for i, p := range prog.Params {
		b, err := prog.Buffer(p, values[i])
		if err != nil {
			t.Fatal(err)
		}
		in = append(in, b)
	}
	res, err := prog.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	sizes := []int{1, k * h, k * h, u * h, u}
	for i, n := range sizes {
		a, err := Floats(res[i], n)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Floats(res[len(sizes)+i], n)
		if err != nil {
			t.Fatal(err)
		}
		for j := range a {
			if math.Abs(float64(a[j]-b[j])) > 2e-6 {
				t.Errorf("%s: autodiff %v, written out %v", []string{"loss", "state", "d state", "d words", "d bias"}[i], a, b)
				break
			}
		}
	}
}
