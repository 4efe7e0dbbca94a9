package codegen

import (
	"math"

	"github.com/starling-fl/starling/wasm/compiler/emit"
	"github.com/starling-fl/starling/wasm/compiler/ir"
)

// combine is the elementwise operation of a reduction.
func combine(op ir.Op) ir.Op {
	return map[ir.Op]ir.Op{ir.ReduceSum: ir.Add, ir.ReduceProd: ir.Mul, ir.ReduceMax: ir.Max, ir.ReduceMin: ir.Min,
		ir.ReduceAnd: ir.And, ir.ReduceOr: ir.Or, ir.ReduceXor: ir.Xor}[op]
}

// writeReduce writes a reduction: kept loops outside, a set of accumulators, reduced loops inside.
func (k *kernel) writeReduce() {
	k.hold(0)
	kept := k.l.Kept
	switch {
	case k.vecAt < 0:
		k.nest(0, kept, k.reduceScalar)
	case k.vecAt == kept-1:
		k.nest(0, kept-1, k.reduceColumns)
	default:
		k.nest(0, kept, k.reduceRow)
	}
}

// reduceScalar reduces one element at a time.
func (k *kernel) reduceScalar() {
	f := k.f
	o := k.l.Outs[0]
	acc := f.New(valType(o.DType))
	pushConst(f, o.DType, ir.Neutral(k.l.Reduce, o.DType))
	f.Set(acc)
	k.nest(k.l.Kept, len(k.order), func() {
		f.Get(acc)
		k.emit(o.Value, 0, false)
		k.scalarOp(combine(k.l.Reduce), o.DType)
		f.Set(acc)
		k.forget()
	})
	f.Get(k.outs[0].local)
	f.Get(acc)
	f.Store(storeOp(o.DType), 0)
	f.Free(acc)
}

// reduceColumns keeps a vector of accumulators for neighbouring results and walks the reduced loops inside.
func (k *kernel) reduceColumns() {
	f := k.f
	d := k.vecAt
	o := k.l.Outs[0]
	op := combine(k.l.Reduce)
	id := uint32(ir.Neutral(k.l.Reduce, o.DType))
	block := func(vectors int, vector bool) {
		k.hold(d + 1)
		accs := make([]emit.Local, vectors)
		for u := range accs {
			accs[u] = f.New(emit.V128)
			k.constV(id)
			f.Set(accs[u])
		}
		k.nest(d+1, len(k.order), func() {
			if vector {
				k.touchLeaves(4 * vectors)
			}
			for u := range accs {
				f.Get(accs[u])
				k.emit(o.Value, u, vector)
				k.vecOp(op, o.DType)
				f.Set(accs[u])
				k.forget()
			}
		})
		for u := range accs {
			f.Get(k.outs[0].local)
			f.Get(accs[u])
			if vector {
				f.VLoad(emit.V128Store, uint32(16*u))
			} else {
				k.storeLane0(o.DType)
			}
		}
		f.Free(accs...)
	}
	n := k.l.Sizes[k.order[d]]
	k.repeat(d, n/16, 16, func() { block(4, true) })
	k.repeat(d, n%16/4, 4, func() { block(1, true) })
	k.repeat(d, n%4, 1, func() { block(1, false) })
}

// reduceRow reduces along the vectorised loop with four vectors of partial results, which are combined in a fixed
// order: (0+1)+(2+3), then lanes (0+2)+(1+3), then single elements.
func (k *kernel) reduceRow() {
	f := k.f
	d := k.vecAt // the last loop
	o := k.l.Outs[0]
	op := combine(k.l.Reduce)
	id := uint32(ir.Neutral(k.l.Reduce, o.DType))
	n := k.l.Sizes[k.order[d]]
	naccs := 1
	if n >= 16 {
		naccs = 4
	}
	accs := make([]emit.Local, naccs+1) // the last one for single elements
	for i := range accs {
		accs[i] = f.New(emit.V128)
		if i == naccs && n%4 == 0 {
			continue
		}
		k.constV(id)
		f.Set(accs[i])
	}
	add := func(acc emit.Local, u int, vector bool) {
		f.Get(acc)
		k.emit(o.Value, u, vector)
		k.vecOp(op, o.DType)
		f.Set(acc)
		k.forget()
	}
	k.nest(k.l.Kept, d, func() {
		m := n
		if naccs == 4 {
			k.repeat(d, n/16, 16, func() {
				k.touchLeaves(16)
				for u := range 4 {
					add(accs[u], u, true)
				}
			})
			m = n % 16
		}
		k.repeat(d, m/4, 4, func() { add(accs[0], 0, true) })
		k.repeat(d, m%4, 1, func() { add(accs[naccs], 0, false) })
	})
	merge := func(a, b emit.Local) {
		f.Get(a)
		f.Get(b)
		k.vecOp(op, o.DType)
		f.Set(a)
	}
	if naccs == 4 {
		merge(accs[0], accs[1])
		merge(accs[2], accs[3])
		merge(accs[0], accs[2])
	}
	t := accs[0]
	for _, s := range [][4]int{{2, 3, 0, 1}, {1, 0, 3, 2}} {
		f.Get(t)
		f.Get(t)
		f.Get(t)
		f.Shuffle32(s[0], s[1], s[2], s[3])
		k.vecOp(op, o.DType)
		f.Set(t)
	}
	if n%4 != 0 {
		merge(t, accs[naccs])
	}
	f.Get(k.outs[0].local)
	f.Get(t)
	k.storeLane0(o.DType)
	f.Free(accs...)
}

func pushConst(f *emit.Func, d ir.DType, bits uint64) {
	switch d {
	case ir.F32:
		f.F32(math.Float32frombits(uint32(bits)))
	case ir.I64:
		f.I64(int64(bits))
	default:
		f.I32(int32(bits))
	}
}
