package codegen

import "github.com/starling-fl/starling/wasm/compiler/emit"

// panel writes func(lane, c, acc): a strip of C, rows high and nc wide, from the packed rows and the packed block; C is
// added to where acc is set, else overwritten.
func (g *Generator) panel(p product, rows int) *emit.Func {
	f := g.M.NewFunc(emit.I32, emit.I32, emit.I32)
	lane, c, acc := f.Param(0), f.Param(1), f.Param(2)
	pa, pb, i, j := f.New(emit.I32), f.New(emit.I32), f.New(emit.I32), f.New(emit.I32)
	wide := 4 * g.Shape.Cols
	packed(f, lane, scratchB)
	f.Set(pb)
	tile := func(cols int) {
		vecs := (cols + 3) / 4
		sum := make([][]emit.Local, rows)
		for r := range sum {
			sum[r] = make([]emit.Local, vecs)
			for v := range sum[r] {
				sum[r][v] = f.New(emit.V128)
			}
		}
		each := func(do func(r, v int)) {
			for r := range sum {
				for v := range sum[r] {
					do(r, v)
				}
			}
		}
		lanes := func(v int) int { return min(4, cols-4*v) }
		g.touch(f, c, (rows-1)*p.cm+4*cols)
		f.Get(acc)
		f.If()
		each(func(r, v int) {
			if lanes(v) == 4 {
				f.Get(c)
				f.VLoad(emit.V128Load, uint32(r*p.cm+16*v))
			} else {
				for l := range lanes(v) {
					f.Get(c)
					f.Load(emit.F32Load, uint32(r*p.cm+16*v+4*l))
					if l == 0 {
						f.SIMD(emit.F32x4Splat)
					} else {
						f.SIMDLane(emit.F32x4ReplaceLane, l)
					}
				}
			}
			f.Set(sum[r][v])
		})
		f.Else()
		each(func(r, v int) {
			f.V32(0)
			f.Set(sum[r][v])
		})
		f.End()
		packed(f, lane, scratchA)
		f.Set(pa)
		bs := make([]emit.Local, vecs)
		for v := range bs {
			bs[v] = f.New(emit.V128)
		}
		a := f.New(emit.V128)
		chunks(f, i, p.kc, g.Shape.DotUnroll, func(n int) {
			g.touch(f, pa, n*rows*16)
			g.touch(f, pb, n*wide)
			for u := range n {
				for v := range bs {
					f.Get(pb)
					f.VLoad(emit.V128Load, uint32(wide*u+16*v))
					f.Set(bs[v])
				}
				for r := range rows {
					f.Get(pa)
					f.VLoad(emit.V128Load, uint32((u*rows+r)*16))
					f.Set(a)
					for v := range bs {
						if p.fused {
							f.Get(a)
							f.Get(bs[v])
							f.Get(sum[r][v])
							f.SIMD(emit.F32x4RelaxedMadd)
						} else {
							f.Get(sum[r][v])
							f.Get(a)
							f.Get(bs[v])
							f.SIMD(emit.F32x4Mul)
							f.SIMD(emit.F32x4Add)
						}
						f.Set(sum[r][v])
					}
				}
			}
			f.AddConst(pa, n*rows*16)
			f.AddConst(pb, n*wide)
		})
		each(func(r, v int) {
			f.Get(c)
			if lanes(v) == 4 {
				f.Get(sum[r][v])
				f.VLoad(emit.V128Store, uint32(r*p.cm+16*v))
				return
			}
			for l := range lanes(v) {
				if l > 0 {
					f.Get(c)
				}
				f.Get(sum[r][v])
				f.SIMDLane(emit.F32x4ExtractLane, l)
				f.Store(emit.F32Store, uint32(r*p.cm+16*v+4*l))
			}
		})
		each(func(r, v int) { f.Free(sum[r][v]) })
		f.Free(bs...)
		f.Free(a)
	}
	if full := p.nc / g.Shape.Cols; full > 0 {
		f.Loop(j, full, 1, func() {
			tile(g.Shape.Cols)
			f.AddConst(c, 4*g.Shape.Cols)
		})
	}
	if p.nc%g.Shape.Cols > 0 {
		tile(p.nc % g.Shape.Cols)
	}
	return g.M.Adopt(f)
}
