package wasm

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/starling-fl/starling/wasm/cost"
	"github.com/starling-fl/starling/wasm/kernel"
)

// fusedGEMM is gemm with fused arithmetic and no code for it, as the compiler makes
// it for wazero.
func fusedGEMM() *mod {
	m := gemm()
	m.manifest.Fused = true
	m.funcs[0].body = []byte{opUnreachable}
	return m
}

// relaxedGEMM is gemm with relaxed SIMD in its code, as for browsers: only the
// verifier looks at it.
func relaxedGEMM() *mod {
	m := fusedGEMM()
	zero := append([]byte{0xfd, 0x0c}, make([]byte, 16)...)
	m.funcs[0].body = code(zero, zero, zero, []byte{0xfd, 0x85, 0x02, opDrop})
	return m
}

// TestFusedStep computes a product in which one rounding and two differ.
func TestFusedStep(t *testing.T) {
	const x = 1 + 1.0/(1<<12)
	values := func(m *mod) error {
		p, err := Load(t.Context(), m.assemble(), Config{})
		if err != nil {
			return err
		}
		defer p.Close()
		in := instance(t, p)
		check(t, in.WriteFrozen("codes", make([]float32, 99)), in.WriteFloat32("a", []float32{1, x, 0, x, x, x}),
			in.WriteFloat32("b", []float32{-1 - 1.0/(1<<11), 0, 0, 0, x, 1, 1, 1, 0, 0, 0, 0}))
		if err := in.Step(t.Context()); err != nil {
			return err
		}
		got := make([]float32, 8)
		check(t, in.ReadFloat32("c", got))
		if want := kernel.FMA(x, x, -1-1.0/(1<<11)); got[0] != want || want == 0 {
			t.Errorf("%v, want %v: one rounding", got[0], want)
		}
		return nil
	}
	err := values(fusedGEMM())
	if runtime.GOOS == "js" { // which has no kernels
		if !errors.Is(err, ErrRefused) {
			t.Errorf("a program without code for its products: %v", err)
		}
		return
	}
	check(t, err)
	if _, err := Load(t.Context(), fusedGEMM().assemble(), Config{Kernel: Twin}); err == nil {
		t.Error("ran the twin of a program that has none")
	}
}

// TestFusedRefused: relaxed SIMD is in fused programs alone, one instruction of it; and what a product
// costs is held against the limit though its segments have no code.
func TestFusedRefused(t *testing.T) {
	for _, m := range []*mod{fusedGEMM(), relaxedGEMM()} {
		if r, err := Verify(m.assemble(), Limits{}); err != nil || r.Relaxed != (len(m.funcs[0].body) > 2) {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	exact := relaxedGEMM()
	exact.manifest.Fused = false
	other := relaxedGEMM()
	other.funcs[0].body[len(other.funcs[0].body)-3] = 0x86 // f32x4.relaxed_nmadd
	long := fusedGEMM()
	long.manifest.Products[0].Terms = []Axis{{1 << 26, 0, 0, 0}} // times 8 elements
	for want, m := range map[string]*mod{"a program that is not fused": exact, "no relaxed SIMD but": other, "units each": long} {
		if _, err := Verify(m.assemble(), Limits{}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// What the kernels may do counts as work, or a device's bound on a round would not hold.
	work := fusedGEMM()
	work.manifest.Products[0].Terms = []Axis{{1 << 20, 0, 0, 0}}
	r, err := Verify(work.assemble(), Limits{})
	if err != nil || r.Segments[0].Cost < 8*cost.MultiplyAdd<<20 || r.Segments[0].Cost+r.Segments[0].Budget > r.CostLimit {
		t.Errorf("segment %+v, %v", r.Segments, err)
	}
}
