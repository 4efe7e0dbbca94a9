// Package ir is the compiler's intermediate representation: a list of typed tensor operations in the order in which
// they were recorded, every one depending only on earlier ones. Equal operations are recorded once, elementwise
// operands always have the shape of the result (broadcasts are explicit), and what can be told from constants is
// simplified on the way in, as long as the value stays the same bit for bit.
//
//	g := ir.New() // Record in package compiler fills it
package ir

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// DType is the type of a tensor's elements.
type DType uint8

// The element types. A Bool takes one byte in memory, 0 or 1.
const (
	F32 DType = iota
	I32
	I64
	Bool
)

// Size returns the bytes of one element.
func (d DType) Size() int {
	switch d {
	case I64:
		return 8
	case Bool:
		return 1
	}
	return 4
}

// String returns the short name.
func (d DType) String() string { return [...]string{"f32", "i32", "i64", "bool"}[d] }

// Op is the kind of a node.
type Op uint8

// The operations. Their groups matter: see Op.IsView, IsElementwise and IsHeavy.
const (
	Invalid Op = iota
	Param      // Name; the Index-th parameter
	Const      // Data: the elements, little endian
	Iota       // Axis

	firstView
	Reshape
	Transpose // Axes: output axis i is input axis Axes[i]
	Broadcast // Axes: input axis i is output axis Axes[i]
	Slice     // Starts, Limits, Strides
	Reverse   // Axes
	lastView

	firstElementwise
	Neg
	Abs
	Sign
	Sqrt
	Rsqrt
	Exp
	Expm1
	Log
	Log1p
	Tanh
	Erf
	Logistic
	Sin
	Cos
	Floor
	Ceil
	Round
	Not // logical on Bool, bitwise on integers
	IsFinite
	IsNaN
	Clz
	Popcnt
	Convert
	Add
	Sub
	Mul
	Div
	Rem
	Pow
	Max
	Min
	And
	Or
	Xor
	Shl
	ShrS
	ShrU
	Eq
	Ne
	Lt
	Le
	Gt
	Ge
	EqTotal
	NeTotal
	LtTotal
	LeTotal
	GtTotal
	GeTotal
	Select // condition, on true, on false
	lastElementwise

	firstHeavy
	Dot       // Dot
	ReduceSum // Axes
	ReduceProd
	ReduceMax
	ReduceMin
	ReduceAnd
	ReduceOr
	ReduceXor
	ArgMax // Axis
	ArgMin // Axis
	Pad    // Pads; operands x, fill
	Concat // Axis
	Gather // Gather
	ScatterSum
	ScatterMax
	ScatterMin
	DynamicSlice  // operands x, one start an axis; sizes are the result's
	DynamicUpdate // operands x, update, one start an axis
	Window        // Window; ReduceOp
	Barrier       // value is in memory before what follows
	lastHeavy
)

// IsView reports whether the operation only renames elements of its operand.
func (o Op) IsView() bool { return o > firstView && o < lastView }

// IsElementwise reports whether each element depends only on the operands' elements of the same index.
func (o Op) IsElementwise() bool { return o > firstElementwise && o < lastElementwise }

// IsReduce reports whether the operation is a plain reduction over axes.
func (o Op) IsReduce() bool { return o >= ReduceSum && o <= ReduceXor }

// IsHeavy reports whether the result must be in memory.
func (o Op) IsHeavy() bool { return o > firstHeavy && o < lastHeavy }

// DotAxes are the contracting and batch axes of both operands of Dot. The result's axes are the batch axes, the other
// axes of the left operand, the other axes of the right one.
type DotAxes struct {
	LhsContract, LhsBatch, RhsContract, RhsBatch []int
}

// GatherSpec holds the arguments of Gather and of the scatters, under XLA's names.
type GatherSpec struct {
	IndexVectorAxis                          int
	OffsetAxes, CollapsedAxes, StartIndexMap []int // Gather
	SliceSizes                               []int // Gather
	UpdateWindowAxes, InsertedWindowAxes     []int // Scatter
	ScatterAxesToOperandAxes                 []int // Scatter
}

// PadAxis is the padding of one axis.
type PadAxis struct{ Start, End, Interior int }

// WindowSpec holds the arguments of a windowed reduction, one value an axis.
type WindowSpec struct {
	Dims, Strides, InputDilations, WindowDilations []int
	Pads                                           [][2]int
}

// Attr holds what an operation needs besides its operands. Fields that do not belong to the operation are
// zero.
type Attr struct {
	Name                    string
	Index                   int
	Axis                    int
	Axes                    []int
	Starts, Limits, Strides []int
	Data                    []byte
	Dot                     *DotAxes
	Gather                  *GatherSpec
	Pads                    []PadAxis
	Window                  *WindowSpec
	Reduce                  Op
}

