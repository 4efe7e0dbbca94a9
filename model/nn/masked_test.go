package nn

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/wasm/compiler"
)

// maskedBatch masks token 3 where it stands for what is two places on.
func maskedBatch(s StepSpec, at int) task.Batch {
	b := emptyBatch(s)
	k := b.Float32(task.Weights)
	n := len(k) / s.Batch
	for r := range s.Batch {
		tokens := b.Int32(task.Tokens)[r*s.Sequence:][:s.Sequence]
		for i := range s.Sequence - 2 { // the rest is padding
			tokens[i] = int32(5 + (at*7+r*5+i/3*11)%20)
		}
		place := 3 + (at+r)%3
		b.Int32(task.Places)[r*n], b.Int32(task.Labels)[r*n], k[r*n] = int32(place), tokens[place+2]+1, 1
		tokens[place] = 3
	}
	return b
}

// Masked tokens are learnt in every architecture that has such a head, by LoRA, biases
// or the whole model; what the predictor says of them has the loss that training gives,
// and a step in micro-batches is the same step.
func TestMaskedTokensAreLearnt(t *testing.T) {
	for _, name := range []string{"bert", "distilbert", "roberta"} {
		base, err := model.LoadBaseDir(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []model.MethodKind{model.MethodLoRA, model.MethodBitFit, model.MethodFull} {
			s := StepSpec{Config: base.Config, Method: model.Method{RMax: 2, Alpha: 4, Kind: kind, Task: model.TaskPretrain},
				Spec: training.Spec{Batch: 4, Optimizer: training.AdamW}, Sequence: 12}
			if kind == model.MethodLoRA {
				s.Rank = 2
			}
			lay, err := s.Layout()
			if err != nil {
				t.Fatal(err)
			}
			tr, err := NewTrainer(s, base)
			if err != nil {
				t.Fatal(err)
			}
			var batches []task.Batch
			for at := range 60 {
				batches = append(batches, maskedBatch(s, at%12))
			}
			v := model.NewAdapter(lay, 5).Slice(s.Rank)
			delta, losses, err := tr.Train(t.Context(), v, batches, 0.01)
			if err != nil {
				t.Fatal(err)
			}
			first, last := mean(losses[:12]), mean(losses[48:])
			if !(last < 0.85*first) {
				t.Errorf("%s, %s: loss %v, then %v", name, kind, first, last)
			}
			for i := range v {
				v[i] += delta[i]
			}
			held := batches[7]
			_, after, err := tr.Train(t.Context(), v, []task.Batch{held}, 0)
			if err != nil {
				t.Fatal(err)
			}
			s.MicroBatch = 2
			micro, err := NewTrainer(s, base)
			if err != nil {
				t.Fatal(err)
			}
			if _, halves, err := micro.Train(t.Context(), v, []task.Batch{held}, 0); err != nil || math.Abs(float64(halves[0]-after[0])) > 1e-5 {
				t.Errorf("%s, %s: in halves %v, whole %v, %v", name, kind, halves, after, err)
			}
			p, err := NewPredictor(lay, base, s.Sequence, compiler.New())
			if err != nil {
				t.Fatal(err)
			}
			scores, err := p.Outputs(t.Context(), v, s.Rank, held, s.Batch)
			if err != nil {
				t.Fatal(err)
			}
			loss, vocab := 0.0, base.Config.VocabSize
			for r := range s.Batch {
				at, was := task.MaskedPlaces(held, r)
				if !slices.Equal(at, []int{0}) {
					t.Fatalf("told are %v", at)
				}
				loss += task.CrossEntropy(scores[r][:vocab], int(was[0])) / float64(s.Batch)
			}
			if d := math.Abs(loss - float64(after[0])); d > 1e-4 {
				t.Errorf("%s, %s: prediction has the loss %v, training %v", name, kind, loss, after[0])
			}
		}
	}
}

// Only a base that transformers has a masked language model of takes the task, and it
// has no labels.
func TestMaskedRefuses(t *testing.T) {
	m := model.Method{RMax: 1, Alpha: 1, Task: model.TaskPretrain}
	bert := model.BERT(40, 16, 1, 2, 16)
	if _, err := model.NewLayout(bert, m, 2); err == nil {
		t.Error("labels")
	}
	if _, err := model.NewLayout(bert, m, 0); err != nil {
		t.Error(err)
	}
	m.Answer = 4
	if _, err := model.NewLayout(bert, m, 0); err == nil {
		t.Error("answers")
	}
}
