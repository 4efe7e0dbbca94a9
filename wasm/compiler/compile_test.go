package compiler_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler"
)

// TestGradientsAgainstCentralDifferences holds updates against differences of the program's own loss.
func TestGradientsAgainstCentralDifferences(t *testing.T) {
	b := bertToy
	bin, s := program(t, b, compiler.HostWazero)
	in := instance(t, bin, s, wasm.Config{})
	loss := func() float64 {
		if err := in.Step(context.Background()); err != nil {
			t.Fatal(err)
		}
		var l [1]float32
		if err := in.ReadFloat32("loss", l[:]); err != nil {
			t.Fatal(err)
		}
		return float64(l[0])
	}
	reset := func() {
		for _, p := range s.params {
			if p.Role == compiler.State {
				if err := in.WriteFloat32(p.Name, p.f32); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, p := range s.params {
		if p.Role != compiler.State {
			continue
		}
		reset()
		loss()
		after := make([]float32, len(p.f32))
		if err := in.ReadFloat32(p.Name, after); err != nil {
			t.Fatal(err)
		}
		// Along the gradient itself the difference is largest beside the rounding of the loss.
		grad, norm := make([]float64, len(after)), 0.0
		for i := range after {
			grad[i] = (float64(p.f32[i]) - float64(after[i])) / 100 // the learning rate
			norm += grad[i] * grad[i]
		}
		norm = math.Sqrt(norm)
		h := 5e-3
		at := func(sign float64) float64 {
			reset()
			moved := make([]float32, len(after))
			for i := range moved {
				moved[i] = p.f32[i] + float32(sign*h*grad[i]/norm)
			}
			if err := in.WriteFloat32(p.Name, moved); err != nil {
				t.Fatal(err)
			}
			return loss()
		}
		if d := (at(1) - at(-1)) / (2 * h); math.Abs(d-norm) > 0.02*norm+1e-4 {
			t.Errorf("%s: slope %.5f along the gradient, whose norm is %.5f", p.Name, d, norm)
		}
	}
}

// TestCompileErrors tries specifications that do not fit the graph.
func TestCompileErrors(t *testing.T) {
	build := func(g *graph.Graph) []*graph.Node {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 4))
		w := graph.Parameter(g, "w", shapes.Make(dtypes.Float32, 4))
		return []*graph.Node{graph.ReduceAllSum(graph.Mul(x, w)), graph.Add(w, x)}
	}
	out := []compiler.Output{{Name: "loss"}, {Name: "w.new", State: "w"}}
	state := []compiler.Param{{Name: "w", Role: compiler.State}}
	for _, c := range []struct {
		want string
		spec compiler.Spec
	}{
		{"2", compiler.Spec{Host: "wazero", Outputs: out[:1], Params: state}},
		{`no parameter "v"`, compiler.Spec{Host: "wazero", Outputs: out, Params: []compiler.Param{{Name: "v"}}}},
		{"not a state", compiler.Spec{Host: "wazero", Outputs: out}},
		{"unknown host", compiler.Spec{Host: "gpu", Outputs: out, Params: state}},
		{"NF4", compiler.Spec{Host: "wazero", Outputs: out, Params: []compiler.Param{{Name: "w", Role: compiler.State, NF4: true}}}},
		{"[4]", compiler.Spec{Host: "wazero", Params: state, Outputs: []compiler.Output{{Name: "a", State: "w"}, {Name: "b"}}}},
	} {
		_, err := compiler.Compile(build, c.spec)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
	_, err := compiler.Compile(func(g *graph.Graph) []*graph.Node {
		w := graph.Parameter(g, "w", shapes.Make(dtypes.Float32, 4))
		return []*graph.Node{graph.Neg(w), graph.Exp(w)}
	}, compiler.Spec{Host: "wazero", Params: state, Outputs: []compiler.Output{{Name: "a", State: "w"}, {Name: "b", State: "w"}}})
	if err == nil || !strings.Contains(err.Error(), "two outputs") {
		t.Errorf("error %v, want one about two outputs of one state", err)
	}
	if _, err := compiler.Compile(func(g *graph.Graph) []*graph.Node { panic("no model") }, compiler.Spec{}); err == nil || !strings.Contains(err.Error(), "no model") {
		t.Errorf("a panic while building came back as %v", err)
	}
	_, err = compiler.Compile(func(g *graph.Graph) []*graph.Node {
		return []*graph.Node{graph.Parameter(g, "x", shapes.Make(dtypes.Float64, 4))}
	}, compiler.Spec{Host: "wazero", Outputs: out[:1]})
	if !errors.Is(err, compute.ErrNotImplemented) {
		t.Errorf("float64 gave %v, want ErrNotImplemented", err)
	}
}

// TestStateIsReplacedLast swaps a state for a value that others still need as it was.
func TestStateIsReplacedLast(t *testing.T) {
	build := func(g *graph.Graph) []*graph.Node {
		a := graph.Parameter(g, "a", shapes.Make(dtypes.Float32, 6))
		b := graph.Parameter(g, "b", shapes.Make(dtypes.Float32, 6))
		sum := graph.Add(a, b)
		return []*graph.Node{sum, graph.Reverse(a, 0), graph.ReduceAllSum(graph.Mul(a, sum))}
	}
	bin, err := compiler.Compile(build, compiler.Spec{Host: "wazero", Params: []compiler.Param{{Name: "a", Role: compiler.State}, {Name: "b", Role: compiler.State}},
		Outputs: []compiler.Output{{Name: "a.new", State: "a"}, {Name: "b.new", State: "b"}, {Name: "dot"}}})
	if err != nil {
		t.Fatal(err)
	}
	in := instance(t, bin, &step{}, wasm.Config{})
	a, b := []float32{1, 2, 3, 4, 5, 6}, []float32{6, 5, 4, 3, 2, 2}
	for range 3 {
		if err := errors.Join(in.WriteFloat32("a", a), in.WriteFloat32("b", b), in.Step(context.Background())); err != nil {
			t.Fatal(err)
		}
		var dot [1]float32
		na, nb := make([]float32, 6), make([]float32, 6)
		if err := errors.Join(in.ReadFloat32("a", na), in.ReadFloat32("b", nb), in.ReadFloat32("dot", dot[:])); err != nil {
			t.Fatal(err)
		}
		want := float32(0)
		for i := range a {
			want += a[i] * (a[i] + b[i])
			if na[i] != a[i]+b[i] || nb[i] != a[5-i] {
				t.Fatalf("element %d: a %v, b %v; were %v and %v", i, na[i], nb[i], a, b)
			}
		}
		if dot[0] != want {
			t.Fatalf("dot is %v, want %v", dot[0], want)
		}
		a, b = na, nb
	}
}

// TestLimits holds module sizes and memory to what edges can bear.
func TestLimits(t *testing.T) {
	plain, nf4 := bertSmall, bertSmall
	nf4.nf4 = true
	for _, c := range []struct {
		b      bert
		bytes  int
		memory int
	}{{plain, 200 << 10, 300e6}, {nf4, 200 << 10, 130e6}} {
		var s step
		g, err := compiler.Record(func(g *graph.Graph) []*graph.Node { return c.b.build(g, &s) })
		if err != nil {
			t.Fatal(err)
		}
		bin, err := compiler.CompileGraph(g, s.spec("small", compiler.HostWazero))
		if err != nil {
			t.Fatal(err)
		}
		r, err := wasm.Verify(bin, wasm.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		memory := int(r.MemoryPages) << 16
		t.Logf("nf4 %v: program %d KiB, memory %.1f MB, %d segments", c.b.nf4, len(bin)>>10, float64(memory)/1e6, len(r.Segments))
		if len(bin) > c.bytes || memory > c.memory {
			t.Errorf("nf4 %v: program of %d bytes, limit %d; memory %d, limit %d", c.b.nf4, len(bin), c.bytes, memory, c.memory)
		}
	}
}

// TestExecuteAgain runs one executable on equal and on other buffers, from several goroutines.
func TestExecuteAgain(t *testing.T) {
	b := compiler.New()
	bl := b.Builder("double")
	fn := bl.Main()
	shape := shapes.Make(dtypes.Float32, 3)
	x := must(fn.Parameter("x", shape, nil))
	n := must(fn.Parameter("n", shapes.Make(dtypes.Int64, 3), nil))
	if err := fn.Return([]compute.Value{must(fn.Add(x, x)), must(fn.Neg(n))}, nil); err != nil {
		t.Fatal(err)
	}
	ex := must(bl.Compile())
	defer ex.Finalize()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			xs := must(b.BufferFromFlatData(0, []float32{float32(i), 2, 3}, shape))
			ns := must(b.BufferFromFlatData(0, []int64{int64(i), 1 << 40, -3}, shapes.Make(dtypes.Int64, 3)))
			for range 3 {
				out, err := ex.Execute([]compute.Buffer{xs, ns}, nil, 0)
				if err != nil {
					t.Error(err)
					return
				}
				if got := flatten(t, out[0]).([]float32); got[0] != 2*float32(i) || got[2] != 6 {
					t.Errorf("got %v for %d", got, i)
				}
				if got := flatten(t, out[1]).([]int64); got[0] != -int64(i) || got[1] != -1<<40 || got[2] != 3 {
					t.Errorf("got %v for %d", got, i)
				}
			}
		})
	}
	watchdog.Wait(t, "the compilations", wg.Wait)
}

