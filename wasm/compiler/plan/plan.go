// Package plan decides how a recorded graph runs in one block of memory: which tensors are in memory at all,
// which operations share a loop, where each tensor is and for how long, and in what order the stages run.
//
//	p, err := plan.Build(g, plan.Config{})
//
// A tensor that is only a view (reshape, transposition, broadcast, slice) or a cheap function of others is never
// stored: the loop or the matrix product that reads it computes the address or the value itself. Views are followed as
// affine functions of the loop counters; where a reshape of a view is not affine, the loop is cut, and only where that
// does not help the view is stored.
package plan

import (
	"github.com/starling-fl/starling/wasm/compiler/ir"
)

// Buffer is a piece of the program's memory.
type Buffer struct {
	Node  *ir.Node // what it holds; nil for scratch
	Bytes int
	Addr  int  // set by Layout
	Fixed bool // holds its value from one step of training to the next
	NF4   bool // holds 4-bit codes; the scales are at Scales
	Const []byte
	// Scales is the address of the float32 scales of an NF4 tensor.
	Scales int
	life   span
	used   bool
}

// Ref is an address: Off bytes into a buffer.
type Ref struct {
	Buf *Buffer
	Off int
}

// Addr returns the address in memory.
func (r Ref) Addr() int { return r.Buf.Addr + r.Off }

// Leaf is an operand or a result of a loop: an address that moves by Strides (in elements) as the counters count.
type Leaf struct {
	Ref
	DType   ir.DType
	Strides []int
}

// Value is a scalar expression that is computed at every point of a loop.
type Value struct {
	Op    ir.Op // Param: load of Leaf; Const: Bits; Iota: Base + sum of Strides * counters; else elementwise on In
	DType ir.DType
	In    []*Value
	Leaf  int
	Bits  uint64
	Base  int
	// Strides are the multipliers of an Iota.
	Strides []int
}

// Out stores a value.
type Out struct {
	Value *Value
	Leaf
}

// Stage is one piece of work. Stages run in order.
type Stage interface {
	reads() []*Buffer
	writes() []*Buffer
}

// Loop computes values over an iteration space and stores them, or reduces one over its inner axes.
type Loop struct {
	Sizes  []int // outer first
	Kept   int   // Sizes[Kept:] are reduced over
	Leaves []Leaf
	Outs   []Out
	Reduce ir.Op // ir.Invalid: elementwise
}

// Axis is one loop of a matrix product with the strides, in elements, of its operands.
type Axis struct{ Size, A, B, C int }

// Dot is C = A * B, summed over K and repeated over Batch.
type Dot struct {
	A, B, C        Ref
	Batch, M, N, K []Axis
}

// Direct is an operation that is written out as plain loops over its operands in memory: gathers, scatters, windows.
type Direct struct {
	Node *ir.Node
	In   []Ref
	Out  Ref
}

func refs(ls []Leaf) (bs []*Buffer) {
	for _, l := range ls {
		bs = append(bs, l.Buf)
	}
	return bs
}

func (l *Loop) reads() []*Buffer { return refs(l.Leaves) }
func (l *Loop) writes() (bs []*Buffer) {
	for _, o := range l.Outs {
		bs = append(bs, o.Buf)
	}
	return bs
}
func (d *Dot) reads() []*Buffer  { return []*Buffer{d.A.Buf, d.B.Buf} }
func (d *Dot) writes() []*Buffer { return []*Buffer{d.C.Buf} }
func (d *Direct) reads() (bs []*Buffer) {
	for _, r := range d.In {
		bs = append(bs, r.Buf)
	}
	return bs
}
func (d *Direct) writes() []*Buffer { return []*Buffer{d.Out.Buf} }

// Plan is a graph made ready for code generation.
type Plan struct {
	Stages  []Stage
	Params  []*Buffer // one a parameter
	Outputs []*Buffer // one an output; the parameter's own buffer where an output replaces a parameter
	Consts  []*Buffer
	Arena   []*Buffer         // temporary ones
	Repeats []Repeat          // found by Layout
	When    map[Stage]*Buffer // of a stage that only a choice wants: the boolean it is wanted under; see conditions
	flat    bool
}

// Config says what the graph does not.
type Config struct {
	// Becomes maps an output to the parameter that it replaces in place; -1 for none. Nil for none at all.
	Becomes []int
	// NF4 marks the parameters that are in memory as 4-bit codes.
	NF4 []bool
	// Flat finds no repeats and no conditions, and lets no loop write over an operand: the plain twin of a plan that does.
	Flat bool
	// Stop is asked before each node and each output; an error of it ends the planning. Nil never does.
	Stop func() error
}

func (c Config) stop() error {
	if c.Stop == nil {
		return nil
	}
	return c.Stop()
}
