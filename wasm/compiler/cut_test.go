package compiler_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler"
)

// TestCutCallsAgree trains with calls that were cut as dear ones are, only sooner: the bits are those of the program with
// whole calls, by its own code, by kernels and in V8.
func TestCutCallsAgree(t *testing.T) {
	adam, nf4 := bertToy, bertTiny
	adam.optimizer, nf4.nf4 = "adamw", true
	for name, c := range map[string]struct {
		bert
		least uint64 // units: fewer make segments of more calls than a function may hold
	}{"toy": {bertToy, 1 << 12}, "adamw": {adam, 1 << 13}, "nf4": {nf4, 1 << 17}} {
		for _, host := range []string{compiler.HostWazero, compiler.HostV8} {
			t.Run(name+"/"+host, func(t *testing.T) {
				var s step
				g, err := compiler.Record(func(g *graph.Graph) []*graph.Node { return c.build(g, &s) })
				if err != nil {
					t.Fatal(err)
				}
				build := func(spec compiler.Spec) []byte {
					program, err := compiler.CompileGraph(g, spec)
					if err != nil {
						t.Fatal(err)
					}
					return program
				}
				spec := s.spec("cut", host)
				whole := instance(t, build(spec), &s, wasm.Config{})
				want := steps(t, whole, 3)
				for _, most := range []uint64{c.least, 4 * c.least} {
					program := build(compiler.Cutting(spec, most))
					cut := instance(t, program, &s, wasm.Config{Kernel: wasm.Twin})
					for _, kernel := range wasm.Kernels() {
						if got := steps(t, instance(t, program, &s, wasm.Config{Kernel: kernel}), 3); got != want {
							t.Errorf("calls of %d units, %s: state %s, whole %s", most, kernel, got, want)
						}
					}
					if got := steps(t, cut, 3); got != want {
						t.Errorf("calls of %d units: state %s, whole %s", most, got, want)
					}
					if len(program) == len(build(spec)) && most == c.least {
						t.Errorf("nothing was cut at %d units", most)
					}
				}
			})
		}
	}
}

// TestCutOperationsAgree: each operation that can be cut, alone, at a limit that cuts it to its shortest parts.
func TestCutOperationsAgree(t *testing.T) {
	const rows, cols = 37, 70
	for name, build := range map[string]func(x, i *graph.Node) *graph.Node{
		"elementwise": func(x, i *graph.Node) *graph.Node { return graph.Tanh(graph.Add(x, graph.Exp(x))) },
		"transposed":  func(x, i *graph.Node) *graph.Node { return graph.Exp(graph.Transpose(x, 0, 1)) },
		"iota": func(x, i *graph.Node) *graph.Node {
			return graph.Add(graph.Mul(graph.Iota(x.Graph(), x.Shape(), 0), x), graph.Iota(x.Graph(), x.Shape(), 1))
		},
		"vector":     func(x, i *graph.Node) *graph.Node { return graph.Exp(graph.Reshape(x, rows*cols)) },
		"rows":       func(x, i *graph.Node) *graph.Node { return graph.ReduceSum(graph.Exp(x), 1) },
		"columns":    func(x, i *graph.Node) *graph.Node { return graph.ReduceSum(graph.Exp(x), 0) },
		"largest":    func(x, i *graph.Node) *graph.Node { return graph.ReduceMax(x, 1) },
		"whole":      func(x, i *graph.Node) *graph.Node { return graph.ReduceAllSum(graph.Exp(x)) },
		"gather":     func(x, i *graph.Node) *graph.Node { return graph.Gather(x, i) },
		"scattered":  func(x, i *graph.Node) *graph.Node { return graph.ScatterSum(x, i, graph.Exp(x), false, false) },
		"comparison": func(x, i *graph.Node) *graph.Node { return graph.ArgMax(x, 1, dtypes.Int32) },
	} {
		t.Run(name, func(t *testing.T) {
			var dims int
			integers := false
			g, err := compiler.Record(func(g *graph.Graph) []*graph.Node {
				x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, rows, cols))
				i := graph.Parameter(g, "i", shapes.Make(dtypes.Int32, rows, 1))
				y := build(x, i)
				dims, integers = y.Shape().Size(), y.DType() == dtypes.Int32
				return []*graph.Node{y}
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, host := range []string{compiler.HostWazero, compiler.HostV8} {
				spec := compiler.Spec{Name: name, Host: host, Outputs: []compiler.Output{{Name: "y"}}}
				run := func(spec compiler.Spec) (y []float32, ints []int32, size int) {
					program, err := compiler.CompileGraph(g, spec)
					if err != nil {
						t.Fatal(err)
					}
					in := instance(t, program, &step{}, wasm.Config{})
					x, i := make([]float32, rows*cols), make([]int32, rows)
					for k := range x {
						x[k] = float32(k*37%101)/40 - 1.25
					}
					for k := range i {
						i[k] = int32(k * k % (rows - 4)) // some twice, some never
					}
					if err := in.WriteFloat32("x", x); err != nil {
						t.Fatal(err)
					}
					if name == "gather" || name == "scattered" {
						if err := in.WriteInt32("i", i); err != nil {
							t.Fatal(err)
						}
					}
					if err := in.Step(t.Context()); err != nil {
						t.Fatal(err)
					}
					y, ints = make([]float32, dims), make([]int32, dims)
					if integers {
						err = in.ReadInt32("y", ints)
					} else {
						err = in.ReadFloat32("y", y)
					}
					if err != nil {
						t.Fatal(err)
					}
					return y, ints, len(program)
				}
				y, ints, size := run(spec)
				cut, cutInts, cutSize := run(compiler.Cutting(spec, 64))
				for k := range y {
					if y[k] != cut[k] || ints[k] != cutInts[k] {
						t.Fatalf("%s: element %d is %v, %d, whole %v, %d", host, k, cut[k], cutInts[k], y[k], ints[k])
					}
				}
				if cutSize == size && name != "whole" {
					t.Errorf("%s: nothing was cut", host)
				}
			}
		})
	}
}
