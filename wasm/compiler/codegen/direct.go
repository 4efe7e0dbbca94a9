package codegen

import (
	"fmt"

	"github.com/starling-fl/starling/wasm/compiler/emit"
	"github.com/starling-fl/starling/wasm/compiler/ir"
	"github.com/starling-fl/starling/wasm/compiler/plan"
)

// walker is an address (or an index) that moves by strides[i] a step of loop i.
type walker struct {
	local   emit.Local
	strides []int
}

// walk writes nested loops over sizes around body and leaves the walkers where they were.
func walk(f *emit.Func, sizes []int, ws []walker, body func()) {
	var at func(d int)
	at = func(d int) {
		if d == len(sizes) {
			body()
			return
		}
		if sizes[d] == 1 {
			at(d + 1)
			return
		}
		i := f.New(emit.I32)
		f.Loop(i, sizes[d], 1, func() {
			at(d + 1)
			for _, w := range ws {
				f.AddConst(w.local, w.strides[d])
			}
		})
		f.Free(i)
		for _, w := range ws {
			f.AddConst(w.local, -sizes[d]*w.strides[d])
		}
	}
	at(0)
}

func scaled(s []int, by int) []int {
	r := make([]int, len(s))
	for i, v := range s {
		r[i] = v * by
	}
	return r
}

// direct writes an operation as loops over its operands in memory.
func (g *Generator) direct(d *plan.Direct) (Unit, error) {
	n := d.Node
	f := g.M.NewFunc(repeat(emit.I32, len(d.In)+2)...)
	// The last two parameters are the result and, for an NF4 operand, its scales.
	out := f.Param(len(d.In))
	u := Unit{}
	for _, r := range d.In {
		u.Args = append(u.Args, int32(r.Addr()))
	}
	u.Args = append(u.Args, int32(d.Out.Addr()), int32(d.In[0].Buf.Scales))
	if n.Len() > 0 {
		switch n.Op {
		case ir.Param:
			g.decode(f, n, out)
		case ir.Gather:
			g.gather(f, n, out, d.In[0].Buf.NF4)
		case ir.ScatterSum, ir.ScatterMax, ir.ScatterMin:
			g.scatter(f, n, out, d.In[0] == d.Out)
		case ir.ArgMax, ir.ArgMin:
			g.argMinMax(f, n, out)
		case ir.DynamicSlice, ir.DynamicUpdate:
			g.dynamic(f, n, out)
		case ir.Window:
			g.window(f, n, out)
		default:
			return u, fmt.Errorf("codegen: no code for %v", n)
		}
	}
	u.Func = g.M.Adopt(f)
	return u, nil
}

// copyOf starts the result as a copy of an operand.
func copyOf(f *emit.Func, out, in emit.Local, n *ir.Node) {
	f.Get(out)
	f.Get(in)
	f.MemoryCopy(uint32(n.Bytes()))
}

