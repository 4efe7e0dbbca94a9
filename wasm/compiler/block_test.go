package compiler_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler"
)

// TestBlocksEqualWhole trains by programs whose attention works block by block, a few heads or a head of one example at
// a time, and by those that write all scores first: the bits must be the same, on every host.
func TestBlocksEqualWhole(t *testing.T) {
	for name, b := range layered() {
		for _, host := range []string{compiler.HostWazero, compiler.HostV8} {
			t.Run(name+", "+host, func(t *testing.T) {
				b.seq *= 2
				s := &step{}
				rec, err := compiler.Record(func(g *graph.Graph) []*graph.Node { return b.build(g, s) })
				if err != nil {
					t.Fatal(err)
				}
				build := func(spec compiler.Spec) []byte {
					bin, err := compiler.CompileGraph(rec, spec)
					if err != nil {
						t.Fatal(err)
					}
					return bin
				}
				spec := s.spec("step", host)
				plain := instance(t, build(compiler.Flat(spec)), s, wasm.Config{Kernel: wasm.Twin})
				want := steps(t, plain, 3)
				scores := 4 * b.batch * b.heads * b.seq * b.seq
				for _, bytes := range []int{scores / 2, scores / b.batch / b.heads} {
					bin := build(compiler.Blocking(spec, bytes))
					for _, kernel := range wasm.Kernels() {
						in := instance(t, bin, s, wasm.Config{Kernel: kernel, Cores: 2})
						if got := steps(t, in, 3); got != want {
							t.Errorf("blocks of %d bytes, %s: state %s, whole %s", bytes, kernel, got, want)
						}
						if got, whole := multiplied(in), multiplied(plain); got <= whole {
							t.Errorf("blocks of %d bytes: %d products, written whole %d", bytes, got, whole)
						}
					}
					if got := nodeSteps(t, bin, instance(t, bin, s, wasm.Config{}), 3, 2); got != want {
						t.Errorf("blocks of %d bytes, node: state %s, whole %s", bytes, got, want)
					}
				}
			})
		}
	}
}

// multiplied is how many products a step computes.
func multiplied(in *wasm.Instance) (n int) {
	m := in.Program().Manifest()
	for _, p := range m.Products {
		rounds := 1
		for _, r := range m.Repeats {
			if p.First >= r.First && p.First < r.First+r.Count {
				rounds = r.Rounds
			}
		}
		n += rounds
	}
	return n
}
