package compiler_test

import (
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler"
)

// seldom is a step that chains matrix products up in every third step alone, and works with what they gave in all.
func seldom(g *graph.Graph, s *step) []*graph.Node {
	*s = step{}
	rnd := rand.New(rand.NewPCG(1, 2))
	add := func(name string, role compiler.Role, dims ...int) *graph.Node {
		p := &param{dtype: dtypes.Float32, dims: dims}
		p.Name, p.Role = name, role
		p.f32 = make([]float32, shapes.Make(p.dtype, dims...).Size())
		for i := range p.f32 {
			if len(dims) > 0 {
				p.f32[i] = float32(rnd.NormFloat64()) / 8
			}
		}
		s.params = append(s.params, p)
		return graph.Parameter(g, name, shapes.Make(p.dtype, dims...))
	}
	x := add("x", compiler.Input, 24, 20)
	w, kept, count := add("w", compiler.State, 24, 20), add("kept", compiler.State, 20, 20), add("count", compiler.State)
	next := graph.AddScalar(count, 1)
	due := graph.Equal(graph.Rem(next, graph.Scalar(g, dtypes.Float32, 3)), graph.ScalarZero(g, dtypes.Float32))
	square := graph.DotGeneral(w, []int{0}, nil, w, []int{0}, nil)
	for range 6 { // rounds of a repeat
		square = graph.MulScalar(graph.DotGeneral(square, []int{1}, nil, graph.AddScalar(square, 0.1), []int{0}, nil), 0.5)
	}
	now := graph.Where(graph.BroadcastToShape(due, kept.Shape()), square, kept)
	s.outputs = []compiler.Output{{Name: "sum"}, {Name: "w.new", State: "w"}, {Name: "kept.new", State: "kept"}, {Name: "count.new", State: "count"}}
	moved := graph.Sub(w, graph.MulScalar(graph.Add(x, graph.DotGeneral(w, []int{1}, nil, now, []int{0}, nil)), 0.01))
	return []*graph.Node{graph.ReduceAllSum(moved), moved, now, next}
}

// TestConditionsEqualAlways trains by a program that passes over what a step does not need, and by one that computes it
// every time: the bits must be the same, on every host and in every step.
func TestConditionsEqualAlways(t *testing.T) {
	for _, host := range []string{compiler.HostWazero, compiler.HostV8} {
		s := &step{}
		rec, err := compiler.Record(func(g *graph.Graph) []*graph.Node { return seldom(g, s) })
		if err != nil {
			t.Fatal(err)
		}
		bin, err := compiler.CompileGraph(rec, s.spec("seldom", host))
		if err != nil {
			t.Fatal(err)
		}
		flat, err := compiler.CompileGraph(rec, compiler.Flat(s.spec("seldom", host)))
		if err != nil {
			t.Fatal(err)
		}
		conditional := func(in *wasm.Instance) (n int, work uint64) {
			m := in.Program().Manifest()
			for _, c := range m.Calls() {
				if s := m.Segments[c.Segment]; s.When > 0 {
					n, work = n+1, work+s.FLOPs
				}
			}
			return n, work
		}
		if n, _ := conditional(instance(t, flat, s, wasm.Config{})); n > 0 {
			t.Fatalf("%d segments of the plain twin have a condition", n)
		}
		one := instance(t, bin, s, wasm.Config{})
		if n, work := conditional(one); n < 7 || work < 2*20*20*(24+6*20) || work > 2*20*20*(24+8*20) || len(one.Program().Manifest().Repeats) != 1 {
			t.Fatalf("%d segments of %d operations have a condition, %d repeats", n, work, len(one.Program().Manifest().Repeats))
		}
		for n := 1; n <= 7; n += 2 {
			want := steps(t, instance(t, flat, s, wasm.Config{Kernel: wasm.Twin}), n)
			for _, kernel := range wasm.Kernels() {
				if got := steps(t, instance(t, bin, s, wasm.Config{Kernel: kernel, Cores: 2}), n); got != want {
					t.Errorf("%s, %s: state %s after %d steps, want %s", host, kernel, got, n, want)
				}
			}
			if got := nodeSteps(t, bin, instance(t, bin, s, wasm.Config{}), n, 1); got != want {
				t.Errorf("%s, node: state %s after %d steps, want %s", host, got, n, want)
			}
		}
	}
}

// TestFusedConditionsEqualAlways is the same of fused programs, whose products have no code of their own.
func TestFusedConditionsEqualAlways(t *testing.T) {
	s := &step{}
	rec, err := compiler.Record(func(g *graph.Graph) []*graph.Node { return seldom(g, s) })
	if err != nil {
		t.Fatal(err)
	}
	spec := s.spec("seldom", compiler.HostWazero)
	spec.Fused = true
	bin, err := compiler.CompileGraph(rec, spec)
	if err != nil {
		t.Fatal(err)
	}
	flat, err := compiler.CompileGraph(rec, compiler.Flat(spec))
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 4; n++ {
		want := steps(t, instance(t, flat, s, wasm.Config{Kernel: "go"}), n)
		for _, kernel := range wasm.FusedKernels() {
			if got := steps(t, instance(t, bin, s, wasm.Config{Kernel: kernel, Cores: 2}), n); got != want {
				t.Errorf("%s: state %s after %d steps, want %s", kernel, got, n, want)
			}
		}
	}
}

// What a program gives is where its caller reads it, and no less a condition for that.
func TestConditionIsAnOutput(t *testing.T) {
	g := graph.NewGraph(compiler.New(), "given")
	x, n := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 1, 1)), graph.Parameter(g, "n", shapes.Make(dtypes.Float32))
	due := graph.Equal(n, graph.ScalarZero(g, dtypes.Float32))
	y := graph.Where(graph.BroadcastToShape(due, x.Shape()), graph.DotGeneral(x, []int{1}, nil, x, []int{0}, nil), x)
	if err := g.Compile(y, due); err != nil {
		t.Fatal(err)
	}
	for n, want := range []float32{9, 3} {
		out := g.Run([][]float32{{3}}, float32(n))
		if got, now := out[0].Value().([][]float32)[0][0], out[1].Value().(bool); got != want || now != (n == 0) {
			t.Errorf("%d: %v, %v, want %v", n, got, now, want)
		}
	}
}
