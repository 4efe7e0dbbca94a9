package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
)

// ingredients are what a job's programs are made from beside the base, its
// name and its labels: Step looks at no more of a job.
type ingredients struct {
	Task     string       `json:"task,omitempty"`
	Adapter  job.Adapter  `json:"adapter"`
	Training job.Training `json:"training"`
}

// Recipe writes what a job's programs are made from, for its devices. The job is
// one that knows its base: see job.Job.ForBase.
func Recipe(j job.Job) ([]byte, error) {
	j.Training.EndFactor = 0 // a round's plan says its rate
	b, err := json.Marshal(ingredients{Task: j.Task, Adapter: j.Adapter, Training: j.Training})
	if err == nil && len(b) > wire.MaxRecipe {
		err = fmt.Errorf("%w: adapter: %d bytes of names, a recipe has at most %d", job.ErrInvalid, len(b), wire.MaxRecipe)
	}
	return b, err
}

// TrainingOf returns the local training that a recipe was written with. A round's plan has its own
// learning rate and number of steps.
func TrainingOf(recipe []byte) (job.Training, error) {
	from, err := read(recipe)
	return from.Training, err
}

// Shorter returns a recipe like the given one, with examples of sequence tokens.
func Shorter(recipe []byte, sequence int) ([]byte, error) {
	from, err := read(recipe)
	if err != nil {
		return nil, err
	}
	from.Adapter.Sequence = sequence
	return json.Marshal(from)
}

// read is what Recipe wrote.
func read(recipe []byte) (from ingredients, err error) {
	dec := json.NewDecoder(bytes.NewReader(recipe))
	dec.DisallowUnknownFields()
	if err = dec.Decode(&from); err != nil {
		err = fmt.Errorf("program: the job's recipe cannot be read: %w", err)
	} else if err = from.Training.CheckMemory(); err != nil { // it says how often Remake may try
		err = fmt.Errorf("program: the job's recipe: %w", err)
	}
	return from, err
}

// ErrWork is a program that would take more work to make than is allowed.
var ErrWork = errors.New("program: it takes too much work to make")

// Work is about what compiling the training step of a job takes, from its
// configuration alone and before anything is built: in the units of a device's limit
// of work, eighths of an instruction. The graph grows with the layers, and each trained
// tensor is looked for among all stages. Measured from 8 to 128 layers over all methods
// it is between the time taken and four times that.
func Work(j job.Job, base *model.Base, rank int) (float64, error) {
	const graph, search = 1.2e8, 2.5e6
	l, err := model.NewLayout(base.Config, j.Method(), len(j.Labels))
	if err != nil {
		return 0, fmt.Errorf("program: %w", err)
	}
	deep, _ := base.Config.Depth()
	layers, tensors := float64(deep), float64(len(l.Spans(rank)))
	tries := float64(len(nn.Recomputes(j.Training.Memory)))
	return tries * (graph*(layers+tensors/4) + search*layers*tensors), nil
}

// Remake compiles the program of an announced job again, for a device that runs no
// other: of the job's name, labels and recipe, over the base, at a rank and for a
// host. With the same version of the compiler it is the coordinator's to the bit. The
// coordinator chooses how large base and program are: what would take more than work
// (see Work) is not begun and returns ErrWork, and the end of ctx ends it.
func Remake(ctx context.Context, work float64, name string, labels []string, recipe []byte, base *model.Base, rank int, host string) ([]byte, error) {
	from, err := read(recipe)
	if err != nil {
		return nil, err
	}
	spec := Spec{Job: job.Job{Name: name, Labels: labels, Task: from.Task, Adapter: from.Adapter, Training: from.Training},
		Base: base, Rank: rank, Host: host}
	if from.Training.CompactBase {
		spec.Compact = Compactable(base)
	}
	if takes, err := Work(spec.Job, base, rank); err != nil {
		return nil, err
	} else if !(takes <= work) {
		return nil, fmt.Errorf("%w: about %.2g units at rank %d, the limit is %.2g: give more by work=%.2g, or name the program in the "+
			"policy (programs)", ErrWork, takes, rank, work, takes)
	}
	return step(ctx, spec)
}
