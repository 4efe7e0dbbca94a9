package compiler_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler"
)

// layered are steps with layers enough for repeats, by name.
func layered() map[string]bert {
	plain := bertToy
	plain.layers, plain.optimizer = 5, "adamw"
	codes := plain
	codes.layers, codes.hidden, codes.ffn, codes.nf4 = 4, 24, 40, true
	// Products of 8 million operations, which workers of a browser share.
	wide := bert{layers: 4, hidden: 256, heads: 2, ffn: 256, vocab: 50, seq: 16, batch: 4, rank: 2, classes: 3, optimizer: "sgd"}
	return map[string]bert{"plain": plain, "4 bits": codes, "wide": wide}
}

// TestRepeatsEqualWrittenOut trains by programs whose layers are rounds of the same functions, and by those that write
// every layer out: the bits must be the same, on every host.
func TestRepeatsEqualWrittenOut(t *testing.T) {
	for name, b := range layered() {
		for _, host := range []string{compiler.HostWazero, compiler.HostV8} {
			t.Run(name+", "+host, func(t *testing.T) {
				s := &step{}
				rec, err := compiler.Record(func(g *graph.Graph) []*graph.Node { return b.build(g, s) })
				if err != nil {
					t.Fatal(err)
				}
				spec := s.spec("step", host)
				bin, err := compiler.CompileGraph(rec, spec)
				if err != nil {
					t.Fatal(err)
				}
				flat, err := compiler.CompileGraph(rec, compiler.Flat(spec))
				if err != nil {
					t.Fatal(err)
				}
				plain := instance(t, flat, s, wasm.Config{Kernel: wasm.Twin})
				if n := len(plain.Program().Manifest().Repeats); n > 0 {
					t.Fatalf("%d repeats in the plain twin", n)
				}
				want := steps(t, plain, 3)
				for _, kernel := range wasm.Kernels() {
					in := instance(t, bin, s, wasm.Config{Kernel: kernel, Cores: 2})
					if n := len(in.Program().Manifest().Repeats); n < 2 {
						t.Fatalf("%d repeats, want forward and backward", n)
					}
					if got := steps(t, in, 3); got != want {
						t.Errorf("%s: state %s, written out %s", kernel, got, want)
					}
				}
				for _, workers := range []int{1, 2} {
					if got := nodeSteps(t, bin, instance(t, bin, s, wasm.Config{}), 3, workers); got != want {
						t.Errorf("node, %d workers: state %s, written out %s", workers, got, want)
					}
				}
			})
		}
	}
}

// TestRepeatsBoundPrograms: a program of more layers is hardly larger, but for the names of its tensors.
func TestRepeatsBoundPrograms(t *testing.T) {
	size := func(layers int) (code, whole int) {
		b := bertToy
		b.layers = layers
		bin, _ := program(t, b, compiler.HostWazero)
		r, err := wasm.Verify(bin, wasm.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return r.CodeBytes, len(bin)
	}
	few, some := size(6)
	many, more := size(24)
	t.Logf("6 layers: %d bytes of code, %d in all; 24 layers: %d, %d", few, some, many, more)
	if many > few+few/20 {
		t.Errorf("24 layers have %d bytes of code, 6 have %d", many, few)
	}
}
