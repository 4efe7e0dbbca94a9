package nn

import (
	"math"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/wasm/compiler"
)

// Scores of one block of the vocabulary at a time give the loss and the gradient that all
// at once give, wherever the largest score stands, and with places that count for nothing.
func TestVocabularyInBlocks(t *testing.T) {
	const k, h, v = 5, 4, 23
	fill := func(n, seed int, over float32) []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = float32((i*i*7+i*seed)%23-11) / over
		}
		return out
	}
	for name, be := range map[string]compute.Backend{"Go": nil, "compiled": compiler.New()} {
		var want []float32
		for _, block := range []int{0, 23, 8, 7, 1} {
			p, err := Compile(be, "blocks", func(g *graph.Graph) ([]Param, []Output, error) {
				ps := newParams(g)
				picked := ps.add("picked", Input, dtypes.Float32, k, h)
				words := ps.add("words", Input, dtypes.Float32, v, h)
				targets := ps.add("targets", Input, dtypes.Int32, k)
				weights := ps.add("weights", Input, dtypes.Float32, k)
				f := elementary{}
				loss, root := f.vocabularyLoss(picked, words, nil, targets, weights)
				if block > 0 {
					loss, root = f.blockedLoss(picked, words, targets, weights, block)
				}
				return ps.list, []Output{{Name: "loss", Node: loss}, {Name: "grad", Node: graph.Gradient(root, picked)[0]}}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			var buffers []compute.Buffer
			for i, flat := range []any{fill(k*h, 3, 2), fill(v*h, 5, 3), []int32{0, 22, 7, 8, 3}, []float32{1, 2, 0, 1, 1}} {
				b, err := p.Buffer(p.Params[i], flat)
				if err != nil {
					t.Fatal(err)
				}
				buffers = append(buffers, b)
			}
			res, err := p.Run(buffers)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]float32, 1+k*h)
			if err := res[0].ToFlatData(got[:1]); err != nil {
				t.Fatal(err)
			}
			if err := res[1].ToFlatData(got[1:]); err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = got
			}
			for i := range got {
				if d := math.Abs(float64(got[i] - want[i])); !(d < 2e-6) {
					t.Fatalf("%s, blocks of %d: value %d is %v, want %v", name, block, i, got[i], want[i])
				}
			}
		}
		if want[0] < 0.1 {
			t.Errorf("%s: the loss is %v", name, want[0])
		}
	}
}

// TestVocabularyBlocksAreRounds: a program has one block's code, however many blocks there are.
func TestVocabularyBlocksAreRounds(t *testing.T) {
	size := func(blocks int) int {
		code, err := compiler.Compile(func(g *graph.Graph) []*graph.Node {
			ps := newParams(g)
			picked, words := ps.add("picked", Input, dtypes.Float32, 5, 8), ps.add("words", Input, dtypes.Float32, 16*blocks, 8)
			loss, root := elementary{}.blockedLoss(picked, words, ps.add("targets", Input, dtypes.Int32, 5), ps.add("weights", Input, dtypes.Float32, 5), 16)
			return []*graph.Node{loss, graph.Gradient(root, picked)[0]}
		}, compiler.Spec{Host: compiler.HostWazero, Outputs: []compiler.Output{{Name: "loss"}, {Name: "grad"}}})
		if err != nil {
			t.Fatal(err)
		}
		return len(code)
	}
	if few, many := size(8), size(40); many > few+64 {
		t.Errorf("%d bytes of 8 blocks, %d of 40", few, many)
	}
}
