package plan

import (
	"slices"

	"github.com/starling-fl/starling/wasm/compiler/ir"
)

// leastVectors is the shortest part of an axis whose steps are vector lanes: parts of it are computed in the same order
// as the whole, see codegen's choice.
const leastVectors = 16

// Cut divides a stage into at most n that do the same in the same order: along its outermost axis of results that has
// more than one step. Every value is computed and every reduction summed as in the whole, so the bits are equal. A stage
// that cannot be cut (a reduction to one value, say) is returned alone.
func Cut(s Stage, n int) []Stage {
	switch s := s.(type) {
	case *Loop:
		return s.cut(n)
	case *Direct:
		return s.cut(n)
	}
	return []Stage{s}
}

// spans divides size into at most n equal spans of at least least steps, and calls part with each.
func spans(size, n, least int, part func(from, count int)) {
	n = max(1, min(n, size/least))
	for i := range n {
		from := i * size / n
		part(from, (i+1)*size/n-from)
	}
}

func (l *Loop) cut(n int) (parts []Stage) {
	results := l.Sizes
	if l.Reduce != ir.Invalid {
		results = l.Sizes[:l.Kept]
	}
	axis := slices.IndexFunc(results, func(n int) bool { return n > 1 })
	if axis < 0 {
		return []Stage{l}
	}
	least := 1
	if axis == len(results)-1 {
		least = leastVectors
	}
	spans(l.Sizes[axis], n, least, func(from, count int) {
		p := &Loop{Sizes: slices.Clone(l.Sizes), Kept: l.Kept, Leaves: slices.Clone(l.Leaves), Outs: slices.Clone(l.Outs), Reduce: l.Reduce}
		p.Sizes[axis] = count
		for i := range p.Leaves {
			p.Leaves[i].Off += from * p.Leaves[i].Strides[axis] * p.Leaves[i].DType.Size()
		}
		moved := map[*Value]*Value{}
		for i := range p.Outs {
			p.Outs[i].Off += from * p.Outs[i].Strides[axis] * p.Outs[i].DType.Size()
			p.Outs[i].Value = p.Outs[i].Value.moved(axis, from, moved)
		}
		parts = append(parts, p)
	})
	return parts
}

// moved is the value as a loop sees it that begins with step from of an axis. Values that are shared stay shared.
func (v *Value) moved(axis, from int, known map[*Value]*Value) *Value {
	if m, ok := known[v]; ok {
		return m
	}
	m := *v
	known[v] = &m
	m.In = make([]*Value, len(v.In))
	for i, in := range v.In {
		m.In[i] = in.moved(axis, from, known)
	}
	if v.Op == ir.Iota {
		m.Base += from * v.Strides[axis]
	}
	return &m
}

// cut divides an operation along the first axis of its result, or of what a scatter adds.
func (d *Direct) cut(n int) (parts []Stage) {
	node := d.Node
	switch node.Op {
	case ir.Gather:
		g := node.Attr.Gather
		if len(node.Dims) == 0 || slices.Contains(g.OffsetAxes, 0) || g.IndexVectorAxis == 0 {
			return []Stage{d}
		}
		spans(node.Dims[0], n, 1, func(from, count int) {
			p := d.with(first(node, count), 1, first(node.In[1], count))
			p.In[1].Off += from * step(node.In[1])
			p.Out.Off += from * step(node)
			parts = append(parts, p)
		})
	case ir.ScatterSum, ir.ScatterMax, ir.ScatterMin:
		g, updates := node.Attr.Gather, node.In[2]
		if len(updates.Dims) == 0 || slices.Contains(g.UpdateWindowAxes, 0) || g.IndexVectorAxis == 0 {
			return []Stage{d}
		}
		spans(updates.Dims[0], n, 1, func(from, count int) {
			p := d.with(node, 1, first(node.In[1], count))
			p.Node.In[2] = first(updates, count)
			p.In[1].Off += from * step(node.In[1])
			p.In[2].Off += from * step(updates)
			if from > 0 { // goes on with what the parts before it added to
				p.In[0] = d.Out
			}
			parts = append(parts, p)
		})
	case ir.ArgMax, ir.ArgMin:
		if len(node.Dims) == 0 || node.Axis == 0 {
			return []Stage{d}
		}
		spans(node.Dims[0], n, 1, func(from, count int) {
			p := d.with(first(node, count), 0, first(node.In[0], count))
			p.In[0].Off += from * step(node.In[0])
			p.Out.Off += from * step(node)
			parts = append(parts, p)
		})
	default:
		return []Stage{d}
	}
	return parts
}

// with is d for another node whose i-th operand is in.
func (d *Direct) with(n *ir.Node, i int, in *ir.Node) *Direct {
	c := *n
	c.In = slices.Clone(n.In)
	c.In[i] = in
	return &Direct{Node: &c, In: slices.Clone(d.In), Out: d.Out}
}

// first is the node with count steps of its first axis.
func first(n *ir.Node, count int) *ir.Node {
	c := *n
	c.Dims = slices.Clone(n.Dims)
	c.Dims[0] = count
	return &c
}

// step is the bytes from one step of a node's first axis to the next.
func step(n *ir.Node) int { return n.Bytes() / n.Dims[0] }
