package nn

import (
	"math"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/wasm/compiler"
)

// TestActivationsMatchTransformers holds every activation and its slope to what
// transformers' ACT2FN and autograd give in float64, on the Go backend and compiled:
// where they bend, and where a logistic function written by exp alone would be 0/0.
func TestActivationsMatchTransformers(t *testing.T) {
	at := []float32{-30, -9, -3, -1, -0.25, 0, 0.5, 1, 2.5, 9, 30}
	want := map[string][2][]float64{
		"relu": {{0, 0, 0, 0, 0, 0, 0.5, 1, 2.5, 9, 30}, {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1}},
		"gelu": {{0, 0, -0.004049694, -0.1586553, -0.1003234, 0, 0.3457312, 0.8413447, 2.484476, 9, 30},
			{0, 0, -0.01194565, -0.08331547, 0.3046266, 0.5, 0.8674951, 1.083315, 1.037611, 1, 1}},
		"gelu_new": {{0, 0, -0.003637392, -0.158808, -0.1003246, 0, 0.345714, 0.841192, 2.484916, 9, 30},
			{0, 0, -0.01158417, -0.08296408, 0.3046459, 0.5, 0.8673699, 1.082964, 1.037952, 1, 1}},
		"quick_gelu": {{0, -2.003178e-06, -0.01807131, -0.1542042, -0.09880035, 0, 0.3503884, 0.8457958, 2.465014, 8.999998, 30},
			{0, -3.186833e-06, -0.02454832, -0.06777961, 0.2934996, 0.5, 0.8792219, 1.06778, 1.044719, 1.000003, 1}},
		"silu": {{-2.807287e-12, -0.001110551, -0.1422776, -0.2689414, -0.1094559, 0, 0.3112297, 0.7310586, 2.310355, 8.998889, 30},
			{-2.713711e-12, -0.0009870196, -0.08810411, 0.07232949, 0.37629, 0.5, 0.7399612, 0.9276705, 1.099401, 1.000987, 1}},
	}
	for engine, be := range map[string]compute.Backend{"Go": nil, "compiled": compiler.New()} {
		for name, want := range want {
			n := len(at)
			prog, err := Compile(be, name, func(g *graph.Graph) ([]Param, []Output, error) {
				p := newParams(g)
				x := p.add("x", Input, dtypes.Float32, n)
				y := elementary{}.activation(x, name)
				slope := graph.Gradient(graph.ReduceAllSum(y), x)[0]
				return p.list, []Output{{Node: y}, {Node: slope}}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			b, err := prog.Buffer(prog.Params[0], at)
			if err != nil {
				t.Fatal(err)
			}
			out, err := prog.Run([]compute.Buffer{b})
			if err != nil {
				t.Fatal(err)
			}
			for i, what := range []string{"value", "slope"} {
				got, err := Floats(out[i], n)
				if err != nil {
					t.Fatal(err)
				}
				for j, w := range want[i] {
					if name == "relu" && at[j] == 0 && i == 1 {
						continue // any slope of the corner is right
					}
					if d := math.Abs(float64(got[j]) - w); !(d <= 2e-6) {
						t.Errorf("%s, %s: the %s at %v is %v, want %v", engine, name, what, at[j], got[j], w)
					}
				}
			}
		}
	}
}
