package nn

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
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
					if whole, err := w.Begin(slice, 1); err != nil {
						t.Fatal(err)
					} else {
						scored(t, whole, slices.Concat(c.Prompt, c.Tokens[:len(c.Tokens)-1]), len(c.Prompt), c.Tokens)
						whole.Close()
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

// scored reads tokens at once, behind which, from the one before the given place, the wanted ones come.
func scored(t *testing.T, text *Writing, tokens []int32, from int, want []int32) {
	t.Helper()
	next := 0
	if err := text.Score(t.Context(), tokens, func(i int, scores []float32) error {
		if i != next {
			t.Errorf("token %d is told behind %d", i, next-1)
		}
		if next++; i >= from-1 && int32(task.Best(scores)) != want[i-from+1] {
			t.Errorf("behind token %d comes %d, want %d", i, task.Best(scores), want[i-from+1])
		}
		clear(scores)
		return nil
	}); err != nil || next != len(tokens) || text.length != len(tokens) {
		t.Errorf("%d of %d tokens are told, %d read: %v", next, len(tokens), text.length, err)
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

// A base in NF4 writes with an adapter as the base does into which that was merged, and two texts by turns what each does
// alone.
func TestWritingInNF4(t *testing.T) {
	c := model.Llama(300, 64, 2, 4, 64)
	base, err := model.RandomBase(c, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if base, err = base.Pack(); err != nil {
		t.Fatal(err)
	}
	l, err := model.NewLayout(c, model.Method{RMax: 4, Alpha: 8, Task: model.TaskCausal}, 0)
	if err != nil {
		t.Fatal(err)
	}
	slice := make([]float32, l.Size(2))
	for i := range slice {
		slice[i] = float32(i%13-6) / 20
	}
	values, err := l.Merge(base, slice, 2)
	if err != nil {
		t.Fatal(err)
	}
	var tensors []model.Tensor
	for _, s := range c.BaseTensors() {
		v, changed := values[s.Name]
		if !changed {
			if v, err = base.Tensor(s.Name); err != nil {
				t.Fatal(err)
			}
		}
		tensors = append(tensors, model.Tensor{Name: s.Name, Shape: s.Shape, Data: v})
	}
	merged, err := model.NewBase(c, tensors, nil, model.F32)
	if err != nil {
		t.Fatal(err)
	}
	want, err := NewWriter(l, merged, 48, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := NewWriter(l, base, 48, compiler.New())
	if err != nil {
		t.Fatal(err)
	}
	begin := func(w *Writer, slice []float32, rank int) *Writing {
		text, err := w.Begin(slice, rank)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(text.Close)
		return text
	}
	var pairs [][2]*Writing
	for range 2 {
		pairs = append(pairs, [2]*Writing{begin(want, make([]float32, l.Size(0)), 0), begin(got, slice, 2)})
	}
	for i, n := range []int{35, 1, 1, 2, 1} {
		for j, texts := range pairs {
			var scores [2][]float32
			for k, text := range texts {
				tokens := make([]int32, n)
				for at := range tokens {
					tokens[at] = int32((7*i + 31*j + 11*at) % 300)
				}
				if scores[k], err = text.Read(t.Context(), tokens); err != nil {
					t.Fatal(err)
				}
			}
			for id, x := range scores[0] {
				if d := math.Abs(float64(x - scores[1][id])); !(d < 1e-5) {
					t.Fatalf("text %d, part %d: the score of %d differs by %v", j, i, id, d)
				}
			}
		}
	}
}