// TestEmpty reduces and multiplies over nothing.
func TestEmpty(t *testing.T) {
	b := compiler.New()
	bl := b.Builder("empty")
	fn := bl.Main()
	x := must(fn.Parameter("x", shapes.Make(dtypes.Float32, 3, 0), nil))
	y := must(fn.Parameter("y", shapes.Make(dtypes.Float32, 0, 2), nil))
	outs := []compute.Value{must(fn.ReduceSum(x, 1)), must(fn.ReduceProduct(x, 1)), must(fn.ReduceMax(x, 1)),
		must(fn.DotGeneral(x, []int{1}, nil, y, []int{0}, nil, compute.DotGeneralConfig{})), must(fn.Neg(x))}
	if err := fn.Return(outs, nil); err != nil {
		t.Fatal(err)
	}
	ex := must(bl.Compile())
	defer ex.Finalize()
	out := must(ex.Execute([]compute.Buffer{must(b.BufferFromFlatData(0, []float32{}, shapes.Make(dtypes.Float32, 3, 0))),
		must(b.BufferFromFlatData(0, []float32{}, shapes.Make(dtypes.Float32, 0, 2)))}, nil, 0))
	inf := float32(math.Inf(-1))
	for i, want := range [][]float32{{0, 0, 0}, {1, 1, 1}, {inf, inf, inf}, {0, 0, 0, 0, 0, 0}, {}} {
		if got := flatten(t, out[i]).([]float32); !slices.Equal(got, want) {
			t.Errorf("output %d is %v, want %v", i, got, want)
		}
	}
}
