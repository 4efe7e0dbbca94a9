package nn

import (
	"math"
	"slices"
	"testing"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/trainer"
)

// What a step that scores calls right is what its own scores say, read by hand: in whole
// batches and in pieces, of one label and of several.
func TestRightOfAStep(t *testing.T) {
	for _, fresh := range []bool{false, true} { // a fresh head scores all alike
		for _, kind := range []model.TaskKind{model.TaskClassify, model.TaskMultiLabel, model.TaskTag} {
			if fresh && kind == model.TaskMultiLabel {
				continue
			}
			s := testSpec(2)
			s.Method.Task, s.HeldOut = kind, 0.1
			b := testBase(t, s.Config)
			var batches []trainer.Batch
			for i := range 3 {
				batch := emptyBatch(s)
				for k := range batch.Int32(task.Tokens) {
					batch.Int32(task.Tokens)[k] = int32(2 + (i*7+k*k*3)%38)
				}
				for k := range batch.Float32(task.Labels) {
					batch.Float32(task.Labels)[k] = float32((i + k/2) % 2)
				}
				for k := range batch.Int32(task.Labels) {
					batch.Int32(task.Labels)[k] = int32((i + k) % s.Classes)
				}
				for k := range batch.Float32(task.Weights) {
					batch.Float32(task.Weights)[k] = float32(1 + (k+i)%2)
				}
				batches = append(batches, batch)
			}
			batches[1].Float32(task.Weights)[1] = 0
			start := slice(t, s)
			for i := range start {
				if !fresh {
					start[i] += 0.3 * float32(math.Sin(float64(i)*1.7))
				}
			}
			lay, err := s.Layout()
			if err != nil {
				t.Fatal(err)
			}
			p, err := NewPredictor(lay, b, s.Sequence, nil)
			if err != nil {
				t.Fatal(err)
			}
			var want []float64
			for _, batch := range batches {
				logits, err := p.Outputs(t.Context(), start, s.Rank, batch, s.Batch)
				if err != nil {
					t.Fatal(err)
				}
				right, weight := 0.0, 0.0
				weights := batch.Float32(task.Weights)
				each := len(weights) / s.Batch
				for k, w := range weights {
					scores := logits[k/each][k%each*s.Classes : (k%each+1)*s.Classes]
					good := 0.0
					if kind == model.TaskMultiLabel {
						for c, v := range scores {
							if (v > 0) == (batch.Float32(task.Labels)[k*s.Classes+c] > 0.5) {
								good += 1 / float64(s.Classes)
							}
						}
					} else if best := slices.Max(scores); scores[batch.Int32(task.Labels)[k]] == best {
						ties := 0.0
						for _, v := range scores {
							if v == best {
								ties++
							}
						}
						good = 1 / ties
					}
					right, weight = right+float64(w)*good, weight+float64(w)
				}
				want = append(want, right/weight)
			}
			if !fresh && slices.Max(want) == slices.Min(want) || fresh && math.Abs(want[0]-1.0/3) > 1e-9 {
				t.Errorf("%s: every batch has %v right: this test tells nothing", kind, want[0])
			}
			for _, micro := range []int{0, 2, 1} {
				s.MicroBatch = micro
				tr, err := NewTrainer(s, b)
				if err != nil {
					t.Fatal(err)
				}
				var got []float64
				if _, _, err := tr.TrainEach(t.Context(), start, trainer.Batches(batches...), 0, func(_ int, _, right float32) { got = append(got, float64(right)) }); err != nil {
					t.Fatal(err)
				}
				for i := range want {
					if math.Abs(got[i]-want[i]) > 1e-6 {
						t.Errorf("%s in pieces of %d, batch %d: %v is right, want %v", kind, micro, i, got[i], want[i])
					}
				}
			}
		}
	}
}
