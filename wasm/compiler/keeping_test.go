package compiler

import (
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/quant/nf4"
)

// What a call leaves in its program's memory is the next one's input, another program's, and read by who asks, whether or
// not it was moved out of another one's way; weights in 4 bits are what their codes stand for.
func TestKeeping(t *testing.T) {
	be := New().Keeping(map[string]bool{"w": true}, []string{"", "sum"})
	weights := shapes.Make(dtypes.Float32, 20, 64)
	program := func(sign float64) compute.Executable {
		g := graph.NewGraph(be, "sums")
		sum, w := graph.Parameter(g, "sum", shapes.Make(dtypes.Float32, 4, 64)), graph.Parameter(g, "w", weights)
		row := graph.Parameter(g, "row", shapes.Make(dtypes.Int32, 1, 1))
		next := graph.ScatterSum(sum, row, graph.MulScalar(graph.Ones(g, shapes.Make(dtypes.Float32, 1, 64)), sign), true, true)
		if err := g.Compile(graph.DotGeneral(next, []int{1}, nil, w, []int{1}, nil), next); err != nil {
			t.Fatal(err)
		}
		return g.Executable()
	}
	up, down := program(1), program(-1)
	buffer := func(flat any, dtype dtypes.DType, dims ...int) compute.Buffer {
		b, err := be.BufferFromFlatData(0, flat, shapes.Make(dtype, dims...))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	values := make([]float32, weights.Size())
	for i := range values {
		values[i] = float32(i%7) - 3
	}
	codes, scales := make([]byte, nf4.CodesLen(len(values))), make([]float32, nf4.Blocks(len(values), nf4.Block))
	if err := nf4.Encode(codes, scales, values, nf4.Block); err != nil {
		t.Fatal(err)
	}
	nf4.Decode(values, codes, scales, nf4.Block)
	packed, err := be.(*Backend).BufferFromNF4(codes, scales, weights)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := be.(*Backend).BufferFromNF4(codes[1:], scales, weights); err == nil {
		t.Error("too few codes")
	}
	call := func(e compute.Executable, sum compute.Buffer, row int32) (scores, next compute.Buffer) {
		t.Helper()
		out, err := e.Execute([]compute.Buffer{sum, packed, buffer([]int32{row}, dtypes.Int32, 1, 1)}, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		return out[0], out[1]
	}
	read := func(b compute.Buffer, n int) []float32 {
		t.Helper()
		v := make([]float32, n)
		if err := b.ToFlatData(v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	zeros := func() compute.Buffer { return buffer(make([]float32, 4*64), dtypes.Float32, 4, 64) }
	_, a := call(up, zeros(), 0)
	_, b := call(up, zeros(), 3) // in a's place
	_, a = call(up, a, 0)        // in b's
	_, b = call(down, b, 3)
	used := a
	scores, a := call(up, a, 2)
	for i, want := range [][]float32{{2, 0, 1, 0}, {0, 0, 0, 0}} {
		got := read([]compute.Buffer{a, b}[i], 4*64)
		for row, x := range want {
			if !slices.Equal(got[64*row:][:64], slices.Repeat([]float32{x}, 64)) {
				t.Errorf("sums %d, row %d: %v, want %v", i, row, got[64*row:][:64], x)
			}
		}
	}
	for j, got := range read(scores, 4*20)[:20] {
		var want float32
		for _, x := range values[64*j:][:64] {
			want += 2 * x
		}
		if got != want {
			t.Errorf("score %d is %v, want %v", j, got, want)
		}
	}
	if err := used.ToFlatData(make([]float32, 4*64)); err == nil {
		t.Error("what a call used up was read")
	}
}
