package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-fl/starling/wasm/compiler/ir"
)

// expr builds the values of one loop.
type expr struct {
	l      *lowering
	sizes  []int
	own    map[*ir.Node]bool // stored nodes that this loop computes itself, at the identity index
	loop   *Loop
	memo   map[string]*Value
	leaves map[string]int
}

// errForeign says that a node computed by the same loop is wanted at another index.
var errForeign = errors.New("plan: operand is computed by the same loop at another index")

func indexKey(idx []affine) string {
	s := ""
	for _, a := range idx {
		s += a.key()
	}
	return s
}

func (e *expr) value(n *ir.Node, idx []affine, root bool) (*Value, error) {
	key := fmt.Sprint(n.ID, "@", indexKey(idx))
	if v, ok := e.memo[key]; ok {
		return v, nil
	}
	v, err := e.make(n, idx, root)
	if err == nil {
		e.memo[key] = v
	}
	return v, err
}

func (e *expr) make(n *ir.Node, idx []affine, root bool) (*Value, error) {
	if n.IsScalarConst() {
		return &Value{Op: ir.Const, DType: n.DType, Bits: n.Bits()}, nil
	}
	if e.own[n] && !root {
		return nil, errForeign // at the identity index it is in memo, put there before its users
	}
	if e.l.stored[n] && !root {
		return e.load(n, linear(idx, n.Dims, len(e.sizes)))
	}
	switch {
	case n.Op == ir.Iota:
		a := idx[n.Axis]
		return &Value{Op: ir.Iota, DType: n.DType, Base: a.c, Strides: a.m}, nil
	case n.Op.IsView():
		x := n.In[0]
		if n.Op == ir.Reshape {
			lin := linear(idx, n.Dims, len(e.sizes))
			if e.l.stored[x] && !e.own[x] {
				return e.load(x, lin)
			}
			if x.IsScalarConst() {
				return e.value(x, nil, false)
			}
			in, ok, err := delinear(lin, e.sizes, x.Dims)
			if err != nil {
				return nil, err
			}
			if !ok {
				return nil, &needError{x}
			}
			return e.value(x, in, false)
		}
		return e.value(x, through(n, idx, len(e.sizes)), false)
	case n.Op.IsElementwise():
		v := &Value{Op: n.Op, DType: n.DType}
		for _, in := range n.In {
			iv, err := e.value(in, idx, false)
			if err != nil {
				return nil, err
			}
			v.In = append(v.In, iv)
		}
		return v, nil
	}
	return nil, fmt.Errorf("plan: %v is neither stored nor computable in a loop", n)
}

// through maps an index of a view to an index of its operand.
func through(n *ir.Node, idx []affine, loops int) []affine {
	x := n.In[0]
	in := make([]affine, len(x.Dims))
	switch n.Op {
	case ir.Transpose:
		for i, a := range n.Axes {
			in[a] = idx[i]
		}
	case ir.Broadcast:
		for i, a := range n.Axes {
			if x.Dims[i] == 1 {
				in[i] = affine{m: make([]int, loops)}
			} else {
				in[i] = idx[a]
			}
		}
	case ir.Slice:
		for i := range in {
			in[i] = idx[i].scaled(n.Attr.Strides[i])
			in[i].c += n.Starts[i]
		}
	case ir.Reverse:
		copy(in, idx)
		for _, a := range n.Axes {
			in[a] = idx[a].scaled(-1)
			in[a].c += x.Dims[a] - 1
		}
	}
	return in
}

func (e *expr) load(n *ir.Node, lin affine) (*Value, error) {
	b := e.l.bufs[n]
	if b == nil {
		return nil, fmt.Errorf("plan: %v has no buffer yet", n)
	}
	if b.NF4 {
		return nil, &decodeError{n}
	}
	for j, s := range e.sizes { // counters that never move do not matter
		if s == 1 {
			lin.m[j] = 0
		}
	}
	key := fmt.Sprint(n.ID, lin.key())
	i, ok := e.leaves[key]
	if !ok {
		i = len(e.loop.Leaves)
		e.leaves[key] = i
		e.loop.Leaves = append(e.loop.Leaves, Leaf{Ref{b, lin.c * n.DType.Size()}, n.DType, lin.m})
	}
	return &Value{Op: ir.Param, DType: n.DType, Leaf: i}, nil
}

// decodeError says that an NF4 tensor is wanted where only plain numbers can be read.
type decodeError struct{ node *ir.Node }

func (e *decodeError) Error() string {
	return fmt.Sprintf("plan: parameter %q is NF4 and used other than as a matrix or in a Gather", e.node.Name)
}

// newExpr starts a loop over a domain.
func (l *lowering) newExpr(d *domain, kept int) *expr {
	return &expr{l: l, sizes: d.sizes(), loop: &Loop{Sizes: d.sizes(), Kept: kept}, own: map[*ir.Node]bool{},
		memo: map[string]*Value{}, leaves: map[string]int{}}
}

// overSplits runs build, cutting the domain as long as it asks for it.
func overSplits(d *domain, build func() error) error {
	for range 64 {
		err := build()
		var s *splitError
		if !errors.As(err, &s) {
			return err
		}
		d.split(s)
	}
	return errors.New("plan: loop cannot be cut finely enough")
}

