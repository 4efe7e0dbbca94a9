// Package central trains in one place what a job would train on devices, with the
// programs that devices run: what a benchmark holds a federation to.
package central

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/leaf/cputime"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/trainer"
	"github.com/starling-fl/starling/wasm/program"
)

// Part is so many steps at one learning rate.
type Part struct {
	Steps int
	Rate  float64
}

// Training is of an adapter at a rank, on examples in a random order. Each part begins
// with moments of its own, as a round does.
type Training struct {
	Job      job.Job // that knows its base
	Base     *model.Base
	Task     task.Task
	Rank     int
	Parts    []Part
	Seed     uint64
	Progress io.Writer
}

// Run changes the adapter.
func (t Training) Run(ctx context.Context, examples []dataset.Example, adapter *model.Adapter) error {
	program, err := program.Step(program.Spec{Job: t.Job, Base: t.Base, Rank: t.Rank, Host: program.Hosts[0]})
	if err != nil {
		return err
	}
	feed, err := t.feed(examples)
	if err != nil {
		return err
	}
	sum, err := t.Base.SHA256()
	if err != nil {
		return err
	}
	p := edge.NewProgramTrainer(1)
	defer p.Close()
	began := cputime.Now()
	for _, part := range t.Parts {
		if part.Steps == 0 {
			continue
		}
		spec := t.Job.Training
		spec.Steps, spec.LearningRate = part.Steps, part.Rate
		start := adapter.Slice(t.Rank)
		delta, err := p.Train(ctx, edge.Task{
			Base: func(context.Context) (*model.Base, error) { return t.Base, nil }, BaseSHA256: sum,
			Layout: adapter.Layout(), Rank: t.Rank, Start: start, Columns: t.Task.Columns(), Batches: feed.batches(part.Steps),
			Spec: spec, Sequence: t.Job.Adapter.Sequence, Program: program,
			Progress: func(done, total int) {
				if done%(max(10, total/10)) == 0 {
					fmt.Fprintf(t.Progress, "step %d of %d, %.0f s of a processor\n", done, total, (cputime.Now() - began).Seconds())
				}
			},
		})
		if err != nil {
			return err
		}
		for i := range start {
			start[i] += delta[i]
		}
		if err := adapter.SetSlice(t.Rank, start); err != nil {
			return err
		}
	}
	return nil
}

// feed draws batches of rows that teach something.
type feed struct {
	rows  task.Batch
	of    []int // rows
	order []int // places in of that are still to come
	size  int
	rng   *rand.Rand
}

func (t Training) feed(examples []dataset.Example) (*feed, error) {
	parts, _, err := task.Rows(t.Task, examples)
	if err != nil {
		return nil, err
	}
	f := &feed{size: t.Job.Training.Batch, rng: rand.New(rand.NewPCG(t.Seed, 1))}
	if f.rows, err = task.EncodeAll(t.Task, parts); err != nil {
		return nil, err
	}
	weights, _ := f.rows.Column(task.Weights)
	n := weights.Size()
	for i := range parts {
		for _, w := range weights.F32[i*n : (i+1)*n] {
			if w > 0 {
				f.of = append(f.of, i)
				break
			}
		}
	}
	if len(f.of) < f.size {
		return nil, fmt.Errorf("%d examples are fewer than a batch of %d", len(f.of), f.size)
	}
	return f, nil
}

func (f *feed) batches(steps int) iter.Seq2[trainer.Batch, error] {
	return func(yield func(trainer.Batch, error) bool) {
		for range steps {
			if len(f.order) < f.size {
				f.order = f.rng.Perm(len(f.of))
			}
			chosen := make([]int, f.size)
			for i := range chosen {
				chosen[i] = f.of[f.order[i]]
			}
			f.order = f.order[f.size:]
			if !yield(f.rows.Pick(chosen), nil) {
				return
			}
		}
	}
}
