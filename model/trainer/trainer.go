// Package trainer is the interface between a device's rounds and whatever trains:
// a compiled program in a sandbox (package edge), GoMLX on the host (package
// model/nn), or another. It says what goes in and what comes out, nothing of how.
//
//	delta, err := tr.Train(ctx, trainer.Task{Start: slice, Rank: 8, Steps: 10}) // tr is a trainer.Trainer
package trainer

import (
	"context"
	"errors"
	"iter"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
)

// ErrDiverged is training whose update is not finite.
var ErrDiverged = errors.New("training diverged")

// A Trainer runs a round's local steps. Implementations are safe for
// concurrent use, so that many clients in one process can share one.
type Trainer interface {
	// Train starts from t.Start, runs t.Steps steps, one for every batch, and returns
	// what changed: the values after minus t.Start, in the layout's order at t.Rank.
	// Values that are not finite are an error. It looks at ctx often.
	Train(ctx context.Context, t Task) (delta []float32, err error)
	Close() error
}

// A Cohort trains several clients at once, whose updates are within rounding of those
// that Train makes: bits differ, by the size of a cohort too.
type Cohort interface {
	Trainer
	// Together is the most tasks that TrainAll takes; below 2 call Train instead.
	Together() int
	// TrainAll is Train for every task. They are alike but for their batches and,
	// possibly, their starts and numbers of steps.
	TrainAll(ctx context.Context, tasks []Task) []Trained
}

// Trained is the result of one task.
type Trained struct {
	Delta []float32
	Err   error
}

// A Task is a round's local work, checked against the plan.
//
// Of the Spec a device knows what it was announced, with the rate and the steps of the plan,
// the steps being those of the unit that trains; a simulation knows all of it.
type Task struct {
	training.Spec
	Sequence int // tokens in an example

	// Base opens the frozen base; BaseSHA256 is the hash of its blob. A device
	// does not hold a base in memory that it can read again: a trainer that has
	// taken the weights lets go of it.
	Base       func(ctx context.Context) (*model.Base, error)
	BaseSHA256 [32]byte

	Layout *model.Layout
	Rank   int       // 0: the head alone
	Start  []float32 // Layout.Size(Rank) values; the trainer must not change them
	// MostSteps replaces Steps in the check of Work if it is larger: it is the same for all
	// devices, whatever each holds.
	MostSteps int
	// Columns are a step's inputs but for its learning rate and number; every batch
	// has them, in this order.
	Columns []task.Column
	// Batches yields Steps batches of one shape, made one at a time: each is good
	// until the next is asked for.
	Batches iter.Seq2[Batch, error]
	// Features caches what the frozen convolutions compute of recordings; nil: no cache.
	Features *Features
	// Work is the most that all steps may take together, in units of an eighth of an
	// instruction, as far as the trainer can tell; 0: no limit.
	Work float64
	// MostMemory is the most that a compiled program may take, in MiB; 0: the trainer's own
	// limit.
	MostMemory int

	// Program is the compiled step for this host, or what a trainer makes it from; nil
	// where the plan names none.
	Program []byte

	Progress func(done, total int) // after each step; may be nil
	// Scores hears after each step the mean loss before it, and the share of right labels, NaN where the step does
	// not compute it; may be nil.
	Scores func(loss, right float64)
}

// Did tells Progress and Scores of a step.
func (t *Task) Did(done int, loss, right float32) {
	if t.Progress != nil {
		t.Progress(done, t.Steps)
	}
	if t.Scores != nil {
		t.Scores(float64(loss), float64(right))
	}
}

// A Batch is one step's examples: Task.Batch rows of every column. Rows with weight
// 0 fill up the shape.
type Batch = task.Batch

// Batches yields batches that are in memory already.
func Batches(all ...Batch) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		for _, b := range all {
			if !yield(b, nil) {
				return
			}
		}
	}
}
