package nn

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/wasm/compiler"
)

// spanSpec is a step of spans over a base with token types and random weights.
func spanSpec(t *testing.T) (StepSpec, *model.Base) {
	t.Helper()
	base, err := model.LoadBaseDir(filepath.Join("testdata", "bert"))
	if err != nil {
		t.Fatal(err)
	}
	return StepSpec{Config: base.Config, Method: model.Method{RMax: 4, Alpha: 4, Task: model.TaskSpan, Also: model.BoxEmbeddings},
		Rank: 4, Spec: training.Spec{Batch: 4, Optimizer: training.AdamW}, Sequence: 12}, base
}

// spanBatch has answers whose box is at the page's foot: tokens do not tell, places do.
func spanBatch(s StepSpec, at int) task.Batch {
	b := emptyBatch(s)
	tokens, types, boxes := b.Int32(task.Tokens), b.Int32(task.Types), b.Int32(task.Boxes)
	for r := range s.Batch {
		foot := 4 + (at+3*r)%(s.Sequence-6)
		for i := range s.Sequence - 1 { // the rest is padding
			k := r*s.Sequence + i
			tokens[k], types[k] = int32(1+(at*7+r*5+i*3)%50), int32(min(1, i/4))
			if i >= 4 {
				copy(boxes[4*k:], []int32{100, 100, 200, 120})
			}
			if i == foot {
				copy(boxes[4*k:], []int32{600, 950, 900, 990})
			}
		}
		b.Float32(task.Labels)[2*(r*s.Sequence+foot)], b.Float32(task.Labels)[2*(r*s.Sequence+foot)+1] = 1, 1
		b.Float32(task.Weights)[r] = 1
	}
	return b
}

// Where only its place tells an answer, boxes teach a model to find it, and without
// them it stays at chance; what the predictor says has the loss that training gives.
func TestSpanLearnsByPlace(t *testing.T) {
	with, base := spanSpec(t)
	without := with
	without.Method.Also = ""
	last := map[bool]float64{}
	for _, s := range []StepSpec{with, without} {
		lay, err := s.Layout()
		if err != nil {
			t.Fatal(err)
		}
		tr, err := NewTrainer(s, base)
		if err != nil {
			t.Fatal(err)
		}
		boxed := s.Method.Boxes()
		var batches []task.Batch
		for at := range 150 {
			b := task.Batch{}
			for _, v := range spanBatch(with, at%30) {
				if v.Name != task.Boxes || boxed {
					b = append(b, v)
				}
			}
			batches = append(batches, b)
		}
		v := model.NewAdapter(lay, 5).Slice(4)
		delta, losses, err := tr.Train(t.Context(), v, batches, 0.03)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range losses[120:] {
			last[boxed] += float64(l) / 30
		}
		if d := math.Abs(float64(losses[0]) - math.Log(11)); d > 1e-5 { // a zero head: any of 11 tokens, padding none
			t.Errorf("first loss %v, want log 11", losses[0])
		}
		for i := range v {
			v[i] += delta[i]
		}
		held := batches[7]
		_, after, err := tr.Train(t.Context(), v, []task.Batch{held}, 0)
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPredictor(lay, base, s.Sequence, compiler.New())
		if err != nil {
			t.Fatal(err)
		}
		logits, err := p.Outputs(t.Context(), v, 4, held, s.Batch)
		if err != nil {
			t.Fatal(err)
		}
		loss := 0.0
		for r, row := range logits {
			for which := range 2 {
				sum, right := 0.0, 0.0
				for i := range s.Sequence - 1 {
					x := math.Exp(float64(row[2*i+which]))
					sum += x
					right += x * float64(held.Float32(task.Labels)[2*(r*s.Sequence+i)+which])
				}
				loss -= math.Log(right/sum) / 8
			}
		}
		if d := math.Abs(loss - float64(after[0])); d > 1e-4 {
			t.Errorf("prediction has the loss %v, training %v", loss, after[0])
		}
	}
	if !(last[true] < 0.3 && last[false] > 2*last[true]) {
		t.Errorf("losses %v with boxes, %v without", last[true], last[false])
	}
}

// Two right places share what is right: the loss is that of their sum, and an example
// without weight has none.
func TestSpanLossOfTwoPlaces(t *testing.T) {
	s, base := spanSpec(t)
	tr, err := NewTrainer(s, base)
	if err != nil {
		t.Fatal(err)
	}
	lay, _ := s.Layout()
	b := spanBatch(s, 1)
	labels := b.Float32(task.Labels)
	labels[2*9], labels[2*10] = 1, 1
	for r := 1; r < 4; r++ {
		b.Float32(task.Weights)[r] = 0
	}
	begins := 0.0
	for i := range s.Sequence {
		begins += float64(labels[2*i])
	}
	_, losses, err := tr.Train(t.Context(), model.NewAdapter(lay, 1).Slice(4), []task.Batch{b}, 0.1)
	want := (math.Log(11/begins) + math.Log(11)) / 2
	if err != nil || math.Abs(float64(losses[0])-want) > 1e-5 {
		t.Errorf("loss %v, %v, want %v", losses, err, want)
	}
	clear(b.Float32(task.Weights))
	if _, losses, err = tr.Train(t.Context(), model.NewAdapter(lay, 1).Slice(4), []task.Batch{b}, 0.1); err != nil || losses[0] != 0 {
		t.Errorf("loss %v of nothing, %v", losses, err)
	}
}

// A pass over long texts is cut into programs whose every product may be run: sixteen
// rows of these would be refused.
func TestLongTextsArePredicted(t *testing.T) {
	c := model.BERT(40, 384, 1, 12, 288)
	base := testBase(t, c)
	lay, err := model.NewLayout(c, model.Method{RMax: 1, Alpha: 1, Task: model.TaskTag}, 2)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPredictor(lay, base, 288, compiler.New())
	if err != nil {
		t.Fatal(err)
	}
	tokens := make([][]int32, 8)
	for i := range tokens {
		tokens[i] = make([]int32, 288)
		for k := range 288 - i {
			tokens[i][k] = int32(1 + (i+k)%39)
		}
	}
	logits, err := p.Logits(t.Context(), model.NewAdapter(lay, 1).Slice(1), 1, tokens)
	if err != nil || len(logits) != 8 || len(logits[7]) != 2*288 {
		t.Errorf("%d rows, %v", len(logits), err)
	}
}
