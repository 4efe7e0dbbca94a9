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
