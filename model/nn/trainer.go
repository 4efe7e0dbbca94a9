package nn

import (
	"context"
	"fmt"
	"iter"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/trainer"
)

// Trainer runs training steps on a GoMLX backend: on the Go one, the reference for
// the compiled program. It is safe for concurrent use; concurrent calls run side
// by side.
type Trainer struct {
	Spec    StepSpec
	Layout  *model.Layout
	Columns []task.Column
	Program *Program
	Frozen  map[string]compute.Buffer // read-only after NewTrainer
}

// NewTrainer compiles the step for the Go backend and loads the frozen weights. A
// base that does not fit the specification is refused with the name of the tensor.
func NewTrainer(spec StepSpec, base *model.Base) (*Trainer, error) {
	return NewTrainerOn(nil, spec, base, map[string]compute.Buffer{})
}

// NewTrainerOn compiles the step for a backend, nil being the Go one. frozen are the
// base's tensors that are on it already; those that the step adds are put there.
func NewTrainerOn(be compute.Backend, spec StepSpec, base *model.Base, frozen map[string]compute.Buffer) (*Trainer, error) {
	lay, err := spec.Layout()
	if err != nil {
		return nil, err
	}
	t := &Trainer{Spec: spec, Layout: lay}
	if t.Columns, err = task.Columns(lay, spec.Sequence); err != nil {
		return nil, err
	}
	if t.Program, err = Compile(be, fmt.Sprintf("step-b%d", spec.Rank), spec.Build); err != nil {
		return nil, err
	}
	t.Frozen, err = frozenBuffers(t.Program, base, frozen)
	return t, err
}

// frozenBuffers loads a program's frozen parameters from the base, but those that
// are loaded already, and adds them to loaded.
func frozenBuffers(p *Program, base *model.Base, loaded map[string]compute.Buffer) (map[string]compute.Buffer, error) {
	buffers := map[string]compute.Buffer{}
	for _, param := range p.Params {
		if param.Role != Frozen {
			continue
		}
		if b := loaded[param.Name]; b != nil {
			buffers[param.Name] = b
			continue
		}
		v, err := base.Tensor(param.Name)
		if err != nil {
			return nil, fmt.Errorf("nn: frozen %q of shape %v: %w", param.Name, param.Shape, err)
		}
		if len(v) != model.Elements(param.Shape) {
			return nil, &model.ShapeError{Tensor: param.Name, Got: []int{len(v)}, Want: param.Shape}
		}
		b, err := p.Buffer(param, v)
		if err != nil {
			return nil, err
		}
		buffers[param.Name], loaded[param.Name] = b, b
	}
	return buffers, nil
}

// Train takes one step a batch from start, an adapter slice at the trainer's
// rank in the layout's order, with fresh optimizer state, and returns what
// changed and the loss before each step. It checks ctx between steps.
func (t *Trainer) Train(ctx context.Context, start []float32, batches []trainer.Batch, learningRate float32) (delta, losses []float32, err error) {
	return t.TrainEach(ctx, start, trainer.Batches(batches...), learningRate, func(int, float32, float32) {})
}

// TrainEach is Train with batches that are made one at a time, and word of each once it is done:
// its loss, and what it had right, else NaN.
func (t *Trainer) TrainEach(ctx context.Context, start []float32, batches iter.Seq2[trainer.Batch, error], learningRate float32,
	progress func(done int, loss, right float32)) (delta, losses []float32, err error) {
	if err := t.Layout.CheckSlice(start, t.Spec.Rank); err != nil {
		return nil, nil, err
	}
	state := map[string]compute.Buffer{}
	defer func() {
		for _, b := range state {
			_ = b.Finalize() // the Go backend's returns the memory to its pool
		}
	}()
	at := 0
	for _, p := range t.Program.Params {
		if p.Role != State {
			continue
		}
		n := model.Elements(p.Shape)
		values := make([]float32, n)
		if at < len(start) { // trained tensors come first, in order; moments start at zero
			copy(values, start[at:at+n])
			at += n
		}
		if state[p.Name], err = t.Program.Buffer(p, values); err != nil {
			return nil, nil, err
		}
	}
	for batch, err := range batches {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, nil, err
		}
		loss, right, err := t.step(state, batch, learningRate, float32(len(losses)+1))
		if err != nil {
			return nil, nil, err
		}
		losses = append(losses, loss)
		progress(len(losses), loss, right)
	}
	delta = make([]float32, 0, len(start))
	for _, span := range t.Layout.Spans(t.Spec.Rank) {
		if span.Len == 0 {
			continue
		}
		v, err := Floats(state[span.Name], span.Len)
		if err != nil {
			return nil, nil, err
		}
		delta = append(delta, v...)
	}
	for i := range delta {
		delta[i] -= start[i]
	}
	return delta, losses, nil
}

// step runs one step, micro-batch by micro-batch, and replaces the state by its new
// values.
func (t *Trainer) step(state map[string]compute.Buffer, batch trainer.Batch, learningRate, count float32) (loss, right float32, err error) {
	if batch, err = batch.Bound(t.Columns, t.Spec.Batch); err != nil {
		return 0, 0, err
	}
	rows := t.Spec.rows()
	for from := 0; from < t.Spec.Batch; from += rows {
		last := float32(0)
		if from+rows == t.Spec.Batch {
			last = 1
		}
		inputs := map[string]any{trainer.InputRate: []float32{learningRate}, trainer.InputStep: []float32{count}, trainer.InputLast: []float32{last}}
		for _, v := range batch.Cut(from, from+rows) {
			inputs[v.Name] = v.I32
			if v.Type == task.F32 {
				inputs[v.Name] = v.F32
			}
		}
		if loss, right, err = t.Program.Advance(state, t.Frozen, inputs); err != nil {
			return 0, 0, err
		}
	}
	return loss, right, nil
}
