package ir

import (
	"encoding/binary"
	"math"
	"slices"
)

// simplify returns a node with the value of n, or nil where n must be recorded. It may rewrite n.
func (g *Graph) simplify(n *Node) *Node {
	switch n.Op {
	case Reshape:
		x := n.In[0]
		for x.Op == Reshape {
			x = x.In[0]
		}
		if slices.Equal(x.Dims, n.Dims) {
			return x
		}
		if x.Op == Const {
			return g.Add(Const, n.DType, n.Dims, Attr{Data: x.Data})
		}
		n.In = []*Node{x}
	case Transpose:
		x := n.In[0]
		if x.Op == Transpose {
			axes := make([]int, len(n.Axes))
			for i, a := range n.Axes {
				axes[i] = x.Axes[a]
			}
			n.Axes, n.In = axes, []*Node{x.In[0]}
			x = x.In[0]
		}
		if sorted(n.Axes) {
			return x
		}
		if !movesData(n.Axes, x.Dims) { // only axes of size 1 move
			return g.Add(Reshape, n.DType, n.Dims, Attr{}, x)
		}
	case Broadcast:
		if slices.Equal(n.In[0].Dims, n.Dims) {
			return n.In[0]
		}
		if n.In[0].Len() == n.Len() {
			return g.Add(Reshape, n.DType, n.Dims, Attr{}, n.In[0])
		}
		if x := n.In[0]; x.Op == Broadcast {
			axes := make([]int, len(x.Axes))
			for i, a := range x.Axes {
				axes[i] = n.Axes[a]
			}
			return g.Add(Broadcast, n.DType, n.Dims, Attr{Axes: axes}, x.In[0])
		}
		if x := n.In[0]; x.Len() == 1 && len(x.Dims) > 0 {
			return g.Add(Broadcast, n.DType, n.Dims, Attr{}, g.Add(Reshape, x.DType, nil, Attr{}, x))
		}
	case Slice:
		x := n.In[0]
		if slices.Equal(x.Dims, n.Dims) {
			return x
		}
	case Reverse:
		if !slices.ContainsFunc(n.Axes, func(a int) bool { return n.Dims[a] > 1 }) {
			return n.In[0]
		}
	case Convert:
		if n.In[0].DType == n.DType {
			return n.In[0]
		}
	case ReduceSum, ReduceProd, ReduceMax, ReduceMin, ReduceAnd, ReduceOr, ReduceXor:
		if n.Len() == n.In[0].Len() {
			return g.Add(Reshape, n.DType, n.Dims, Attr{}, n.In[0])
		}
	case Mul:
		for i, x := range n.In {
			if isSplat(x, 1) {
				return n.In[1-i]
			}
		}
	case Div:
		if isSplat(n.In[1], 1) {
			return n.In[0]
		}
	case Add:
		for i, x := range n.In {
			if isSplat(x, 0) && n.DType != F32 {
				return n.In[1-i]
			}
		}
	case Neg:
		if n.In[0].Op == Neg {
			return n.In[0].In[0]
		}
	}
	if n.Op.IsElementwise() && n.DType == F32 {
		return g.fold(n)
	}
	return nil
}

// fold computes scalar float32 operations that are exact in IEEE 754 and so equal what the program would compute.
func (g *Graph) fold(n *Node) *Node {
	v := make([]float32, len(n.In))
	for i, in := range n.In {
		if in.DType != F32 {
			return nil
		}
		c := in
		if c.Op == Broadcast || c.Op == Reshape {
			c = c.In[0]
		}
		if !c.IsScalarConst() {
			return nil
		}
		v[i] = math.Float32frombits(uint32(c.Bits()))
	}
	var r float32
	switch n.Op {
	case Neg:
		r = -v[0]
	case Sqrt:
		r = float32(math.Sqrt(float64(v[0])))
	case Add:
		r = v[0] + v[1]
	case Sub:
		r = v[0] - v[1]
	case Mul:
		r = v[0] * v[1]
	case Div:
		r = v[0] / v[1]
	default:
		return nil
	}
	if r != r {
		return nil
	}
	c := g.ConstF32(r)
	if len(n.Dims) == 0 {
		return c
	}
	return g.Add(Broadcast, F32, n.Dims, Attr{}, c)
}

// isSplat reports whether every element of x is the constant v.
func isSplat(x *Node, v float32) bool {
	for x.Op == Broadcast || x.Op == Reshape {
		x = x.In[0]
	}
	if !x.IsScalarConst() {
		return false
	}
	switch x.DType {
	case F32:
		return uint32(x.Bits()) == math.Float32bits(v)
	case I32:
		return int32(binary.LittleEndian.Uint32(x.Data)) == int32(v)
	case I64:
		return int64(x.Bits()) == int64(v)
	}
	return false
}

func sorted(axes []int) bool {
	for i, a := range axes {
		if a != i {
			return false
		}
	}
	return true
}

// movesData reports whether a transposition changes the order of elements.
func movesData(axes, dims []int) bool {
	last := -1
	for _, a := range axes {
		if dims[a] == 1 {
			continue
		}
		if a < last {
			return true
		}
		last = a
	}
	return false
}
