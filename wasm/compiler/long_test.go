package compiler_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler"
)

// A step of thirteen seconds has segments that the loader takes.
func TestLongStepsLoad(t *testing.T) {
	const n = 1024
	g, err := compiler.Record(func(g *graph.Graph) []*graph.Node {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, n, n))
		y := x
		for range 320 { // 7e11 operations
			y = graph.Tanh(graph.DotGeneral(y, []int{1}, nil, x, []int{0}, nil))
		}
		return []*graph.Node{y}
	})
	if err != nil {
		t.Fatal(err)
	}
	bin, err := compiler.CompileGraph(g, compiler.Spec{Name: "long", Host: compiler.HostWazero,
		Params: []compiler.Param{{Name: "x", Role: compiler.Input}}, Outputs: []compiler.Output{{Name: "y"}}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := wasm.Load(t.Context(), bin, wasm.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if got := len(p.Manifest().Calls()); got < 200 {
		t.Errorf("%d segments: a step could not be stopped", got)
	}
}
