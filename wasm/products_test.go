//go:build !js

package wasm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestKernelChoice gives a product a twin that computes something else, so that the
// result tells which of the two ran.
func TestKernelChoice(t *testing.T) {
	m := gemm()
	m.funcs[0].body = code(m.funcs[0].body, i32c(gemmC), f32c(99), f32store(0))
	for name, c := range map[string]struct {
		cfg  Config
		want float32
	}{
		"the program's code": {Config{Kernel: Twin}, 99},
		"plain Go":           {Config{Kernel: "go", Cores: 3}, 5},
		"the interpreter":    {Config{Interpreter: true, Kernel: "go"}, 99},
		"the fastest":        {Config{}, map[bool]float32{true: 99, false: 5}[Kernels()[0] == Twin]},
	} {
		in := instance(t, load(t, m, c.cfg))
		check(t, in.WriteFrozen("codes", make([]float32, 99)), in.WriteFloat32("a", []float32{1, 2, 3, 4, 5, 6}),
			in.WriteFloat32("b", []float32{0, 1, 0, 1, 1, 0, 0, 1, 1, 0, 1, 1}))
		check(t, in.Step(t.Context()))
		got := make([]float32, 8)
		check(t, in.ReadFloat32("c", got))
		if want := []float32{c.want, 1, 3, 6, 11, 4, 6, 15}; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		// The first look at the context is before the segment, the second in a kernel, where there is one.
		looks := 1
		if c.want == 99 {
			looks = 0
		}
		err := in.Step(&stopAfter{context.Background(), looks})
		if !errors.Is(err, context.Canceled) || errors.Is(err, ErrTrap) {
			t.Errorf("%s: cancelled step: %v", name, err)
		}
	}
	_, err := Load(t.Context(), m.assemble(), Config{Kernel: "quantum"})
	if err == nil || !strings.Contains(err.Error(), `"quantum"`) {
		t.Errorf("an unknown kernel: %v", err)
	}
	names := Kernels()
	if names[len(names)-1] != Twin {
		t.Errorf("kernels %v, want the program's own code last", names)
	}
}

// TestLoopGain: a kernel leaves loops to the program's own code that has done sooner.
func TestLoopGain(t *testing.T) {
	for _, name := range LoopKernels() {
		p := load(t, chain(), Config{Kernel: name})
		if p.products != nil && len(p.products.at) > 0 {
			t.Errorf("%s computes a loop of 8 elements", name)
		}
	}
}

// TestLoopChoice does so with a loop. What a manifest says that its twin does not keep reaches no further than its result.
func TestLoopChoice(t *testing.T) {
	m := chain()
	slow := static(2, 0, code(get(0), opDrop), upTail(2, 1, 1<<16)) // so that a kernel gains
	m.funcs[0] = fn{locals: 3, body: code(m.funcs[0].body, slow, i32c(chainC), f32c(99), f32store(0))}
	for name, c := range map[string]struct {
		cfg   Config
		loops bool // are computed by a kernel
	}{
		"the program's code": {Config{Kernel: Twin}, false},
		"plain Go":           {Config{Kernel: "go", Cores: 3}, false},
		"the interpreter":    {Config{Interpreter: true}, false},
		"fused, interpreted": {Config{Interpreter: true}, false},
		"the fastest":        {Config{Cores: 2}, LoopKernels()[0] == Kernels()[0] && Kernels()[0] != Twin},
	} {
		m.manifest.Fused = name == "fused, interpreted" // for which products are left to kernels
		in := instance(t, load(t, m, c.cfg))
		check(t, in.WriteFrozen("b", []float32{1, 2, 3, 4}), in.WriteFrozen("codes", make([]float32, 64)))
		check(t, in.WriteFloat32("a", []float32{1, 2, 3, 4, 5, 6, 7, 8}))
		check(t, in.Step(t.Context()))
		want, got := []float32{2, 6, 12, 20, 10, 18, 28, 40}, make([]float32, 8)
		check(t, in.ReadFloat32("c", got))
		if !c.loops {
			want[0] = 99
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		looks := 0
		if c.loops { // the second look at the context is the kernel's
			looks = 1
		}
		if err := in.Step(&stopAfter{context.Background(), looks}); !errors.Is(err, context.Canceled) || errors.Is(err, ErrTrap) {
			t.Errorf("%s: cancelled step: %v", name, err)
		}
	}
}
