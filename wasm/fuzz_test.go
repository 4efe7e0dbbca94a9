package wasm

import (
	"context"
	"errors"
	"testing"
)

// FuzzLoad: whatever the bytes, the loader answers without panic; and whatever it
// accepts runs to its end or traps, and does not hang. The limits are small, so
// that a program which overran its proved bound would show as a hang.
func FuzzLoad(f *testing.F) {
	f.Add(toy().assemble())
	f.Add(gemm().assemble())
	f.Add(partGEMM().assemble())
	f.Add(layers().assemble())
	f.Add(conditional().assemble())
	series := toy()
	series.manifest = deep(3)
	f.Add(series.assemble())
	for _, table := range []map[string]struct {
		m    *mod
		want string
	}{forever, hostile} {
		for _, c := range table {
			f.Add(c.m.assemble())
		}
	}
	limits := Limits{ModuleBytes: 1 << 14, MemoryPages: 16, SegmentCost: 1 << 20}
	f.Fuzz(func(t *testing.T, program []byte) {
		ctx := context.Background()
		p, err := Load(ctx, program, Config{Limits: limits, Interpreter: true})
		if err != nil {
			if !errors.Is(err, ErrRefused) {
				t.Fatal(err)
			}
			return
		}
		defer p.Close()
		in, err := p.NewInstance(ctx)
		if err != nil {
			t.Fatal(err)
		}
		// The kernels take every product that the verifier took.
		m, report, err := verify(program, limits.withDefaults())
		if err != nil {
			t.Fatal(err)
		}
		products, err := newProducts(m, report, Config{Kernel: "go"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Report().Segments {
			if _, err := products.run(ctx, in.host, i); err != nil {
				t.Fatal(err)
			}
		}
		for i := range p.Manifest().Frozen {
			w := &p.Manifest().Frozen[i]
			switch {
			case w.NF4 != nil:
				err = in.WriteFrozenNF4(w.Name, make([]byte, w.DataSize()), make([]float32, w.ScalesSize()/4))
			case w.DType == Int32:
				err = in.WriteFrozenInt32(w.Name, make([]int32, w.Len()))
			default:
				err = in.WriteFrozen(w.Name, make([]float32, w.Len()))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := in.Step(ctx); err != nil && !errors.Is(err, ErrTrap) {
				t.Fatal(err)
			}
		}
		if _, err := in.StateSHA256(); err != nil {
			t.Fatal(err)
		}
	})
}
