// Package hosted trains on a GoMLX backend of this host, such as XLA's. It runs the graphs of the
// compiled programs for simulations, which need no sandbox. No device links it.
//
//	tr := hosted.New(backend, 4, program.Read) // a trainer.Trainer
package hosted

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/model/trainer"
)

// Trainer trains on a GoMLX backend of this host, such as XLA: the graphs of the compiled programs,
// in a simulation, which needs no sandbox. In place of a program a task carries the description of
// its step. Steps are compiled once for each rank, which may take seconds, and share the base's
// weights on the backend.
type Trainer struct {
	backend compute.Backend
	read    func(description []byte, base *model.Base) (nn.StepSpec, error)
	slots   chan struct{}

	mu      sync.Mutex
	weights map[[32]byte]map[string]compute.Buffer // by base; by mu
	steps   []*step                                // by mu; most recently used last
}

// keptSteps bounds the compiled steps that wait for another round of their rank.
const keptSteps = 64

// step is one that is compiled, or being compiled.
type step struct {
	base [32]byte      // whose weights it has
	sum  [32]byte      // of its description
	made chan struct{} // closed once trainer or err is there
	used int           // trainings that hold it; by Trainer.mu

	trainer *nn.Trainer
	err     error
}

var _ trainer.Trainer = (*Trainer)(nil)

// New lets at most parallel trainings run at once; the others wait. read
// makes a step of a task's description, over the base.
func New(be compute.Backend, parallel int, read func(description []byte, base *model.Base) (nn.StepSpec, error)) *Trainer {
	return &Trainer{backend: be, read: read, slots: make(chan struct{}, max(1, parallel)), weights: map[[32]byte]map[string]compute.Buffer{}}
}

// Train is trainer.Trainer's. It bounds no work: the step is this program's own.
func (h *Trainer) Train(ctx context.Context, t trainer.Task) ([]float32, error) {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := h.take(ctx, t, 0)
	if err != nil {
		return nil, err
	}
	defer h.put(s)
	if err := s.fits(t); err != nil {
		return nil, err
	}
	delta, losses, err := s.trainer.TrainEach(ctx, t.Start, t.Batches, float32(t.LearningRate), t.Did)
	if err != nil {
		return nil, err
	}
	if len(losses) != t.Steps {
		return nil, fmt.Errorf("hosted: %d batches for %d steps", len(losses), t.Steps)
	}
	if err := finite(delta); err != nil {
		return nil, err
	}
	return delta, nil
}

// finite refuses an update with values that are not finite.
func finite(delta []float32) error {
	for i, v := range delta {
		if v := float64(v); math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%w: value %d of the update is %v", trainer.ErrDiverged, i, v)
		}
	}
	return nil
}

// fits refuses a task that the step was not described for.
func (s *step) fits(task trainer.Task) error {
	is, lay := s.trainer.Spec, s.trainer.Layout
	if is.Rank != task.Rank || is.Batch != task.Batch || is.Sequence != task.Sequence || is.Optimizer != task.Optimizer ||
		!slices.EqualFunc(lay.Entries(), task.Layout.Entries(), func(a, b model.Entry) bool {
			return a.Name == b.Name && slices.Equal(a.Shape, b.Shape)
		}) {
		return fmt.Errorf("hosted: the task is %s at rank %d of %d x %d, its step %s at rank %d of %d x %d, over one layout or two",
			task.Optimizer, task.Rank, task.Batch, task.Sequence, is.Optimizer, is.Rank, is.Batch, is.Sequence)
	}
	return nil
}

// take returns the task's step for a number of clients at once (0: one client, without
// an axis of clients), and holds it. Concurrent tasks of one kind wait for the one that
// compiles.
func (h *Trainer) take(ctx context.Context, t trainer.Task, clients int) (*step, error) {
	sum := stepSum(t.Program, clients)
	h.mu.Lock()
	i := slices.IndexFunc(h.steps, func(s *step) bool { return s.sum == sum && s.base == t.BaseSHA256 })
	if i < 0 {
		s := &step{base: t.BaseSHA256, sum: sum, made: make(chan struct{}), used: 1}
		err := h.forget(keptSteps-1, t.BaseSHA256)
		h.steps = append(h.steps, s)
		h.mu.Unlock()
		if err == nil {
			s.trainer, err = h.compile(ctx, t, clients)
		}
		s.err = err
		close(s.made)
		return h.held(s)
	}
	s := h.steps[i]
	h.steps = append(slices.Delete(h.steps, i, i+1), s)
	s.used++
	h.mu.Unlock()
	select {
	case <-s.made:
	case <-ctx.Done():
		h.put(s)
		return nil, ctx.Err()
	}
	if errors.Is(s.err, context.Canceled) { // the task that compiled it was stopped, this one was not
		h.put(s)
		return h.take(ctx, t, clients)
	}
	return h.held(s)
}

// held returns a step that is made, or the error of making it.
func (h *Trainer) held(s *step) (*step, error) {
	if s.err != nil {
		h.put(s)
		return nil, s.err
	}
	return s, nil
}

// compile makes the task's step. It has mu: one step at a time puts the base's
// weights on the backend, so that none is there twice.
func (h *Trainer) compile(ctx context.Context, t trainer.Task, clients int) (*nn.Trainer, error) {
	base, err := t.Base(ctx)
	if err != nil {
		return nil, err
	}
	spec, err := h.read(t.Program, base)
	if err != nil {
		return nil, err
	}
	lay, err := spec.Layout()
	if err != nil {
		return nil, err
	}
	if clients > 0 && spec.Together(lay) {
		spec.Clients = clients
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.weights[t.BaseSHA256]
	if w == nil {
		w = map[string]compute.Buffer{}
		h.weights[t.BaseSHA256] = w
	}
	return nn.NewTrainerOn(h.backend, spec, base, w)
}

// put lets go of a step; one that could not be made is forgotten.
func (h *Trainer) put(s *step) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.used--
	select {
	case <-s.made:
	default:
		return
	}
	if s.err != nil {
		h.steps = slices.DeleteFunc(h.steps, func(x *step) bool { return x == s })
	}
}

// forget frees steps that nobody holds: all of other bases, with their weights, and
// of this base the least recently used until keep are left. It is called with mu
// held.
func (h *Trainer) forget(keep int, base [32]byte) error {
	excess := -keep
	for _, s := range h.steps {
		if s.base == base {
			excess++
		}
	}
	bases := map[[32]byte]bool{base: true}
	h.steps = slices.DeleteFunc(h.steps, func(s *step) bool {
		if s.used > 0 || s.base == base && excess <= 0 {
			bases[s.base] = true
			return false
		}
		if s.base == base {
			excess--
		}
		if s.trainer != nil {
			s.trainer.Program.Close()
		}
		return true
	})
	var errs []error
	for sum, w := range h.weights {
		if bases[sum] {
			continue
		}
		for _, b := range w {
			errs = append(errs, b.Finalize())
		}
		delete(h.weights, sum)
	}
	return errors.Join(errs...)
}

// Close frees the buffers on the backend, which stays open. No training may be running.
func (h *Trainer) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.forget(0, [32]byte{})
}
