package codegen

import (
	"github.com/starling-fl/starling/wasm/compiler/emit"
)

// packed pushes where a part packs A or B.
func packed(f *emit.Func, lane emit.Local, offset int32) {
	f.Get(lane)
	if offset != 0 {
		f.I32(offset)
		f.Op(emit.I32Add)
	}
}

// packA packs kc columns of the given number of rows, every element four times: scratch[k][row].
func (g *Generator) packA(f *emit.Func, lane, a emit.Local, p product, rows int) {
	src, dst, i := f.New(emit.I32), f.New(emit.I32), f.New(emit.I32)
	// The elements of a column are live at once: a splat in wazero merges into its register's old value, so that in one
	// register each would wait for the last.
	wide := make([]emit.Local, rows)
	for r := range wide {
		wide[r] = f.New(emit.V128)
	}
	f.Get(a)
	f.Set(src)
	packed(f, lane, scratchA)
	f.Set(dst)
	block := func(n int) {
		g.touch(f, src, (n-1)*p.ak+(rows-1)*p.am+4)
		g.touch(f, dst, n*rows*16)
		for u := range n {
			for r := range rows {
				loadAt(f, src, u*p.ak+r*p.am)
				f.SIMD(emit.F32x4Splat)
				f.Set(wide[r])
			}
			for r := range rows {
				f.Get(dst)
				f.Get(wide[r])
				f.VLoad(emit.V128Store, uint32((u*rows+r)*16))
			}
		}
		f.AddConst(src, n*p.ak)
		f.AddConst(dst, n*rows*16)
	}
	chunks(f, i, p.kc, 4, block)
	f.Free(src, dst, i)
	f.Free(wide...)
}

// packB writes func(lane, b): packs a block of B into panels of 8 columns, scratch[panel][k][column].
func (g *Generator) packB(p product) *emit.Func {
	if p.nf4 {
		return g.packNF4(p)
	}
	f := g.M.NewFunc(emit.I32, emit.I32)
	lane, b := f.Param(0), f.Param(1)
	src, dst, i, j := f.New(emit.I32), f.New(emit.I32), f.New(emit.I32), f.New(emit.I32)
	wide := 4 * g.Shape.Cols // bytes of one k of a panel
	packed(f, lane, scratchB)
	f.Set(dst)
	panel := func(cols int) {
		f.Get(b)
		f.Set(src)
		chunks(f, i, p.kc, 4, func(n int) {
			g.touch(f, src, (n-1)*p.bk+(cols-1)*p.bn+4)
			g.touch(f, dst, n*wide)
			for u := range n {
				at := u * p.bk
				if p.bn == 4 && cols == g.Shape.Cols && at >= 0 {
					for h := range cols / 4 {
						f.Get(dst)
						f.Get(src)
						f.VLoad(emit.V128Load, uint32(at+16*h))
						f.VLoad(emit.V128Store, uint32(u*wide+16*h))
					}
					continue
				}
				for c := range cols {
					f.Get(dst)
					loadAt(f, src, at+c*p.bn)
					f.Store(emit.F32Store, uint32(u*wide+4*c))
				}
			}
			f.AddConst(src, n*p.bk)
			f.AddConst(dst, n*wide)
		})
	}
	if full := p.nc / g.Shape.Cols; full > 0 {
		f.Loop(j, full, 1, func() {
			panel(g.Shape.Cols)
			f.AddConst(b, g.Shape.Cols*p.bn)
		})
	}
	if p.nc%g.Shape.Cols > 0 {
		panel(p.nc % g.Shape.Cols)
	}
	return g.M.Adopt(f)
}

// touch reads the byte before base + end and drops it: wazero then knows that lower offsets from the same base are in
// bounds, for the rest of the basic block, and checks once instead of at every access.
func (g *Generator) touch(f *emit.Func, base emit.Local, end int) { touch(f, g.Shape, base, end) }

func touch(f *emit.Func, shape Shape, base emit.Local, end int) {
	if !shape.Touch || end <= 16 {
		return
	}
	f.Get(base)
	f.Load(emit.I32Load8U, uint32(end-1))
	f.Op(emit.Drop)
}

// loadAt pushes the float32 at base + offset; offsets may be negative.
func loadAt(f *emit.Func, base emit.Local, offset int) {
	f.Get(base)
	if offset < 0 {
		f.I32(int32(offset))
		f.Op(emit.I32Add)
		offset = 0
	}
	f.Load(emit.F32Load, uint32(offset))
}

// chunks covers n steps by a loop of the given width and a remainder.
func chunks(f *emit.Func, i emit.Local, n, width int, block func(n int)) {
	switch full := n / width; {
	case full == 1:
		block(width)
	case full > 1:
		f.Loop(i, full, 1, func() { block(width) })
	}
	if n%width > 0 {
		block(n % width)
	}
}
