package codegen

import (
	"fmt"
	"slices"

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
	u := Unit{Cost: float64(n.Len())}
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
			g.scatter(f, n, out)
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

// loadIndex pushes an index as i32; 64-bit ones are clamped into its range first.
func loadIndex(f *emit.Func, p emit.Local, d ir.DType, offset int) {
	f.Get(p)
	if d == ir.I64 {
		x := f.New(emit.I64)
		f.Load(emit.I64Load, uint32(offset))
		f.Set(x)
		for _, lim := range []struct {
			v  int64
			op emit.Opcode
		}{{1<<31 - 1, emit.I64LtS}, {-1 << 31, emit.I64GtS}} {
			f.Get(x)
			f.I64(lim.v)
			f.Get(x)
			f.I64(lim.v)
			f.Op(lim.op)
			f.Op(emit.Select)
			f.Set(x)
		}
		f.Get(x)
		f.Op(emit.I32WrapI64)
		f.Free(x)
		return
	}
	if d == ir.Bool {
		f.Load(emit.I32Load8U, uint32(offset))
		return
	}
	f.Load(emit.I32Load, uint32(offset))
}

// clampTo clamps the i32 on the stack to 0..top.
func clampTo(f *emit.Func, top int) {
	x := f.New(emit.I32)
	f.Set(x)
	f.Get(x)
	f.I32(0)
	f.Get(x)
	f.I32(0)
	f.Op(emit.I32GtS)
	f.Op(emit.Select)
	f.Set(x)
	f.Get(x)
	f.I32(int32(top))
	f.Get(x)
	f.I32(int32(top))
	f.Op(emit.I32LtS)
	f.Op(emit.Select)
	f.Free(x)
}

// indexLayout returns the loops over index vectors, the strides of the index tensor in them, and the stride between
// the components of one vector (elements).
func indexLayout(idx *ir.Node, axis int) (sizes, strides []int, component int) {
	st := ir.Strides(idx.Dims)
	component = 1
	for i := range idx.Dims {
		if i == axis {
			component = st[i]
			continue
		}
		sizes = append(sizes, idx.Dims[i])
		strides = append(strides, st[i])
	}
	return sizes, strides, component
}

func (g *Generator) gather(f *emit.Func, n *ir.Node, out emit.Local, nf4 bool) {
	x, idx, spec := n.In[0], n.In[1], n.Attr.Gather
	size := n.DType.Size()
	sizes, istr, comp := indexLayout(idx, spec.IndexVectorAxis)
	ostr := ir.Strides(n.Dims)
	var batchOut, sliceOut []int
	for i := range n.Dims {
		if !slices.Contains(spec.OffsetAxes, i) {
			batchOut = append(batchOut, ostr[i])
		}
	}
	k := 0
	for i := range x.Dims {
		if slices.Contains(spec.CollapsedAxes, i) {
			sliceOut = append(sliceOut, 0)
			continue
		}
		sliceOut = append(sliceOut, ostr[spec.OffsetAxes[k]])
		k++
	}
	xstr := ir.Strides(x.Dims)
	// The innermost axes that are dense in both tensors are copied at once.
	run, last := 1, len(x.Dims)
	for last > 0 {
		a := last - 1
		if spec.SliceSizes[a] > 1 && (xstr[a] != run || sliceOut[a] != run) {
			break
		}
		run *= spec.SliceSizes[a]
		last = a
	}
	p, dst, src := f.New(emit.I32), f.New(emit.I32), f.New(emit.I32)
	f.Get(f.Param(1))
	f.Set(p)
	f.Get(out)
	f.Set(dst)
	elem := size
	if nf4 {
		elem = 1 // src counts elements
	}
	walk(f, sizes, []walker{{p, scaled(istr, idx.DType.Size())}, {dst, scaled(batchOut, size)}}, func() {
		if nf4 {
			f.I32(0)
		} else {
			f.Get(f.Param(0))
		}
		f.Set(src)
		for j, a := range spec.StartIndexMap {
			loadIndex(f, p, idx.DType, j*comp*idx.DType.Size())
			clampTo(f, x.Dims[a]-spec.SliceSizes[a])
			f.I32(int32(xstr[a] * elem))
			f.Op(emit.I32Mul)
			f.Get(src)
			f.Op(emit.I32Add)
			f.Set(src)
		}
		walk(f, spec.SliceSizes[:last], []walker{{src, scaled(xstr[:last], elem)}, {dst, scaled(sliceOut[:last], size)}}, func() {
			switch {
			case nf4:
				aligned := run%8 == 0
				for _, a := range spec.StartIndexMap {
					aligned = aligned && xstr[a]%8 == 0
				}
				g.decodeRun(f, src, f.Param(0), f.Param(3), dst, run, aligned && last == 0 || aligned && allMultiples(xstr[:last], 8))
			case run == 1:
				f.Get(dst)
				f.Get(src)
				f.Load(loadOp(n.DType), 0)
				f.Store(storeOp(n.DType), 0)
			default:
				f.Get(dst)
				f.Get(src)
				f.MemoryCopy(uint32(run * size))
			}
		})
	})
}

func allMultiples(s []int, of int) bool {
	return !slices.ContainsFunc(s, func(v int) bool { return v%of != 0 })
}

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

func (g *Generator) scatter(f *emit.Func, n *ir.Node, out emit.Local) {
	x, idx, upd, spec := n.In[0], n.In[1], n.In[2], n.Attr.Gather
	size := n.DType.Size()
	copyOf(f, out, f.Param(0), n)
	if upd.Len() == 0 {
		return
	}
	sizes, istr, comp := indexLayout(idx, spec.IndexVectorAxis)
	ustr, xstr := ir.Strides(upd.Dims), ir.Strides(x.Dims)
	var batchUpd, winSizes, winUpd, winX []int
	for i := range upd.Dims {
		if !slices.Contains(spec.UpdateWindowAxes, i) {
			batchUpd = append(batchUpd, ustr[i])
		}
	}
	window := make([]int, len(x.Dims)) // size of the window along each axis of the operand
	k := 0
	for i := range x.Dims {
		window[i] = 1
		if slices.Contains(spec.InsertedWindowAxes, i) {
			continue
		}
		a := spec.UpdateWindowAxes[k]
		k++
		window[i] = upd.Dims[a]
		winSizes, winUpd, winX = append(winSizes, upd.Dims[a]), append(winUpd, ustr[a]), append(winX, xstr[i])
	}
	p, u, dst, t := f.New(emit.I32), f.New(emit.I32), f.New(emit.I32), f.New(emit.I32)
	f.Get(f.Param(1))
	f.Set(p)
	f.Get(f.Param(2))
	f.Set(u)
	op := map[ir.Op]ir.Op{ir.ScatterSum: ir.Add, ir.ScatterMax: ir.Max, ir.ScatterMin: ir.Min}[n.Op]
	k0 := &kernel{f: f, vecAt: -1, consts: map[uint32]emit.Local{}}
	walk(f, sizes, []walker{{p, scaled(istr, idx.DType.Size())}, {u, scaled(batchUpd, size)}}, func() {
		f.Block() // left where an index is out of range: that update is dropped
		f.Get(out)
		f.Set(dst)
		for j, a := range spec.ScatterAxesToOperandAxes {
			loadIndex(f, p, idx.DType, j*comp*idx.DType.Size())
			f.Tee(t)
			f.I32(int32(x.Dims[a] - window[a]))
			f.Op(emit.I32GtU)
			f.BrIf(0)
			f.Get(t)
			f.I32(int32(xstr[a] * size))
			f.Op(emit.I32Mul)
			f.Get(dst)
			f.Op(emit.I32Add)
			f.Set(dst)
		}
		walk(f, winSizes, []walker{{u, scaled(winUpd, size)}, {dst, scaled(winX, size)}}, func() {
			f.Get(dst)
			f.Get(dst)
			f.Load(loadOp(n.DType), 0)
			f.Get(u)
			f.Load(loadOp(n.DType), 0)
			k0.scalarOp(op, n.DType)
			f.Store(storeOp(n.DType), 0)
		})
		f.End()
	})
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

// dynamic writes DynamicSlice and DynamicUpdate: a box at starts known at run time, clamped into the operand.
func (g *Generator) dynamic(f *emit.Func, n *ir.Node, out emit.Local) {
	x := n.In[0]
	box, starts, first := n.Dims, n.In[1:], 1
	if n.Op == ir.DynamicUpdate {
		box, starts, first = n.In[1].Dims, n.In[2:], 2
		copyOf(f, out, f.Param(0), n)
	}
	size := n.DType.Size()
	xs, bs := scaled(ir.Strides(x.Dims), size), scaled(ir.Strides(box), size)
	big, small := f.New(emit.I32), f.New(emit.I32)
	if n.Op == ir.DynamicUpdate {
		f.Get(out)
		f.Set(big)
		f.Get(f.Param(1))
	} else {
		f.Get(f.Param(0))
		f.Set(big)
		f.Get(out)
	}
	f.Set(small)
	for i, s := range starts {
		loadIndex(f, f.Param(first+i), s.DType, 0)
		clampTo(f, x.Dims[i]-box[i])
		f.I32(int32(xs[i]))
		f.Op(emit.I32Mul)
		f.Get(big)
		f.Op(emit.I32Add)
		f.Set(big)
	}
	if ir.Len(box) == 0 {
		return
	}
	walk(f, box, []walker{{big, xs}, {small, bs}}, func() {
		dst, src := small, big
		if n.Op == ir.DynamicUpdate {
			dst, src = big, small
		}
		f.Get(dst)
		f.Get(src)
		f.Load(loadOp(n.DType), 0)
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
