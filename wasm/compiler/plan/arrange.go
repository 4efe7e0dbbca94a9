package plan

import (
	"encoding/binary"
	"fmt"

	"github.com/starling-fl/starling/wasm/compiler/ir"
)

// Operations that arrange or fill memory: pads, concatenations, copies.

// fill stores one value, given by its bits, in every element of a node.
func (l *lowering) fill(n *ir.Node, bits uint64) error {
	data := binary.LittleEndian.AppendUint64(nil, bits)[:n.DType.Size()]
	value := &ir.Node{ID: -2, Op: ir.Const, DType: n.DType, Attr: ir.Attr{Data: data}}
	filled := &ir.Node{ID: -1, Op: ir.Broadcast, DType: n.DType, Dims: n.Dims, In: []*ir.Node{value}}
	return l.copyInto(filled, Ref{l.bufs[n], 0}, ir.Strides(n.Dims))
}

// copyTo copies a node's value, dense, to a buffer.
func (l *lowering) copyTo(n *ir.Node, dst *Buffer) error {
	return l.copyInto(n, Ref{dst, 0}, ir.Strides(n.Dims))
}

// copyInto evaluates n and stores it at dst with the given strides, one an axis.
func (l *lowering) copyInto(n *ir.Node, dst Ref, strides []int) error {
	d := newDomain(n.Dims)
	var loop *Loop
	err := overSplits(d, func() error {
		e := l.newExpr(d, 0)
		e.loop.Kept = len(e.sizes)
		idx := identity(d)
		v, err := e.value(n, idx, l.bufs[n] == dst.Buf)
		if err != nil {
			return err
		}
		out := affine{m: make([]int, len(e.sizes))}
		for i, s := range strides {
			out = out.plus(idx[i].scaled(s))
		}
		e.loop.Outs = []Out{{v, Leaf{dst, n.DType, out.m}}}
		loop = e.loop
		return nil
	})
	if err != nil {
		return err
	}
	coalesce(loop)
	if err := l.wide(loop, &ir.Node{Op: ir.Barrier, In: []*ir.Node{n}}); err != nil {
		return err
	}
	l.plan.Stages = append(l.plan.Stages, loop)
	return nil
}

// pad fills the result and copies the operand into its place.
func (l *lowering) pad(n *ir.Node) error {
	x, fill := n.In[0], n.In[1]
	for i, p := range n.Pads {
		if p.Start < 0 || p.End < 0 || p.Interior < 0 && x.Dims[i] > 1 {
			return fmt.Errorf("plan: negative padding %v of axis %d", p, i)
		}
	}
	size := n.DType.Size()
	filled := &ir.Node{ID: -1, Op: ir.Broadcast, DType: n.DType, Dims: n.Dims, In: []*ir.Node{fill}}
	if err := l.copyInto(filled, Ref{l.bufs[n], 0}, ir.Strides(n.Dims)); err != nil {
		return err
	}
	if x.Len() == 0 {
		return nil
	}
	off := 0
	strides := ir.Strides(n.Dims)
	for i, p := range n.Pads {
		off += p.Start * strides[i]
		strides[i] *= p.Interior + 1
	}
	return l.copyInto(x, Ref{l.bufs[n], off * size}, strides)
}

func (l *lowering) concat(n *ir.Node) error {
	off := 0
	strides := ir.Strides(n.Dims)
	for _, in := range n.In {
		if in.Len() == 0 {
			continue
		}
		if err := l.copyInto(in, Ref{l.bufs[n], off * strides[n.Axis] * n.DType.Size()}, strides); err != nil {
			return err
		}
		off += in.Dims[n.Axis]
	}
	return nil
}
