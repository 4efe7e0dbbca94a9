package codegen

import "github.com/starling-fl/starling/wasm/compiler/emit"

// A strip of rows of A that is zeros makes a strip of C that is +0, whatever is in B, as long as that is finite: terms
// of +0 and -0 added to +0 leave +0, rounded once or twice. In a training step such strips are padding, forward and
// backward. They are left out, with the same bits; package wasm/kernel does so too.

// worthLooking is the least work of a row, in multiply-adds, for which a strip is looked at.
const worthLooking = 1 << 13

func (p product) looksForIdle() bool { return p.kc*p.nc >= worthLooking }

// unlessIdle writes what computes a strip, for strips that are not idle. Of most the first terms tell.
func (g *Generator) unlessIdle(f *emit.Func, lane, a, c, acc emit.Local, p product, rows int, compute func()) {
	if !p.looksForIdle() {
		compute()
		return
	}
	idle := g.idle(p, rows)
	done := f.New(emit.I32)
	f.I32(0)
	f.Set(done)
	for r := range rows {
		wordAt(f, a, r*p.am)
		if r > 0 {
			f.Op(emit.I32Or)
		}
	}
	f.I32(1) // the sign is of no matter
	f.Op(emit.I32Shl)
	f.Op(emit.I32Eqz)
	f.If()
	for _, l := range []emit.Local{lane, a, c, acc} {
		f.Get(l)
	}
	f.Call(idle)
	f.Get(lane)
	f.Load(emit.I32Load, scratchIdle)
	f.Set(done)
	f.End()
	f.Get(done)
	f.Op(emit.I32Eqz)
	f.If()
	compute()
	f.End()
	f.Free(done)
}

// idle writes func(lane, a, c, acc): it finds out whether a strip of A is idle, says so at scratchIdle, and where C is not
// added to makes it +0.
func (g *Generator) idle(p product, rows int) *emit.Func {
	f := g.M.NewFunc(repeat(emit.I32, 4)...)
	lane, a, c, acc := f.Param(0), f.Param(1), f.Param(2), f.Param(3)
	i, t, at, v := f.New(emit.I32), f.New(emit.I32), f.New(emit.I32), f.New(emit.V128)
	say := func(where uint32, what func()) {
		f.Get(lane)
		what()
		f.Store(emit.I32Store, where)
	}
	leave := func() { // if what is on the stack is not 0
		f.If()
		f.Op(emit.Return)
		f.End()
	}
	say(scratchIdle, func() { f.I32(0) })
	f.Get(a)
	f.Set(at)
	chunks(f, i, p.kc, 4, func(n int) {
		for u := range n {
			for r := range rows {
				f.Get(t)
				wordAt(f, at, u*p.ak+r*p.am)
				f.Op(emit.I32Or)
				f.Set(t)
			}
		}
		f.AddConst(at, n*p.ak)
	})
	f.Get(t)
	f.I32(1)
	f.Op(emit.I32Shl)
	leave()
	f.Get(lane)
	f.Load(emit.I32Load, scratchFinite)
	f.Op(emit.I32Eqz)
	f.If()
	say(scratchFinite, func() { g.finite(f, lane, p) })
	f.End()
	f.Get(lane)
	f.Load(emit.I32Load, scratchFinite)
	f.I32(1)
	f.Op(emit.I32Sub)
	leave()
	// each visits C, a vector or a word at a time.
	each := func(vector, word func(offset uint32)) {
		for r := range rows {
			f.Get(c)
			f.I32(int32(r * p.cm))
			f.Op(emit.I32Add)
			f.Set(at)
			chunks(f, i, p.nc/4, 4, func(n int) {
				for u := range n {
					vector(uint32(16 * u))
				}
				f.AddConst(at, 16*n)
			})
			for u := range p.nc % 4 {
				word(uint32(4 * u))
			}
		}
	}
	f.Get(acc)
	f.If() // a fused sum may be -0, to which +0 would count
	f.V32(0)
	f.Set(v)
	each(func(offset uint32) {
		f.Get(at)
		f.VLoad(emit.V128Load, offset)
		f.Get(v)
		f.SIMD(emit.V128Or)
		f.Set(v)
	}, func(offset uint32) {
		f.Get(at)
		f.Load(emit.I32Load, offset)
		f.Get(t)
		f.Op(emit.I32Or)
		f.Set(t)
	})
	f.Get(v)
	f.SIMD(emit.V128AnyTrue)
	leave()
	if p.nc%4 > 0 {
		f.Get(t)
		leave()
	}
	f.Else()
	each(func(offset uint32) {
		f.Get(at)
		f.V32(0)
		f.VLoad(emit.V128Store, offset)
	}, func(offset uint32) {
		f.Get(at)
		f.I32(0)
		f.Store(emit.I32Store, offset)
	})
	f.End()
	say(scratchIdle, func() { f.I32(1) })
	return g.M.Adopt(f)
}

// finite pushes 1 where the packed columns of B are finite, else 2. One more in the exponent of what is not finite carries
// into the place of the sign.
func (g *Generator) finite(f *emit.Func, lane emit.Local, p product) {
	i, at, v := f.New(emit.I32), f.New(emit.I32), f.New(emit.V128)
	packed(f, lane, scratchB)
	f.Set(at)
	f.V32(0)
	f.Set(v)
	chunks(f, i, roundUp(p.nc, g.Shape.Cols)*p.kc/4, 4, func(n int) {
		for u := range n {
			f.Get(at)
			f.VLoad(emit.V128Load, uint32(16*u))
			f.V32(0x7fffffff)
			f.SIMD(emit.V128And)
			f.V32(0x00800000)
			f.SIMD(emit.I32x4Add)
			f.Get(v)
			f.SIMD(emit.V128Or)
			f.Set(v)
		}
		f.AddConst(at, 16*n)
	})
	f.Get(v)
	f.V32(0x80000000)
	f.SIMD(emit.V128And)
	f.SIMD(emit.V128AnyTrue)
	f.I32(1)
	f.Op(emit.I32Add)
	f.Free(i, at, v)
}

// wordAt pushes the word at base + offset; offsets may be negative.
func wordAt(f *emit.Func, base emit.Local, offset int) {
	f.Get(base)
	if offset < 0 {
		f.I32(int32(offset))
		f.Op(emit.I32Add)
		offset = 0
	}
	f.Load(emit.I32Load, uint32(offset))
}
