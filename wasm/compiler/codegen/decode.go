package codegen

import (
	"github.com/starling-fl/starling/wasm/compiler/emit"
	"github.com/starling-fl/starling/wasm/compiler/ir"
)

// decodeRun writes n float32 values from element e on to dst.
func (g *Generator) decodeRun(f *emit.Func, e0, codes, scales, dst0 emit.Local, n int, aligned bool) {
	g.NeedTable = true
	e, dst, i, t := f.New(emit.I32), f.New(emit.I32), f.New(emit.I32), f.New(emit.I32)
	f.Get(e0)
	f.Set(e)
	f.Get(dst0)
	f.Set(dst)
	if aligned {
		scale := f.New(emit.V128)
		chunks(f, i, n/nf4AtOnce, 1, func(int) {
			g.nf4Eight(f, e, codes, scales, dst, t, scale, 0)
			f.AddConst(e, 8)
			f.AddConst(dst, 32)
		})
		f.Free(scale)
	} else {
		chunks(f, i, n, 1, func(int) {
			f.Get(dst)
			g.nf4One(f, e, codes, scales, t, 0)
			f.Store(emit.F32Store, 0)
			f.AddConst(e, 1)
			f.AddConst(dst, 4)
		})
	}
	f.Free(e, dst, i, t)
}

// decode writes a whole NF4 tensor as float32.
func (g *Generator) decode(f *emit.Func, n *ir.Node, out emit.Local) {
	e := f.New(emit.I32)
	f.I32(0)
	f.Set(e)
	g.decodeRun(f, e, f.Param(0), f.Param(2), out, n.Len(), n.Len()%8 == 0)
}
