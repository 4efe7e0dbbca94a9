// Package reference trains on GoMLX's Go backend, for tests to hold the compiled programs to; they
// link it by importing github.com/gomlx/compute/gobackend.
package reference

import (
	"context"
	"fmt"
	"sync"

	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/model/trainer"
)

// Trainer trains on GoMLX's Go backend: the same graphs as the compiled
// programs, run by somebody else's code. It keeps the last step it compiled.
type Trainer struct {
	mu   sync.Mutex
	kept key
	step *nn.Trainer // by mu
}

var _ trainer.Trainer = (*Trainer)(nil)

// key is what a compiled step with its weights depends on.
type key struct {
	base [32]byte
	spec nn.StepSpec
}

// New returns a trainer for any task.
func New() *Trainer { return new(Trainer) }

// Train is trainer.Trainer's. It does not look at the task's program.
func (r *Trainer) Train(ctx context.Context, t trainer.Task) ([]float32, error) {
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
	delta, _, err := step.TrainEach(ctx, t.Start, trainer.Batches(batches...), float32(t.LearningRate), t.Did)
	if err != nil {
		return nil, err
	}
	for i, v := range delta {
		if v-v != 0 {
			return nil, fmt.Errorf("reference: value %d of the update is %v: training diverged", i, v)
		}
	}
	return delta, nil
}

// compile yields the step for a task; concurrent tasks of one kind wait for it.
func (r *Trainer) compile(ctx context.Context, t trainer.Task) (*nn.Trainer, error) {
	spec := nn.StepSpec{
		Config: t.Layout.Config, Method: t.Layout.Method, Classes: t.Layout.Classes, Rank: t.Rank,
		Sequence: t.Sequence, Spec: t.Spec,
	}
	// What differs by round or unit, or is an input, is not in a step.
	spec.Steps, spec.Epochs, spec.LearningRate, spec.HeadLearningRate = 0, 0, 1, spec.HeadRate()
	k := key{t.BaseSHA256, spec}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.step != nil && r.kept == k {
		return r.step, nil
	}
	base, err := t.Base(ctx)
	if err != nil {
		return nil, err
	}
	// A device's base is its blob: the weights are decoded as they are needed, and
	// the step has its own copy.
	step, err := nn.NewTrainer(k.spec, base)
	if err != nil {
		return nil, err
	}
	r.kept, r.step = k, step
	return step, nil
}

// Close lets go of the weights.
func (r *Trainer) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept, r.step = key{}, nil
	return nil
}
