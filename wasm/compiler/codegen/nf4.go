package codegen

import (
	"encoding/binary"
	"math"

	"github.com/starling-fl/starling/wasm/compiler/emit"
)

// NF4 tensors are in memory as bitsandbytes stores them: the flattened values, two codes a byte, the first in the
// high half, and the float32 absmax of every nf4Block values. A table of 256 pairs of levels turns one byte into two
// values.
const (
	NF4Block  = 64 // values that share a scale
	nf4Table  = 256 * 8
	nf4AtOnce = 8 // values decoded together where the layout allows it
)

// NF4Table returns the table for the given 16 levels.
func NF4Table(levels [16]float32) []byte {
	b := make([]byte, 0, nf4Table)
	for i := range 256 {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(levels[i>>4]))
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(levels[i&15]))
	}
	return b
}

// nf4Scale pushes the scale of the block that element e (+ at) belongs to.
func nf4Scale(f *emit.Func, e, scales emit.Local, at int) {
	f.Get(e)
	if at != 0 {
		f.I32(int32(at))
		f.Op(emit.I32Add)
	}
	f.I32(6)
	f.Op(emit.I32ShrU)
	f.I32(2)
	f.Op(emit.I32Shl)
	f.Get(scales)
	f.Op(emit.I32Add)
	f.Load(emit.F32Load, 0)
}

// nf4Pair pushes the address in the pair table of the byte at codes + at.
func nf4Pair(f *emit.Func, codes emit.Local, at int) {
	f.Get(codes)
	f.Load(emit.I32Load8U, uint32(at))
	f.I32(3)
	f.Op(emit.I32Shl)
}

// nf4Byte sets p to the address of the byte that holds element e.
func nf4Byte(f *emit.Func, p, e, codes emit.Local) {
	f.Get(e)
	f.I32(1)
	f.Op(emit.I32ShrU)
	f.Get(codes)
	f.Op(emit.I32Add)
	f.Set(p)
}

// nf4One pushes the value of element e + at.
func (g *Generator) nf4One(f *emit.Func, e, codes, scales, t emit.Local, at int) {
	f.Get(e)
	f.I32(int32(at))
	f.Op(emit.I32Add)
	f.Tee(t)
	f.I32(1)
	f.Op(emit.I32ShrU)
	f.Get(codes)
	f.Op(emit.I32Add)
	f.Load(emit.I32Load8U, 0)
	f.I32(3)
	f.Op(emit.I32Shl)
	f.Get(t)
	f.I32(1)
	f.Op(emit.I32And)
	f.I32(2)
	f.Op(emit.I32Shl)
	f.Op(emit.I32Add)
	f.Load(emit.F32Load, uint32(g.table))
	nf4Scale(f, t, scales, 0)
	f.Op(emit.F32Mul)
}

// nf4Eight stores elements e..e+7, e a multiple of 8, at dst + offset: they share a scale.
func (g *Generator) nf4Eight(f *emit.Func, e, codes, scales, dst, p, scale emit.Local, offset int) {
	nf4Byte(f, p, e, codes)
	nf4Scale(f, e, scales, 0)
	f.SIMD(emit.F32x4Splat)
	f.Set(scale)
	for h := range 2 {
		f.Get(dst)
		nf4Pair(f, p, 2*h+1)
		nf4Pair(f, p, 2*h)
		f.VLoad(emit.V128Load64Zero, uint32(g.table))
		f.VStoreLane(emit.V128Load64Lane, uint32(g.table), 1)
		f.Get(scale)
		f.SIMD(emit.F32x4Mul)
		f.VLoad(emit.V128Store, uint32(offset+16*h))
	}
}

// packNF4 writes func(lane, e, codes, scales): as packB, from element e of a 4-bit tensor; strides are in elements.
func (g *Generator) packNF4(p product) *emit.Func {
	g.NeedTable = true
	f := g.M.NewFunc(repeat(emit.I32, 4)...)
	lane, e0, codes, scales := f.Param(0), f.Param(1), f.Param(2), f.Param(3)
	e, dst, i, j, t := f.New(emit.I32), f.New(emit.I32), f.New(emit.I32), f.New(emit.I32), f.New(emit.I32)
	scale := f.New(emit.V128)
	one := f.New(emit.F32)
	packed(f, lane, scratchB)
	f.Set(dst)
	wide := 4 * g.Shape.Cols
	aligned := g.Shape.Cols%8 == 0 && p.bk%8 == 0 && p.bn == 1 && p.startAligned()
	columns := p.bn%8 == 0 && p.bk == 1 && p.kc%8 == 0 && p.startAligned()
	panel := func(cols int) {
		f.Get(e0)
		f.Set(e)
		switch {
		case aligned && cols == g.Shape.Cols:
			chunks(f, i, p.kc, 1, func(n int) {
				for h := 0; h < cols; h += 8 {
					g.nf4Eight(f, e, codes, scales, dst, t, scale, 4*h)
					f.AddConst(e, 8)
				}
				f.AddConst(e, p.bk-cols)
				f.AddConst(dst, wide)
			})
		case columns:
			// Eight values of k of one column at a time, every column of the panel.
			col := f.New(emit.I32)
			chunks(f, i, p.kc/8, 1, func(int) {
				f.Get(e)
				f.Set(col)
				for c := range cols {
					nf4Byte(f, t, col, codes)
					nf4Scale(f, col, scales, 0)
					f.Set(one)
					for k := range 8 {
						f.Get(dst)
						nf4Pair(f, t, k/2)
						f.Load(emit.F32Load, uint32(g.table+4*(k%2)))
						f.Get(one)
						f.Op(emit.F32Mul)
						f.Store(emit.F32Store, uint32(wide*k+4*c))
					}
					f.AddConst(col, p.bn)
				}
				f.AddConst(e, 8)
				f.AddConst(dst, 8*wide)
			})
			f.Free(col)
		default:
			chunks(f, i, p.kc, 1, func(int) {
				for c := range cols {
					f.Get(dst)
					g.nf4One(f, e, codes, scales, t, c*p.bn)
					f.Store(emit.F32Store, uint32(4*c))
				}
				f.AddConst(e, p.bk)
				f.AddConst(dst, wide)
			})
		}
	}
	if full := p.nc / g.Shape.Cols; full > 0 {
		f.Loop(j, full, 1, func() {
			panel(g.Shape.Cols)
			f.AddConst(e0, g.Shape.Cols*p.bn)
		})
	}
	if p.nc%g.Shape.Cols > 0 {
		panel(p.nc % g.Shape.Cols)
	}
	return g.M.Adopt(f)
}

// startAligned reports whether every block starts at a multiple of 8 elements, given that the whole operand does.
func (p product) startAligned() bool {
	if p.start%8 != 0 {
		return false
	}
	for _, ax := range p.outerBatch {
		if ax.B%8 != 0 {
			return false
		}
	}
	for _, ax := range p.outerN {
		if ax.B%8 != 0 {
			return false
		}
	}
	for _, ax := range p.outerK {
		if ax.B%8 != 0 {
			return false
		}
	}
	return true
}
