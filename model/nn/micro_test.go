package nn

import (
	"math"
	"slices"
	"testing"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
)

// A step in micro-batches is the step of the whole batch but for rounding, whatever
// its examples weigh, also where a micro-batch has none; and it repeats to the bit.
func TestMicroBatches(t *testing.T) {
	for _, optimizer := range training.Optimizers {
		whole := testSpec(2)
		whole.Optimizer, whole.Batch = optimizer, 6
		whole.StatisticsEvery, whole.RootsEvery = 1, 2 // of shampoo
		b := testBase(t, whole.Config)
		batches := testBatches(whole, 3)
		batches[1].Float32(task.Weights)[0], batches[1].Float32(task.Weights)[3] = 0.5, 0
		batches[2].Clear(2) // only a part of the last one is filled
		want, wantLoss := trainMicro(t, whole, b, batches)
		for _, micro := range []int{1, 2, 3, 6} {
			s := whole
			s.MicroBatch = micro
			got, loss := trainMicro(t, s, b, batches)
			far := 0.0 // on average: AdamW makes much of gradients that are next to nothing
			for i := range want {
				far += math.Abs(float64(got[i]-want[i])) / float64(len(want))
			}
			for i := range wantLoss {
				far = max(far, math.Abs(float64(loss[i]-wantLoss[i])))
			}
			if far > 2e-5 {
				t.Errorf("%s in micro-batches of %d: %v from the whole", optimizer, micro, far)
			}
			if micro == 6 && !slices.Equal(got, want) {
				t.Errorf("%s: a micro-batch that is the batch is another step", optimizer)
			}
			if again, _ := trainMicro(t, s, b, batches); !slices.Equal(got, again) {
				t.Errorf("%s in micro-batches of %d: other bits the second time", optimizer, micro)
			}
		}
	}
	s := testSpec(2)
	for _, micro := range []int{-1, 3, 5} {
		if s.MicroBatch = micro; second(s.Layout()) == nil {
			t.Errorf("a batch of %d in micro-batches of %d", s.Batch, micro)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func trainMicro(t *testing.T, s StepSpec, b *model.Base, batches []task.Batch) (delta, losses []float32) {
	t.Helper()
	tr, err := NewTrainer(s, b)
	if err != nil {
		t.Fatal(err)
	}
	delta, losses, err = tr.Train(t.Context(), slice(t, s), batches, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	return delta, losses
}
