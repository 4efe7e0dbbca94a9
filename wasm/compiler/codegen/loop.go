package codegen

import (
	"github.com/starling-fl/starling/wasm/compiler/emit"
	"github.com/starling-fl/starling/wasm/compiler/ir"
	"github.com/starling-fl/starling/wasm/compiler/plan"
)

// mover is a local that follows the loop counters: the address of a leaf or a result, or the value of an iota.
type mover struct {
	local   emit.Local
	strides []int // bytes (or iota units) a step of each loop
}

// kernel is one loop being written.
type kernel struct {
	f      *emit.Func
	shape  Shape
	l      *plan.Loop
	order  []int // loops from outer to inner
	vecAt  int   // depth (place in order) of the vectorised loop; -1: scalar code
	leaves []mover
	outs   []mover
	iotas  map[*plan.Value]mover
	values []*plan.Value // all, operands first
	uses   map[*plan.Value]int
	depth  map[*plan.Value]int // 0: outside of all loops, d+1: inside loop order[d]
	held   map[*plan.Value]emit.Local
	inner  int                   // depth at which the stores or the reduction happen
	consts map[uint32]emit.Local // splatted constants, set before the loops
	wanted []uint32              // constants that a first pass met
	lanes  map[*plan.Value]bool  // values that are per-lane (depend on the vectorised loop)
	memo   map[*plan.Value]emit.Local
}

// loop writes a function for l; ok is false for a loop without any work.
func (g *Generator) loop(l *plan.Loop) (u Unit, ok bool) {
	n := 1
	for i, s := range l.Sizes {
		if i >= l.Kept && s == 0 {
			panic("codegen: reduction over nothing must be planned as a constant")
		}
		n *= s
	}
	if n == 0 {
		return Unit{}, false
	}
	var wanted []uint32
	var f *emit.Func
	var k *kernel
	for range 2 { // the first pass finds the constants
		f = g.M.NewFunc(repeat(emit.I32, len(l.Leaves)+len(l.Outs))...)
		k = newKernel(f, g.Shape, l)
		k.wanted = wanted
		k.write()
		wanted = k.wanted
	}
	u = Unit{Func: g.M.Adopt(f)}
	for _, leaf := range l.Leaves {
		u.Args = append(u.Args, int32(leaf.Addr()))
	}
	for _, o := range l.Outs {
		u.Args = append(u.Args, int32(o.Addr()))
	}
	return u, true
}

func newKernel(f *emit.Func, shape Shape, l *plan.Loop) *kernel {
	k := &kernel{f: f, shape: shape, l: l, vecAt: -1, iotas: map[*plan.Value]mover{}, uses: map[*plan.Value]int{},
		depth: map[*plan.Value]int{}, held: map[*plan.Value]emit.Local{}, consts: map[uint32]emit.Local{},
		lanes: map[*plan.Value]bool{}, memo: map[*plan.Value]emit.Local{}}
	seen := map[*plan.Value]bool{}
	var walk func(v *plan.Value)
	walk = func(v *plan.Value) {
		k.uses[v]++
		if seen[v] {
			return
		}
		seen[v] = true
		for _, in := range v.In {
			walk(in)
		}
		k.values = append(k.values, v)
	}
	for _, o := range l.Outs {
		walk(o.Value)
	}
	bytes := func(strides []int, size int) []int {
		b := make([]int, len(strides))
		for i, s := range strides {
			b[i] = s * size
		}
		return b
	}
	for i, leaf := range l.Leaves {
		k.leaves = append(k.leaves, mover{f.Param(i), bytes(leaf.Strides, leaf.DType.Size())})
	}
	for i, o := range l.Outs {
		k.outs = append(k.outs, mover{f.Param(len(l.Leaves) + i), bytes(o.Strides, o.DType.Size())})
	}
	for i := range l.Sizes {
		k.order = append(k.order, i)
	}
	k.inner = len(k.order)
	k.choose()
	for _, v := range k.values {
		if v.Op == ir.Iota {
			k.iotas[v] = mover{f.New(emit.I32), v.Strides}
		}
	}
	for _, v := range k.values {
		d := 0
		for _, in := range v.In {
			d = max(d, k.depth[in])
		}
		var strides []int
		switch v.Op {
		case ir.Param:
			strides = l.Leaves[v.Leaf].Strides
		case ir.Iota:
			strides = v.Strides
		}
		for at, axis := range k.order {
			if strides != nil && strides[axis] != 0 {
				d = max(d, at+1)
			}
		}
		k.depth[v] = d
		if k.vecAt >= 0 {
			lane := strides != nil && strides[k.order[k.vecAt]] != 0
			for _, in := range v.In {
				lane = lane || k.lanes[in]
			}
			k.lanes[v] = lane
		}
	}
	return k
}

