package nn

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/task"
	"github.com/starling-fl/starling/wasm/compiler"
)

// What is written greedily is what transformers writes, token by token: behind one token, a
// few, and more than are read at once; within windows and beyond them.
func TestWritingMatchesTransformers(t *testing.T) {
	for _, name := range causalFamilies {
		t.Run(name, func(t *testing.T) {
			_, base, want := loadCausal(t, name)
			l, err := model.NewLayout(base.Config, model.Method{RMax: 1, Alpha: 1, Task: model.TaskCausal}, 0)
			if err != nil {
				t.Fatal(err)
			}
			slice := model.NewAdapter(l, 1).Slice(1) // whose product is zero
			for backend, be := range map[string]compute.Backend{"Go": nil, "compiled": compiler.New()} {
				w, err := NewWriter(l, base, 60, be)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range want.Written {
					text, err := w.Begin(slice, 1)
					if err != nil {
						t.Fatal(err)
					}
					next := c.Prompt
					var written []int32
					var scores []float32
					for range c.Tokens {
						if scores, err = text.Read(t.Context(), next); err != nil {
							t.Fatal(err)
						}
						next = []int32{int32(task.Best(scores))}
						written = append(written, next[0])
					}
					text.Close()
					if !slices.Equal(written, c.Tokens) {
						t.Errorf("%s, behind %d tokens: %v, want %v", backend, len(c.Prompt), written, c.Tokens)
					}
					for i, x := range scores {
						if d := math.Abs(float64(x) - c.Scores[i]); !(d < 1e-4) {
							t.Fatalf("%s, behind %d tokens: the score of %d differs by %v", backend, len(c.Prompt), i, d)
						}
					}
				}
			}
		})
	}
}

// A text that is read in parts is the text; what does not fit is refused, and nothing of
// it is read.
func TestWritingInParts(t *testing.T) {
	_, base, want := loadCausal(t, "llama")
	l, err := model.NewLayout(base.Config, model.Method{RMax: 1, Alpha: 1, Task: model.TaskCausal}, 0)
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(l, base, 41, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := model.NewAdapter(l, 1).Slice(1)
	prompt := want.Written[2].Prompt
	var scores [][]float32
	for _, cuts := range [][]int{{40}, {1, 33, 34, 40}} {
		text, err := w.Begin(a, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer text.Close()
		from := 0
		var last []float32
		for _, to := range cuts {
			if last, err = text.Read(t.Context(), prompt[from:to]); err != nil {
				t.Fatal(err)
			}
			from = to
		}
		scores = append(scores, last)
		for _, bad := range [][]int32{{}, {1, 2}, {40}, {-1}} {
			if _, err := text.Read(t.Context(), bad); err == nil || text.length != 40 {
				t.Errorf("%v was read: %v", bad, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := text.Read(ctx, []int32{1}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	for i := range scores[0] {
		if d := math.Abs(float64(scores[0][i] - scores[1][i])); !(d < 1e-5) {
			t.Fatalf("score %d differs by %v", i, d)
		}
	}
	if _, err := NewWriter(l, base, 65, nil); err == nil {
		t.Error("a text longer than the base's positions")
	}
}