func (g *Generator) argMinMax(f *emit.Func, n *ir.Node, out emit.Local) {
	x := n.In[0]
	xs, os := ir.Strides(x.Dims), ir.Strides(n.Dims)
	var sizes, xw, ow []int
	for i, k := 0, 0; i < len(x.Dims); i++ {
		if i == n.Axis {
			continue
		}
		sizes, xw, ow = append(sizes, x.Dims[i]), append(xw, xs[i]), append(ow, os[k])
		k++
	}
	size := x.DType.Size()
	src, dst := f.New(emit.I32), f.New(emit.I32)
	best, at, i, v := f.New(valType(x.DType)), f.New(emit.I32), f.New(emit.I32), f.New(valType(x.DType))
	f.Get(f.Param(0))
	f.Set(src)
	f.Get(out)
	f.Set(dst)
	cmp := map[ir.DType][2]emit.Opcode{ir.F32: {emit.F32Gt, emit.F32Lt}, ir.I32: {emit.I32GtS, emit.I32LtS},
		ir.I64: {emit.I64GtS, emit.I64LtS}}[x.DType][n.Op-ir.ArgMax]
	walk(f, sizes, []walker{{src, scaled(xw, size)}, {dst, scaled(ow, n.DType.Size())}}, func() {
		f.Get(src)
		f.Load(loadOp(x.DType), 0)
		f.Set(best)
		f.I32(0)
		f.Set(at)
		f.LoopUp(i, x.Dims[n.Axis], 1, func() {
			f.Get(src)
			f.Get(i)
			f.I32(int32(xs[n.Axis] * size))
			f.Op(emit.I32Mul)
			f.Op(emit.I32Add)
			f.Load(loadOp(x.DType), 0)
			f.Tee(v)
			f.Get(best)
			f.Op(cmp)
			if x.DType == ir.F32 { // the first NaN wins
				f.Get(v)
				f.Get(v)
				f.Op(emit.F32Ne)
				f.Get(best)
				f.Get(best)
				f.Op(emit.F32Eq)
				f.Op(emit.I32And)
				f.Op(emit.I32Or)
			}
			f.If()
			f.Get(v)
			f.Set(best)
			f.Get(i)
			f.Set(at)
			f.End()
		})
		f.Get(dst)
		f.Get(at)
		if n.DType == ir.I64 {
			f.Op(emit.I64ExtendI32S)
		}
		f.Store(storeOp(n.DType), 0)
	})
}

// window writes a windowed reduction, one result at a time.
func (g *Generator) window(f *emit.Func, n *ir.Node, out emit.Local) {
	x, w := n.In[0], n.Window
	rank := len(x.Dims)
	size := n.DType.Size()
	xs := ir.Strides(x.Dims)
	dst, src, pos := f.New(emit.I32), f.New(emit.I32), f.New(emit.I32)
	acc := f.New(valType(n.DType))
	at, in := make([]emit.Local, rank), make([]emit.Local, rank)
	for i := range rank {
		at[i], in[i] = f.New(emit.I32), f.New(emit.I32)
	}
	f.Get(out)
	f.Set(dst)
	k0 := &kernel{f: f, vecAt: -1, consts: map[uint32]emit.Local{}}
	var outer, inner func(d int)
	inner = func(d int) {
		if d < rank {
			f.LoopUp(in[d], w.Dims[d], 1, func() { inner(d + 1) })
			return
		}
		f.Block() // left where the window is over padding or between dilated elements
		f.Get(f.Param(0))
		f.Set(src)
		for i := range rank {
			f.Get(at[i])
			f.I32(int32(w.Strides[i]))
			f.Op(emit.I32Mul)
			f.Get(in[i])
			f.I32(int32(w.WindowDilations[i]))
			f.Op(emit.I32Mul)
			f.Op(emit.I32Add)
			f.I32(int32(w.Pads[i][0]))
			f.Op(emit.I32Sub)
			f.Tee(pos)
			f.I32(int32((x.Dims[i] - 1) * w.InputDilations[i]))
			f.Op(emit.I32GtU)
			f.BrIf(0)
			if w.InputDilations[i] > 1 {
				f.Get(pos)
				f.I32(int32(w.InputDilations[i]))
				f.Op(emit.I32RemU)
				f.BrIf(0)
			}
			f.Get(pos)
			f.I32(int32(w.InputDilations[i]))
			f.Op(emit.I32DivU)
			f.I32(int32(xs[i] * size))
			f.Op(emit.I32Mul)
			f.Get(src)
			f.Op(emit.I32Add)
			f.Set(src)
		}
		f.Get(acc)
		f.Get(src)
		f.Load(loadOp(n.DType), 0)
		k0.scalarOp(combine(n.Reduce), n.DType)
		f.Set(acc)
		f.End()
	}
	outer = func(d int) {
		if d < rank {
			f.LoopUp(at[d], n.Dims[d], 1, func() { outer(d + 1) })
			return
		}
		pushConst(f, n.DType, ir.Neutral(n.Reduce, n.DType))
		f.Set(acc)
		inner(0)
		f.Get(dst)
		f.Get(acc)
		f.Store(storeOp(n.DType), 0)
		f.AddConst(dst, size)
	}
	outer(0)
}
