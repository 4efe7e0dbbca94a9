package compiler_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler"
)

// TestEveryProductIsDeclared: all multiplications of matrices are, in plain and in 4-bit programs.
func TestEveryProductIsDeclared(t *testing.T) {
	nf4, adam := bertTiny, bertTiny
	nf4.nf4, adam.optimizer = true, "adamw"
	for name, b := range map[string]bert{"toy": bertToy, "adamw": adam, "nf4": nf4} {
		bin, _ := program(t, b, compiler.HostWazero)
		if _, err := wasm.Verify(bin, wasm.Limits{}); err != nil {
			t.Fatal(err)
		}
		p, err := wasm.Load(t.Context(), bin, wasm.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		m := p.Manifest()
		var flops uint64
		for i := range m.Products {
			flops += 2 * m.Products[i].MultiplyAdds()
		}
		if flops != m.FLOPs || flops == 0 {
			t.Errorf("%s: %d products of %d operations, the program counts %d", name, len(m.Products), flops, m.FLOPs)
		}
	}
}

// TestTermsInOrder: the code of a product sums its terms in the declared order, outer axes first, where there are several
// that do not merge, and the last is cut into blocks.
func TestTermsInOrder(t *testing.T) {
	const rows, outer, inner, cols = 5, 3, 600, 9
	for _, host := range []string{compiler.HostWazero, compiler.HostV8} {
		bin, err := compiler.Compile(func(g *graph.Graph) []*graph.Node {
			a := graph.Parameter(g, "a", shapes.Make(dtypes.Float32, inner, rows, outer))
			b := graph.Parameter(g, "b", shapes.Make(dtypes.Float32, outer, inner, cols))
			return []*graph.Node{graph.DotGeneral(a, []int{2, 0}, nil, b, []int{0, 1}, nil)}
		}, compiler.Spec{Host: host, Outputs: []compiler.Output{{Name: "c"}}})
		if err != nil {
			t.Fatal(err)
		}
		in := instance(t, bin, &step{}, wasm.Config{})
		m := in.Program().Manifest()
		if len(m.Products) != 1 || len(m.Products[0].Terms) != 2 || m.Products[0].Terms[0].Size() != outer {
			t.Fatalf("products %+v, want one with two axes of terms", m.Products)
		}
		rnd := rand.New(rand.NewPCG(1, 2))
		a, b, got := make([]float32, inner*rows*outer), make([]float32, outer*inner*cols), make([]float32, rows*cols)
		for _, v := range [][]float32{a, b} {
			for i := range v {
				v[i] = float32(rnd.NormFloat64())
			}
		}
		if err := in.WriteFloat32("a", a); err != nil {
			t.Fatal(err)
		}
		if err := in.WriteFloat32("b", b); err != nil {
			t.Fatal(err)
		}
		if err := in.Step(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := in.ReadFloat32("c", got); err != nil {
			t.Fatal(err)
		}
		for r := range rows {
			for c := range cols {
				var sum float32
				for o := range outer {
					for i := range inner {
						sum += float32(a[(i*rows+r)*outer+o] * b[(o*inner+i)*cols+c])
					}
				}
				if math.Float32bits(sum) != math.Float32bits(got[r*cols+c]) {
					t.Errorf("%s: element %d, %d is %v, in order it is %v", host, r, c, got[r*cols+c], sum)
				}
			}
		}
	}
}
