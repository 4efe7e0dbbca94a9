package emit_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/starling-fl/starling/wasm/compiler/emit"
)

// TestLEB128 encodes numbers around the borders of the encoding and reads them back.
func TestLEB128(t *testing.T) {
	for shift := range 63 {
		for _, d := range []int64{-2, -1, 0, 1} {
			v := int64(1)<<shift + d
			for _, s := range []int64{v, -v} {
				b := emit.AppendInt(nil, s)
				var got int64
				var at uint
				for i, c := range b {
					got |= int64(c&0x7f) << at
					at += 7
					if (c&0x80 == 0) != (i == len(b)-1) {
						t.Fatalf("%d: stray end in % x", s, b)
					}
				}
				if at < 64 && b[len(b)-1]&0x40 != 0 {
					got |= -1 << at
				}
				if got != s {
					t.Fatalf("%d came back as %d", s, got)
				}
			}
			if v >= 0 {
				b := emit.AppendUint(nil, uint64(v))
				if got, n := binary.Uvarint(b); got != uint64(v) || n != len(b) {
					t.Fatalf("%d came back as %d", v, got)
				}
			}
		}
	}
}

// sum builds a module whose export adds the squares 0..n-1 as float32 vectors into address 0.
func sum(n int) []byte {
	m := &emit.Module{}
	m.Pages(1)
	m.Data(64, []byte{1, 2, 3})
	add := m.NewFunc(emit.I32)
	x := add.New(emit.V128)
	add.Get(add.Param(0))
	add.Op(emit.F32ConvertI32S)
	add.SIMD(emit.F32x4Splat)
	add.Tee(x)
	add.Get(x)
	add.SIMD(emit.F32x4Mul)
	add.Set(x)
	add.I32(0)
	add.I32(0)
	add.VLoad(emit.V128Load, 0)
	add.Get(x)
	add.SIMD(emit.F32x4Add)
	add.VLoad(emit.V128Store, 0)
	add = m.Adopt(add)
	f := m.NewFunc()
	i, j := f.New(emit.I32), f.New(emit.I32)
	f.I32(0)
	f.Set(j)
	f.Loop(i, n, 3, func() {
		f.Get(j)
		f.Call(add)
		f.AddConst(j, 1)
	})
	m.Export("run", m.Adopt(f))
	return m.Bytes()
}

// TestModule runs an emitted module.
func TestModule(t *testing.T) {
	ctx := context.Background()
	rt := wazero.NewRuntime(ctx)
	defer rt.Close(ctx)
	mod, err := rt.Instantiate(ctx, sum(5))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mod.ExportedFunction("run").Call(ctx); err != nil {
		t.Fatal(err)
	}
	for lane := range uint32(4) {
		if v, ok := mod.Memory().ReadFloat32Le(4 * lane); !ok || v != 30 {
			t.Errorf("lane %d is %v, want 30", lane, v)
		}
	}
	if b, ok := mod.Memory().Read(64, 3); !ok || !bytes.Equal(b, []byte{1, 2, 3}) {
		t.Errorf("data segment reads % x", b)
	}
	if pages, ok := mod.Memory().Grow(1); ok {
		t.Errorf("memory of fixed size grew from %d pages", pages)
	}
}

// TestAdopt shares functions that do the same, and no others.
func TestAdopt(t *testing.T) {
	m := &emit.Module{}
	make := func(v int32, t emit.ValType) *emit.Func {
		f := m.NewFunc()
		f.New(t)
		f.I32(v)
		f.Op(emit.Drop)
		return m.Adopt(f)
	}
	a, b, c, d := make(1, emit.I32), make(1, emit.I32), make(2, emit.I32), make(1, emit.F32)
	if a != b || a == c || a == d || d.Index != 2 {
		t.Errorf("functions %p %p %p %p, the last is number %d", a, b, c, d, d.Index)
	}
}
