package codegen

import (
	"slices"

	"github.com/starling-fl/starling/wasm/compiler/emit"
	"github.com/starling-fl/starling/wasm/compiler/ir"
)

// Gathers, scatters and dynamic slices: loops over index vectors that address boxes of a tensor.

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

func (g *Generator) scatter(f *emit.Func, n *ir.Node, out emit.Local, inPlace bool) {
	x, idx, upd, spec := n.In[0], n.In[1], n.In[2], n.Attr.Gather
	size := n.DType.Size()
	if !inPlace {
		copyOf(f, out, f.Param(0), n)
	}
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
