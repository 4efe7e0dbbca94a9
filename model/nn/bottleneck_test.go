package nn

import (
	"math"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/model"
)

// Compacter's matrix is the dense sum of Kronecker products.
func TestFactoredIsTheKroneckerSum(t *testing.T) {
	const n, out, in = 4, 3, 5
	a, s, u := make([]float32, n*n*n), make([]float32, n*out), make([]float32, n*in)
	for _, v := range [][]float32{a, s, u} {
		for i := range v {
			v[i] = float32(math.Sin(float64(7*i + len(v))))
		}
	}
	prog, err := Compile(nil, "kronecker", func(g *graph.Graph) ([]Param, []Output, error) {
		p := newParams(g)
		p.add(model.KroneckerA, State, dtypes.Float32, n, n, n)
		p.add("x"+model.FactorLeft, State, dtypes.Float32, n, out)
		p.add("x"+model.FactorRight, State, dtypes.Float32, n, in)
		return p.list, []Output{{Name: "w", Node: p.factored("x")}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	state := map[string][]float32{model.KroneckerA: a, "x" + model.FactorLeft: s, "x" + model.FactorRight: u}
	got := runOnce(t, prog, state, n*out*n*in)
	for row := range n * out {
		for col := range n * in {
			want := 0.0
			for i := range n {
				want += float64(a[(i*n+row/out)*n+col/in]) * float64(s[i*out+row%out]) * float64(u[i*in+col%in])
			}
			if d := math.Abs(want - float64(got[row*n*in+col])); d > 1e-5 {
				t.Fatalf("W[%d,%d] is off by %v", row, col, d)
			}
		}
	}
}

func runOnce(t *testing.T, p *Program, state map[string][]float32, n int) []float32 {
	t.Helper()
	buffers := make([]compute.Buffer, len(p.Params))
	for i, param := range p.Params {
		var err error
		if buffers[i], err = p.Buffer(param, state[param.Name]); err != nil {
			t.Fatal(err)
		}
	}
	res, err := p.Run(buffers)
	if err != nil {
		t.Fatal(err)
	}
	v, err := Floats(res[0], n)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