// choose picks the loop whose steps become vector lanes, and the order of loops.
func (k *kernel) choose() {
	l := k.l
	if len(l.Sizes) == 0 || !k.vectorizable() {
		return
	}
	last := len(l.Sizes) - 1
	if l.Reduce == ir.Invalid {
		ok := l.Sizes[last] >= 4
		for _, o := range l.Outs {
			ok = ok && o.Strides[last] == 1
		}
		if ok {
			k.vecAt = last
		}
		return
	}
	unit := func(axis int) (n int) {
		for _, leaf := range l.Leaves {
			if leaf.Strides[axis] == 1 {
				n++
			}
		}
		return n
	}
	if l.Kept > 0 {
		a := l.Kept - 1
		if l.Sizes[a] >= 4 && l.Outs[0].Strides[a] == 1 && (unit(a) > unit(last) || l.Sizes[last] < 4) {
			k.vecAt = a
			return
		}
	}
	if l.Sizes[last] >= 4 {
		k.vecAt = last
	}
}

func (k *kernel) movers(do func(m mover)) {
	for _, m := range k.leaves {
		do(m)
	}
	for _, m := range k.outs {
		do(m)
	}
	for _, v := range k.values {
		if m, ok := k.iotas[v]; ok {
			do(m)
		}
	}
}

// step advances every mover by n steps of the loop at depth d, less what the loops inside moved it.
func (k *kernel) step(d, n int) {
	k.movers(func(m mover) {
		v := n * m.strides[k.order[d]]
		if d+1 < len(k.order) {
			in := k.order[d+1]
			v -= k.l.Sizes[in] * m.strides[in]
		}
		k.f.AddConst(m.local, v)
	})
}

func (k *kernel) write() {
	for _, v := range k.values {
		if m, ok := k.iotas[v]; ok {
			k.f.I32(int32(v.Base))
			k.f.Set(m.local)
		}
	}
	for _, bits := range k.wanted {
		l := k.f.New(emit.V128)
		k.f.V32(bits)
		k.f.Set(l)
		k.consts[bits] = l
	}
	if k.l.Reduce != ir.Invalid {
		k.inner = len(k.order)
		k.writeReduce()
		return
	}
	k.hold(0)
	k.nest(0, len(k.order), func() { k.storeAll(0, false) })
}

// nest writes loops order[d:end] around body; the loop at vecAt, where it is the last, is cut into vector blocks.
func (k *kernel) nest(d, end int, body func()) {
	if d == end {
		body()
		return
	}
	n := k.l.Sizes[k.order[d]]
	if d == k.vecAt && d == end-1 && k.l.Reduce == ir.Invalid {
		k.blocks(d, n, func(u int) { k.storeAll(u, true) }, body)
		return
	}
	i := k.f.New(emit.I32)
	once := func() {
		k.hold(d + 1)
		k.nest(d+1, end, body)
		k.step(d, 1)
	}
	if n == 1 {
		once()
	} else {
		k.f.Loop(i, n, 1, once)
	}
	k.f.Free(i)
}

