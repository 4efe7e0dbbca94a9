package hosted

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"slices"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/model/trainer"
)

// Cohort is a Trainer whose steps are made for several clients at once: one product over
// the rows of all of them where weights are frozen, one for each where they are
// trained. It is what accelerators want, which a single client leaves idle.
type Cohort struct {
	*Trainer
	clients int
}

var _ trainer.Cohort = Cohort{}

// Together lets steps be made for so many clients at once, 1..1024.
func (h *Trainer) Together(clients int) Cohort { return Cohort{h, max(1, min(clients, nn.MaxClients))} }

// Together is trainer.Cohort's.
func (c Cohort) Together() int { return c.clients }

// TrainAll is trainer.Cohort's. Tasks that no step can be made for together, by their
// kind or because their steps differ, are trained one by one.
func (c Cohort) TrainAll(ctx context.Context, tasks []trainer.Task) []trainer.Trained {
	if len(tasks) == 0 {
		return nil
	}
	first := tasks[0]
	unlike := func(t trainer.Task) bool {
		return t.Scores != nil || t.Steps != first.Steps || t.LearningRate != first.LearningRate || t.BaseSHA256 != first.BaseSHA256 || string(t.Program) != string(first.Program)
	}
	if len(tasks) > c.clients || slices.ContainsFunc(tasks, unlike) {
		return c.singly(ctx, tasks)
	}
	s, err := c.take(ctx, first, c.clients)
	if err != nil {
		return failed(len(tasks), err)
	}
	defer c.put(s)
	if s.trainer.Spec.Clients == 0 {
		return c.singly(ctx, tasks)
	}
	select {
	case c.slots <- struct{}{}: // after singly, which takes them itself
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return failed(len(tasks), ctx.Err())
	}
	for _, t := range tasks {
		if err := s.fits(t); err != nil {
			return failed(len(tasks), err)
		}
	}
	deltas, err := s.trainAll(ctx, tasks)
	if err != nil {
		return failed(len(tasks), err)
	}
	out := make([]trainer.Trained, len(tasks))
	for i, d := range deltas {
		if err := finite(d); err != nil {
			out[i].Err = err
			continue
		}
		out[i].Delta = d
	}
	return out
}

func (c Cohort) singly(ctx context.Context, tasks []trainer.Task) []trainer.Trained {
	out := make([]trainer.Trained, len(tasks))
	for i, t := range tasks {
		out[i].Delta, out[i].Err = c.Train(ctx, t)
	}
	return out
}

func failed(n int, err error) []trainer.Trained {
	return slices.Repeat([]trainer.Trained{{Err: err}}, n)
}

// trainAll takes the steps of all tasks at once, at most as many as the step has room
// for; the first one's stand in the places that are left.
func (s *step) trainAll(ctx context.Context, tasks []trainer.Task) (deltas [][]float32, err error) {
	t := s.trainer
	clients := t.Spec.Clients
	place := func(c int) int { // the task whose values client c has
		if c < len(tasks) {
			return c
		}
		return 0
	}
	for i := range tasks {
		if err := t.Layout.CheckSlice(tasks[i].Start, t.Spec.Rank); err != nil {
			return nil, err
		}
	}
	state := map[string]compute.Buffer{}
	defer func() {
		for _, b := range state {
			_ = b.Finalize()
		}
	}()
	at := 0
	for _, p := range t.Program.Params {
		if p.Role != nn.State {
			continue
		}
		n := model.Elements(p.Shape) / clients
		values := make([]float32, n*clients)
		if at < len(tasks[0].Start) {
			for c := range clients {
				copy(values[c*n:], tasks[place(c)].Start[at:at+n])
			}
			at += n
		}
		if state[p.Name], err = t.Program.Buffer(p, values); err != nil {
			return nil, err
		}
	}
	next := make([]func() (trainer.Batch, error, bool), len(tasks))
	for i, task := range tasks {
		pull, stop := iter.Pull2(task.Batches)
		defer stop()
		next[i] = pull
	}
	for step := range tasks[0].Steps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		inputs := map[string]any{trainer.InputRate: []float32{float32(tasks[0].LearningRate)}, trainer.InputStep: []float32{float32(step + 1)}}
		batches := make([]trainer.Batch, len(tasks))
		for i := range tasks {
			b, err, more := next[i]()
			if err != nil {
				return nil, err
			}
			if !more {
				return nil, fmt.Errorf("hosted: %d batches for %d steps", step, tasks[i].Steps)
			}
			if batches[i], err = b.Bound(t.Columns, t.Spec.Batch); err != nil {
				return nil, err
			}
		}
		for i, column := range t.Columns {
			var i32 []int32
			var f32 []float32
			for c := range clients {
				v := batches[place(c)][i]
				i32, f32 = append(i32, v.I32...), append(f32, v.F32...)
			}
			inputs[column.Name] = i32
			if column.Type == task.F32 {
				inputs[column.Name] = f32
			}
		}
		if _, _, err := t.Program.Advance(state, t.Frozen, inputs); err != nil {
			return nil, err
		}
		for _, task := range tasks {
			if task.Progress != nil {
				task.Progress(step+1, task.Steps)
			}
		}
	}
	deltas = make([][]float32, len(tasks))
	for _, span := range t.Layout.Spans(t.Spec.Rank) {
		if span.Len == 0 {
			continue
		}
		v, err := nn.Floats(state[span.Name], clients*span.Len)
		if err != nil {
			return nil, err
		}
		for i := range deltas {
			deltas[i] = append(deltas[i], v[i*span.Len:(i+1)*span.Len]...)
		}
	}
	for i, d := range deltas {
		for k := range d {
			d[k] -= tasks[i].Start[k]
		}
	}
	return deltas, nil
}

// stepSum identifies a description for so many clients.
func stepSum(description []byte, clients int) [32]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%d clients\x00%s", clients, description))
}
