//go:build !race

// GoMLX's Go backend does pointer arithmetic that the race detector's checkptr
// stops at (compute v0.1.2, smallNoSIMDGenericTransposed): the reference runs
// without it.

package edge

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/reference"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
)

// The program and the reference on GoMLX's own backend change the adapter
// alike, at every rank and with every optimizer.
func TestProgramAgainstReference(t *testing.T) {
	againstReference(t, tinyBase(t), model.Method{RMax: 4, Alpha: 4}, 0, 1, 4)
}

// The same for the bases that transformers has saved.
func TestProgramAgainstReferenceByArchitecture(t *testing.T) {
	for _, kind := range []string{"bert", "roberta", "distilbert"} {
		base, err := model.LoadBaseDir(filepath.Join("..", "model", "nn", "testdata", kind))
		ok(t, err)
		againstReference(t, base, model.Method{RMax: 4, Alpha: 4}, 0, 1, 4)
	}
}

// And for one that writes text: the losses are of its own columns.
func TestProgramAgainstReferenceOfAnswers(t *testing.T) {
	base, err := model.LoadBaseDir(filepath.Join("..", "model", "nn", "testdata", "t5"))
	ok(t, err)
	againstReference(t, base, model.Method{RMax: 4, Alpha: 4, Task: model.TaskAnswer, Answer: 5}, 1, 4)
	againstReference(t, base, model.Method{RMax: 1, Alpha: 1, Kind: model.MethodFull, Task: model.TaskAnswer, Answer: 5}, 0)
}

// And for spans, with the places of words and without, over a base with token types.
func TestProgramAgainstReferenceOfSpans(t *testing.T) {
	base, err := model.LoadBaseDir(filepath.Join("..", "model", "nn", "testdata", "bert"))
	ok(t, err)
	againstReference(t, base, model.Method{RMax: 4, Alpha: 4, Task: model.TaskSpan, Also: model.BoxEmbeddings}, 1, 4)
	againstReference(t, base, model.Method{RMax: 4, Alpha: 4, Task: model.TaskSpan, Targets: "query,output.dense", Also: "word_embeddings"}, 3)
}

// And for every method.
func TestProgramAgainstReferenceByMethod(t *testing.T) {
	base := tinyBase(t)
	for _, m := range []model.Method{
		{RMax: 1, Alpha: 1, Kind: model.MethodAdapter}, {RMax: 1, Alpha: 1, Kind: model.MethodCompacter, Blocks: 2},
		{RMax: 1, Alpha: 1, Kind: model.MethodBitFit}, {RMax: 1, Alpha: 1, Kind: model.MethodFull},
		{RMax: 1, Alpha: 1, Kind: model.MethodHead, Also: "pooler.dense"},
	} {
		againstReference(t, base, m, 0)
	}
	againstReference(t, base, model.Method{RMax: 4, Alpha: 4, Targets: "query,intermediate.dense,output.dense", Also: "LayerNorm"}, 3)
}

// And for what a program has built in.
func TestProgramAgainstReferenceOfConstants(t *testing.T) {
	built := training.Spec{WeightDecay: 0.1, LearningRate: 1, HeadLearningRate: 8}
	compared(t, tinyBase(t), model.Method{RMax: 4, Alpha: 4}, built, 4)
	compared(t, tinyBase(t), model.Method{RMax: 1, Alpha: 1, Kind: model.MethodFull}, built, 0)
}

func againstReference(t *testing.T, base *model.Base, method model.Method, ranks ...int) {
	compared(t, base, method, training.Spec{}, ranks...)
}

func compared(t *testing.T, base *model.Base, method model.Method, built training.Spec, ranks ...int) {
	trainer := NewProgramTrainer(1)
	defer trainer.Close()
	reference := reference.New()
	defer reference.Close()
	for _, optimizer := range training.Optimizers {
		for _, rank := range ranks {
			s := step(base, rank, optimizer)
			built.Batch, built.Optimizer = s.Batch, optimizer
			s.Method, s.Spec = method, often(built)
			if method.Task.Asks() {
				s.Classes = 0
			}
			layout, err := model.NewLayout(base.Config, method, s.Classes)
			ok(t, err)
			tk := assignedTo(t, base, layout, rank, compile(t, s, false))
			tk.Layout, tk.Start = layout, model.NewAdapter(layout, 3).Slice(rank)
			tk.Optimizer, tk.WeightDecay = optimizer, built.WeightDecay
			tk.Spec = often(tk.Spec)
			tk.HeadLearningRate = tk.LearningRate * built.HeadLearningRate
			want, err := reference.Train(t.Context(), tk)
			ok(t, err)
			start := slices.Clone(tk.Start)
			var steps []int
			tk.Progress = func(done, total int) { steps = append(steps, done*100+total) }
			got, err := trainer.Train(t.Context(), tk)
			ok(t, err)
			var diff, size float64
			compared := len(want)
			if method.Task == model.TaskSpan {
				compared -= 2 // the head's bias changes no softmax: its gradient is rounding
			}
			for _, span := range layout.Spans(rank) {
				if strings.Contains(span.Name, "key.bias") {
					continue // it has no gradient but rounding, which AdamW blows up to a step
				}
				for i := span.Offset; i < min(span.Offset+span.Len, compared); i++ {
					diff += math.Pow(float64(got[i]-want[i]), 2)
					size += math.Pow(float64(want[i]), 2)
				}
			}
			if size == 0 || diff > 1e-8*size {
				t.Errorf("%+v, %s at rank %d: differs by %.2g of %.2g", method, optimizer, rank, math.Sqrt(diff), math.Sqrt(size))
			}
			if !slices.Equal(tk.Start, start) {
				t.Error("the trainer changed the start")
			}
			if !slices.Equal(steps, []int{104, 204, 304, 404}) {
				t.Errorf("progress %v", steps)
			}
			again, err := trainer.Train(t.Context(), tk)
			ok(t, err)
			if !slices.Equal(got, again) {
				t.Errorf("%s at rank %d: a second training on the same instance differs", optimizer, rank)
			}
		}
	}
}