// repeat writes so many trips of body, each of which takes loop d by width elements.
func (k *kernel) repeat(d, trips, width int, body func()) {
	if trips == 0 {
		return
	}
	once := func() {
		body()
		k.step(d, width)
	}
	if trips == 1 {
		once()
		return
	}
	i := k.f.New(emit.I32)
	k.f.Loop(i, trips, 1, once)
	k.f.Free(i)
}

// blocks covers n steps of the vectorised loop: unrolled vectors, single vectors, single elements.
func (k *kernel) blocks(d, n int, vector func(u int), element func()) {
	unroll := k.shape.Unroll
	if len(k.values) > 60 {
		unroll = 1
	}
	main := n / (4 * unroll)
	k.repeat(d, main, 4*unroll, func() {
		k.touchLeaves(4 * unroll)
		k.touchOuts(4 * unroll)
		for u := range unroll {
			vector(u)
			k.forget()
		}
	})
	n -= main * 4 * unroll
	k.repeat(d, n/4, 4, func() {
		vector(0)
		k.forget()
	})
	k.repeat(d, n%4, 1, func() {
		element()
		k.forget()
	})
}

// touchLeaves reads ahead the last of n elements along the vectorised loop of every operand; see touch.
func (k *kernel) touchLeaves(n int) {
	for i, m := range k.leaves {
		if s := m.strides[k.order[k.vecAt]]; s > 0 {
			touch(k.f, k.shape, m.local, (n-1)*s+k.l.Leaves[i].DType.Size())
		}
	}
}

func (k *kernel) touchOuts(n int) {
	for i, m := range k.outs {
		if s := m.strides[k.order[k.vecAt]]; s > 0 {
			touch(k.f, k.shape, m.local, (n-1)*s+k.l.Outs[i].DType.Size())
		}
	}
}

// hold computes what changes in the loop just entered (depth d) and stays the same in the loops inside.
func (k *kernel) hold(d int) {
	if d >= k.inner {
		return
	}
	for _, v := range k.values {
		if k.depth[v] != d || v.Op == ir.Const {
			continue
		}
		if k.lanes[v] {
			continue // the vectorised loop is further out: computed where it is used
		}
		l, ok := k.held[v]
		if !ok {
			l = k.f.New(k.stackType(v))
		}
		delete(k.held, v) // compute it anew, not from what an earlier block held
		k.emit(v, 0, false)
		k.f.Set(l)
		k.held[v] = l
	}
	k.forget()
}

// forget drops values that belong to one element or vector.
func (k *kernel) forget() {
	for _, v := range k.values {
		if l, ok := k.memo[v]; ok {
			k.f.Free(l)
			delete(k.memo, v)
		}
	}
}

func (k *kernel) stackType(v *plan.Value) emit.ValType {
	if k.vecAt >= 0 {
		return emit.V128
	}
	return valType(v.DType)
}

// emit pushes a value: four lanes of block u where vector is set, else one element (in lane 0 of vector code).
func (k *kernel) emit(v *plan.Value, u int, vector bool) {
	if l, ok := k.held[v]; ok {
		k.f.Get(l)
		return
	}
	if l, ok := k.memo[v]; ok {
		k.f.Get(l)
		return
	}
	if k.vecAt >= 0 {
		k.vecValue(v, u, vector)
	} else {
		k.scalarValue(v)
	}
	if k.uses[v] > 1 && v.Op != ir.Const {
		l := k.f.New(k.stackType(v))
		k.f.Tee(l)
		k.memo[v] = l
	}
}

// storeAll stores every result of one vector or element.
func (k *kernel) storeAll(u int, vector bool) {
	for i, o := range k.l.Outs {
		if k.vecAt >= 0 {
			k.storeVec(o.Value, o.DType, k.outs[i].local, 4*o.DType.Size()*u, u, vector)
			continue
		}
		k.f.Get(k.outs[i].local)
		k.emit(o.Value, 0, false)
		k.f.Store(storeOp(o.DType), 0)
	}
	if !vector {
		k.forget()
	}
}