// loopOf plans as many of the nodes as can share the first one's loop, and returns how many from the front.
func (l *lowering) loopOf(nodes []*ir.Node) (int, error) {
	first := nodes[0]
	count := 1
	for count < min(len(nodes), maxParams) && slices.Equal(nodes[count].Dims, first.Dims) { // each has an output
		count++
	}
	for {
		loop, err := l.tryLoop(nodes[:count])
		if errors.Is(err, errForeign) || err == nil && len(loop.Leaves)+len(loop.Outs) > maxParams && count > 1 {
			count--
			continue
		}
		if err != nil {
			return 0, err
		}
		if err := l.wide(loop, first); err != nil {
			return 0, err
		}
		l.plan.Stages = append(l.plan.Stages, loop)
		return count, nil
	}
}

func (l *lowering) tryLoop(nodes []*ir.Node) (*Loop, error) {
	d := newDomain(nodes[0].Dims)
	var loop *Loop
	err := overSplits(d, func() error {
		e := l.newExpr(d, -1)
		idx := identity(d)
		for _, n := range nodes {
			e.own[n] = true
		}
		out := linear(idx, nodes[0].Dims, len(e.sizes))
		for _, n := range nodes {
			v, err := e.value(n, idx, true)
			if err != nil {
				return err
			}
			e.loop.Outs = append(e.loop.Outs, Out{v, Leaf{Ref{l.bufs[n], 0}, n.DType, slices.Clone(out.m)}})
		}
		e.loop.Kept = len(e.sizes)
		loop = e.loop
		return nil
	})
	if err != nil {
		return nil, err
	}
	coalesce(loop)
	return loop, nil
}

func identity(d *domain) []affine {
	idx := make([]affine, len(d.factors))
	for i := range idx {
		idx[i] = d.index(i)
	}
	return idx
}

// reduce plans a reduction: kept axes outside, reduced ones inside.
func (l *lowering) reduce(n *ir.Node) error {
	x := n.In[0]
	if x.Len() == 0 {
		return l.fill(n, ir.Neutral(n.Op, n.DType))
	}
	var order []int
	for i := range x.Dims {
		if !slices.Contains(n.Axes, i) {
			order = append(order, i)
		}
	}
	nkept := len(order)
	order = append(order, n.Axes...)
	dims := make([]int, len(order))
	for i, a := range order {
		dims[i] = x.Dims[a]
	}
	d := newDomain(dims)
	var loop *Loop
	err := overSplits(d, func() error {
		kept := 0
		for _, f := range d.factors[:nkept] {
			kept += len(f)
		}
		e := l.newExpr(d, kept)
		idx := make([]affine, len(x.Dims))
		out := make([]affine, nkept)
		for i, a := range order {
			idx[a] = d.index(i)
			if i < nkept {
				out[i] = idx[a]
			}
		}
		v, err := e.value(x, idx, false)
		if err != nil {
			return err
		}
		lin := linear(out, n.Dims, len(e.sizes))
		e.loop.Reduce = n.Op
		e.loop.Outs = []Out{{v, Leaf{Ref{l.bufs[n], 0}, n.DType, lin.m}}}
		loop = e.loop
		return nil
	})
	if err != nil {
		return err
	}
	coalesce(loop)
	if err := l.wide(loop, n); err != nil {
		return err
	}
	l.plan.Stages = append(l.plan.Stages, loop)
	return nil
}

// wide asks for an operand of root to be stored, where the loop would need more parameters than a function may have.
func (l *lowering) wide(loop *Loop, root *ir.Node) error {
	if len(loop.Leaves)+len(loop.Outs) <= maxParams {
		return nil
	}
	for queue := slices.Clone(root.In); len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		switch {
		case n.Op.IsElementwise() && !l.stored[n]:
			return &needError{n}
		case n.Op.IsView() && !l.stored[n]:
			queue = append(queue, n.In...)
		}
	}
	return fmt.Errorf("plan: %v reads %d operands, limit %d", root, len(loop.Leaves), maxParams-len(loop.Outs))
}

// coalesce drops loops of one trip and merges neighbours that every operand walks as one.
func coalesce(l *Loop) {
	var strides []*[]int
	for i := range l.Leaves {
		strides = append(strides, &l.Leaves[i].Strides)
	}
	for i := range l.Outs {
		strides = append(strides, &l.Outs[i].Strides)
	}
	seen := map[*Value]bool{}
	var walk func(v *Value)
	walk = func(v *Value) {
		if seen[v] {
			return
		}
		seen[v] = true
		if v.Op == ir.Iota {
			v.Strides = slices.Clone(v.Strides)
			strides = append(strides, &v.Strides)
		}
		for _, in := range v.In {
			walk(in)
		}
	}
	for _, o := range l.Outs {
		walk(o.Value)
	}
	drop := func(j int) {
		l.Sizes = slices.Delete(l.Sizes, j, j+1)
		for _, s := range strides {
			*s = slices.Delete(*s, j, j+1)
		}
		if j < l.Kept {
			l.Kept--
		}
	}
	for j := len(l.Sizes) - 1; j >= 0; j-- {
		if l.Sizes[j] == 1 {
			drop(j)
		}
	}
	for j := len(l.Sizes) - 2; j >= 0; j-- {
		if j+1 == l.Kept {
			continue // kept and reduced loops stay apart
		}
		ok := true
		for _, s := range strides {
			ok = ok && (*s)[j] == (*s)[j+1]*l.Sizes[j+1]
		}
		if ok {
			l.Sizes[j+1] *= l.Sizes[j]
			drop(j)
		}
	}
}
