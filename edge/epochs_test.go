package edge

import (
	"context"
	"testing"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/job/training"
)

// counting is a trainer that notes how many steps it took, and how often it saw what.
type counting struct {
	steps []int
	seen  map[int32]int // by label
}

func (c *counting) Train(_ context.Context, t Task) ([]float32, error) {
	n := 0
	for b, err := range t.Batches {
		if err != nil {
			return nil, err
		}
		n++
		for row, w := range b.Float32(task.Weights) {
			if w != 0 {
				c.seen[b.Int32(task.Labels)[row]]++
			}
		}
		t.Progress(n, t.Steps)
	}
	c.steps = append(c.steps, n)
	return make([]float32, len(t.Start)), nil
}

func (*counting) Close() error { return nil }

// An epoch is a pass over what a unit holds, the short last batch included, and steps
// bound it.
func TestEpochs(t *testing.T) {
	layout, data, lattice := foxes(t, 5)
	for _, c := range []struct{ epochs, steps, want, each int }{
		{3, 100, 9, 3}, {1, 100, 3, 1}, {0, 6, 6, 2}, {3, 3, 3, 1}, {1 << 20, 6, 6, 2},
	} {
		trainer := &counting{seen: map[int32]int{}}
		var last, total int64
		_, err := Contribute(t.Context(), trainer, data, Contribution{
			Round: 1, Lattice: lattice, Seed: []byte("sixteen bytes, no less"),
			Task:     Task{Layout: layout, Start: make([]float32, layout.Size(0)), Spec: training.Spec{Steps: c.steps, Epochs: c.epochs, Batch: 2}},
			Progress: func(done, all int64) { last, total = done, all },
		})
		ok(t, err)
		if trainer.steps[0] != c.want || last != total || int(total) != c.want {
			t.Errorf("%+v: %d steps, progress %d of %d", c, trainer.steps[0], last, total)
		}
		for label, n := range trainer.seen {
			if n != c.each {
				t.Errorf("%+v: example %d was seen %d times", c, label, n)
			}
		}
	}
}
