package nn

import (
	"context"
	"fmt"
	"sync"

	"github.com/starling-fl/starling/trainer"
)

// Reference trains on GoMLX's Go backend: the same graphs as the compiled
// programs, run by somebody else's code. It keeps the last step it compiled.
type Reference struct {
	mu   sync.Mutex
	kept referenceKey
	step *Trainer // by mu
}

var _ trainer.Trainer = (*Reference)(nil)

// referenceKey is what a compiled step with its weights depends on.
type referenceKey struct {
	base [32]byte
	spec StepSpec
}

// NewReference returns a trainer for any task.
func NewReference() *Reference { return new(Reference) }

// Train is trainer.Trainer's. It does not look at the task's program.
func (r *Reference) Train(ctx context.Context, t trainer.Task) ([]float32, error) {
	step, err := r.compile(ctx, t)
	if err != nil {
		return nil, err
	}
	var batches []trainer.Batch
	for b, err := range t.Batches {
		if err != nil {
			return nil, err
		}
		batches = append(batches, b.Clone())
	}
	delta, _, err := step.train(ctx, t.Start, trainer.Batches(batches...), float32(t.LearningRate), t.Did)
	if err != nil {
		return nil, err
	}
	for i, v := range delta {
		if v-v != 0 {
			return nil, fmt.Errorf("nn: value %d of the update is %v: training diverged", i, v)
		}
	}
	return delta, nil
}

// compile yields the step for a task; concurrent tasks of one kind wait for it.
func (r *Reference) compile(ctx context.Context, t trainer.Task) (*Trainer, error) {
	spec := StepSpec{
		Config: t.Layout.Config, Method: t.Layout.Method, Classes: t.Layout.Classes, Rank: t.Rank,
		Sequence: t.Sequence, Spec: t.Spec,
	}
	// What differs by round or unit, or is an input, is not in a step.
	spec.Steps, spec.Epochs, spec.LearningRate, spec.HeadLearningRate = 0, 0, 1, spec.headRate()
	key := referenceKey{t.BaseSHA256, spec}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.step != nil && r.kept == key {
		return r.step, nil
	}
	base, err := t.Base(ctx)
	if err != nil {
		return nil, err
	}
	// A device's base is its blob: the weights are decoded as they are needed, and
	// the step has its own copy.
	step, err := NewTrainer(key.spec, base)
	if err != nil {
		return nil, err
	}
	r.kept, r.step = key, step
	return step, nil
}

// Close lets go of the weights.
func (r *Reference) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept, r.step = referenceKey{}, nil
	return nil
}