// Node is one operation and the tensor it makes.
type Node struct {
	ID    int
	Op    Op
	DType DType
	Dims  []int
	In    []*Node
	Attr
}

// Len returns the number of elements.
func (n *Node) Len() int { return Len(n.Dims) }

// Bytes returns the size in memory.
func (n *Node) Bytes() int { return n.Len() * n.DType.Size() }

// IsScalarConst reports whether the node is a constant with one element.
func (n *Node) IsScalarConst() bool { return n.Op == Const && n.Len() == 1 }

// Bits returns the first element of a constant as raw bits.
func (n *Node) Bits() uint64 {
	switch n.DType.Size() {
	case 1:
		return uint64(n.Data[0])
	case 4:
		return uint64(binary.LittleEndian.Uint32(n.Data))
	}
	return binary.LittleEndian.Uint64(n.Data)
}

// String describes the node for messages.
func (n *Node) String() string {
	ids := make([]int, len(n.In))
	for i, in := range n.In {
		ids[i] = in.ID
	}
	return fmt.Sprintf("#%d op%d %s%v %v %s", n.ID, n.Op, n.DType, n.Dims, ids, n.Name)
}

// Len returns the product of dims.
func Len(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// Strides returns the row-major strides of dims, in elements.
func Strides(dims []int) []int {
	s := make([]int, len(dims))
	n := 1
	for i := len(dims) - 1; i >= 0; i-- {
		s[i] = n
		n *= dims[i]
	}
	return s
}

// Graph is a recorded computation.
type Graph struct {
	Nodes   []*Node
	Params  []*Node
	Outputs []*Node
	known   map[string]*Node
}

// New returns an empty graph.
func New() *Graph { return &Graph{known: map[string]*Node{}} }

// Parameter adds the next parameter.
func (g *Graph) Parameter(name string, d DType, dims []int) *Node {
	n := &Node{Op: Param, DType: d, Dims: slices.Clone(dims), Attr: Attr{Name: name, Index: len(g.Params)}}
	n.ID = len(g.Nodes)
	g.Nodes = append(g.Nodes, n)
	g.Params = append(g.Params, n)
	return n
}

// Add records an operation, or returns an earlier node that has the same value.
func (g *Graph) Add(op Op, d DType, dims []int, attr Attr, in ...*Node) *Node {
	n := &Node{Op: op, DType: d, Dims: slices.Clone(dims), In: in, Attr: attr}
	if s := g.simplify(n); s != nil {
		return s
	}
	key := n.key()
	if k, ok := g.known[key]; ok {
		return k
	}
	n.ID = len(g.Nodes)
	g.Nodes = append(g.Nodes, n)
	g.known[key] = n
	return n
}

// ConstF32 records a scalar constant.
func (g *Graph) ConstF32(v float32) *Node {
	return g.Add(Const, F32, nil, Attr{Data: binary.LittleEndian.AppendUint32(nil, math.Float32bits(v))})
}

// Kind is what two nodes have in common that differ in their operands alone.
func (n *Node) Kind() string { return n.describe(false) }

func (n *Node) key() string { return n.describe(true) }

func (n *Node) describe(operands bool) string {
	b := []byte{byte(n.Op), byte(n.DType)}
	ints := func(s []int) {
		b = binary.AppendVarint(b, int64(len(s)))
		for _, v := range s {
			b = binary.AppendVarint(b, int64(v))
		}
	}
	ints(n.Dims)
	b = binary.AppendVarint(b, int64(len(n.In)))
	for _, in := range n.In {
		if operands {
			b = binary.AppendVarint(b, int64(in.ID))
		}
	}
	ints([]int{n.Axis, int(n.Reduce)})
	ints(n.Axes)
	ints(n.Starts)
	ints(n.Limits)
	ints(n.Attr.Strides)
	if d := n.Attr.Dot; d != nil {
		for _, s := range [][]int{d.LhsContract, d.LhsBatch, d.RhsContract, d.RhsBatch} {
			ints(s)
		}
	}
	if s := n.Attr.Gather; s != nil {
		for _, s := range [][]int{{s.IndexVectorAxis}, s.OffsetAxes, s.CollapsedAxes, s.StartIndexMap, s.SliceSizes,
			s.UpdateWindowAxes, s.InsertedWindowAxes, s.ScatterAxesToOperandAxes} {
			ints(s)
		}
	}
	for _, p := range n.Pads {
		ints([]int{p.Start, p.End, p.Interior})
	}
	if w := n.Attr.Window; w != nil {
		for _, s := range [][]int{w.Dims, w.Strides, w.InputDilations, w.WindowDilations} {
			ints(s)
		}
		for _, p := range w.Pads {
			ints(p[:])
		}
	}
	return string(append(b, n.Data...))
}
