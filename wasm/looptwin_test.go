//go:build !js

package wasm_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler"
)

// TestLoopKernelsEqualTwins holds, for every declared loop of real training steps, each kernel on one
// core and on three against the program's own code, on ordinary and on extreme values.
func TestLoopKernelsEqualTwins(t *testing.T) {
	step := func(change func(s *nn.StepSpec)) *nn.StepSpec {
		s := &nn.StepSpec{Config: model.BERT(512, 128, 1, 4, 128), LoRA: model.LoRA{RMax: 16, Alpha: 16}, Classes: 4,
			Rank: 16, Batch: 4, Seq: 64, Optimizer: nn.AdamW, WeightDecay: 0.01}
		change(s)
		return s
	}
	activation := func(name string) func(*nn.StepSpec) {
		return func(s *nn.StepSpec) { s.Config.HiddenAct = name }
	}
	method := func(kind model.MethodKind) func(*nn.StepSpec) {
		return func(s *nn.StepSpec) { s.LoRA = model.LoRA{Kind: kind, RMax: 1, Alpha: 1}; s.Rank = 1 }
	}
	for name, change := range map[string]func(s *nn.StepSpec){
		"tiny":      func(*nn.StepSpec) {},
		"momentum":  func(s *nn.StepSpec) { s.Optimizer = nn.Momentum },
		"odd":       func(s *nn.StepSpec) { s.Config, s.Batch, s.Seq, s.Rank = model.BERT(101, 75, 1, 3, 99), 11, 53, 5 },
		"micro":     func(s *nn.StepSpec) { s.Micro = 2 },
		"erf":       activation("gelu"),
		"relu":      activation("relu"),
		"silu":      activation("silu"),
		"adapter":   method(model.MethodAdapter),
		"compacter": method(model.MethodCompacter),
		"full":      method(model.MethodFull),
		"bitfit":    method(model.MethodBitFit),
	} {
		t.Run(name, func(t *testing.T) {
			p, err := wasm.Load(t.Context(), compileStep(t, step(change), compiler.HostWazero, false), wasm.Config{Kernel: wasm.Twin})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			in, err := p.NewInstance(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n := len(p.Manifest().Bodies); n < 5 {
				t.Fatalf("only %d kinds of loops", n)
			}
			tried := map[int]bool{}
			for i := range p.Manifest().Loops {
				l := &p.Manifest().Loops[i]
				if !tried[l.Body] {
					tried[l.Body] = true
					holdLoop(t, in, i)
				}
			}
		})
	}
}

// holdLoop compares all kernels' results of a declared loop with its segment's.
func holdLoop(t *testing.T, in *wasm.Instance, loop int) {
	m, memory := in.Program().Manifest(), in.Memory()
	l := &m.Loops[loop]
	rnd := rand.New(rand.NewPCG(3, uint64(loop)))
	leaves, outs := m.LoopReach(l)
	names := slices.DeleteFunc(wasm.Kernels(), func(s string) bool { return s == wasm.Twin })
	before, got := make([]byte, len(memory)), make([]byte, len(memory))
	for _, share := range []float64{0, .001, .3} {
		for _, r := range slices.Concat(leaves, outs) {
			scatter(rnd, memory[r[0]:r[1]], share)
		}
		copy(before, memory)
		if err := in.RunLoopTwin(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		for _, kernel := range append(names, "go") {
			for _, cores := range []int{1, 3} {
				copy(got, before)
				if err := m.RunLoopKernel(t.Context(), l, kernel, got, cores); err != nil {
					t.Fatal(err)
				}
				what := fmt.Sprintf("loop %d %+v, extreme %v, %s on %d cores", loop, m.Bodies[l.Body], share, kernel, cores)
				if word, ok := equalBits(got, memory); !ok {
					t.Fatalf("%s: word %d of memory differs", what, word)
				}
				for _, r := range outs { // beside the results nothing may change, NaN or not
					copy(got[r[0]:r[1]], before[r[0]:r[1]])
				}
				if !bytes.Equal(got, before) {
					t.Fatalf("%s: wrote outside of its results", what)
				}
			}
		}
	}
}
