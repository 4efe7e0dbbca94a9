package compiler_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler"
	"github.com/starling-fl/starling/wasm/compiler/ir"
	"github.com/starling-fl/starling/wasm/compiler/plan"
	"github.com/starling-fl/starling/wasm/cost"
)

// predicted holds what the emitter counts against what the verifier proves of the bytes,
// which share the table of costs and nothing else.
func predicted(t *testing.T, g *ir.Graph, spec compiler.Spec) {
	t.Helper()
	program, costs, err := compiler.Predict(g, spec)
	if err != nil {
		t.Fatal(err)
	}
	r, err := wasm.Verify(program, wasm.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Segments) != len(costs) {
		t.Fatalf("%d segments, %d predicted", len(r.Segments), len(costs))
	}
	for i, s := range r.Segments {
		if s.Cost != costs[i] {
			t.Errorf("segment %d costs %d units, predicted %d", i, s.Cost, costs[i])
		}
	}
}

func TestPredictedCostIsTheProvedOne(t *testing.T) {
	for name, b := range trainedToys() {
		for _, host := range []string{compiler.HostWazero, compiler.HostV8} {
			t.Run(name+"/"+host, func(t *testing.T) {
				var s step
				g, err := compiler.Record(func(g *graph.Graph) []*graph.Node { return b.build(g, &s) })
				if err != nil {
					t.Fatal(err)
				}
				predicted(t, g, s.spec("cost", host))
			})
		}
	}
	for name, build := range cases {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				b := compiler.Recorder()
				bl := b.Builder(name)
				g := &gen{Rand: rand.New(rand.NewPCG(seed, 1)), fn: bl.Main(), b: b}
				y := build(g)
				if err := g.fn.Return([]compute.Value{y}, nil); err != nil {
					t.Fatal(err)
				}
				recorded := compiler.Recorded(must(bl.Compile()))
				if words(recorded) {
					predicted(t, recorded, compiler.Spec{Name: "cost", Host: compiler.HostWazero, Outputs: []compiler.Output{{Name: "y"}}})
				}
			}
		})
	}
}

// words reports whether a graph's parameters and outputs are what programs take and give.
func words(g *ir.Graph) bool {
	for _, n := range append(append([]*ir.Node(nil), g.Params...), g.Outputs...) {
		if n.DType != ir.F32 && n.DType != ir.I32 {
			return false
		}
	}
	return true
}

// What a device would refuse is refused where it is compiled: here one call of 2^28 comparisons.
func TestSegmentsBeyondTheLimitDoNotCompile(t *testing.T) {
	const n = 1 << 14
	g, err := compiler.Record(func(g *graph.Graph) []*graph.Node {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 1, n, 1))
		return []*graph.Node{graph.MaxPool(x).Window(n).Strides(1).PadSame().Done()}
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = compiler.CompileGraph(g, compiler.Spec{Name: "long", Host: compiler.HostWazero, Outputs: []compiler.Output{{Name: "y"}}})
	if err == nil || !strings.Contains(err.Error(), "devices run at most 1073741824") {
		t.Errorf("compiled: %v", err)
	}
}

// What the planner holds against storing a value is what computing it again costs.
func TestWeightsAreCosts(t *testing.T) {
	const n = 4096
	each := func(f func(x, y *graph.Node) *graph.Node) float64 {
		g, err := compiler.Record(func(g *graph.Graph) []*graph.Node {
			return []*graph.Node{f(graph.Parameter(g, "x", shapes.Make(dtypes.Float32, n)), graph.Parameter(g, "y", shapes.Make(dtypes.Float32, n)))}
		})
		if err != nil {
			t.Fatal(err)
		}
		_, costs, err := compiler.Predict(g, compiler.Spec{Name: "cost", Host: compiler.HostWazero, Outputs: []compiler.Output{{Name: "z"}}})
		if err != nil {
			t.Fatal(err)
		}
		var sum uint64
		for _, c := range costs {
			sum += c
		}
		return float64(sum) / n
	}
	one := func(f func(x *graph.Node) *graph.Node) func(x, y *graph.Node) *graph.Node {
		return func(x, y *graph.Node) *graph.Node { return f(x) }
	}
	plain, addition := each(graph.Add), float64(cost.Plain)/4
	plainOne := each(one(graph.Neg))
	for op, f := range map[ir.Op]func(x, y *graph.Node) *graph.Node{
		ir.Exp: one(graph.Exp), ir.Log: one(graph.Log), ir.Tanh: one(graph.Tanh), ir.Erf: one(graph.Erf), ir.Logistic: one(graph.Sigmoid),
		ir.Sin: one(graph.Sin), ir.Cos: one(graph.Cos), ir.Expm1: one(graph.Expm1), ir.Log1p: one(graph.Log1P), ir.Sqrt: one(graph.Sqrt),
		ir.Rsqrt: one(graph.Rsqrt), ir.Abs: one(graph.Abs), ir.Div: graph.Div, ir.Rem: graph.Mod, ir.Pow: graph.Pow, ir.Mul: graph.Mul,
	} {
		without := plainOne
		if op == ir.Div || op == ir.Rem || op == ir.Pow || op == ir.Mul {
			without = plain
		}
		got, want := float64(plan.Weight(op)), 1+(each(f)-without)/addition
		if got < want*0.9 || got > want*1.1 {
			t.Errorf("%v weighs %v additions, its code costs %.1f", op, got, want)
		}
	}
}
