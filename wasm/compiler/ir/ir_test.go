package ir_test

import (
	"math"
	"testing"

	"github.com/starling-fl/starling/wasm/compiler/ir"
)

// TestSimplify records operations that have shorter forms.
func TestSimplify(t *testing.T) {
	g := ir.New()
	x := g.Parameter("x", ir.F32, []int{2, 3, 4})
	reshape := func(n *ir.Node, dims ...int) *ir.Node { return g.Add(ir.Reshape, n.DType, dims, ir.Attr{}, n) }
	transpose := func(n *ir.Node, axes ...int) *ir.Node {
		dims := make([]int, len(axes))
		for i, a := range axes {
			dims[i] = n.Dims[a]
		}
		return g.Add(ir.Transpose, n.DType, dims, ir.Attr{Axes: axes}, n)
	}
	splat := func(v float32) *ir.Node { return g.Add(ir.Broadcast, ir.F32, x.Dims, ir.Attr{}, g.ConstF32(v)) }
	binary := func(op ir.Op, a, b *ir.Node) *ir.Node { return g.Add(op, ir.F32, a.Dims, ir.Attr{}, a, b) }
	for name, got := range map[string]*ir.Node{
		"reshape there and back":   reshape(reshape(x, 6, 4), 2, 3, 4),
		"transpose there and back": transpose(transpose(x, 2, 0, 1), 1, 2, 0),
		"times one":                binary(ir.Mul, splat(1), x),
		"divided by one":           binary(ir.Div, x, splat(1)),
		"negated twice":            g.Add(ir.Neg, ir.F32, x.Dims, ir.Attr{}, g.Add(ir.Neg, ir.F32, x.Dims, ir.Attr{}, x)),
		"sum over nothing":         reshape(g.Add(ir.ReduceSum, ir.F32, []int{2, 3, 4}, ir.Attr{}, x), 2, 3, 4),
	} {
		if got != x {
			t.Errorf("%s gives %v", name, got)
		}
	}
	if a, b := transpose(x, 2, 1, 0), transpose(x, 2, 1, 0); a != b {
		t.Error("equal operations were recorded twice")
	}
	if a, b := transpose(x, 2, 1, 0), transpose(x, 2, 0, 1); a == b {
		t.Error("different operations were recorded as one")
	}
	// Adding zero is kept: -0 + 0 is +0.
	if binary(ir.Add, x, splat(0)) == x {
		t.Error("x + 0 became x, which loses the sign of zero")
	}
}

// TestFold folds scalars exactly as the program would.
func TestFold(t *testing.T) {
	g := ir.New()
	third := g.Add(ir.Div, ir.F32, nil, ir.Attr{}, g.ConstF32(1), g.ConstF32(3))
	if !third.IsScalarConst() || math.Float32frombits(uint32(third.Bits())) != float32(1)/3 {
		t.Errorf("1/3 folded to %v", third)
	}
	if e := g.Add(ir.Exp, ir.F32, nil, ir.Attr{}, g.ConstF32(1)); e.Op != ir.Exp {
		t.Error("exp was folded, whose value is the program's own")
	}
	if n := g.Add(ir.Div, ir.F32, nil, ir.Attr{}, g.ConstF32(0), g.ConstF32(0)); n.Op != ir.Div {
		t.Error("0/0 was folded: a NaN's bits are the host's")
	}
}
