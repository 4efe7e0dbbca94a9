package coordinator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/starling-fl/starling/internal/wire"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
)

// programs compiles the training step once for each rank and host, and keeps the
// result as a blob, named by its content.
type programs struct {
	cfg   Config
	t     *terms
	blobs *blobs
	refs  map[int][]wire.Program // by rank
}

func newPrograms(cfg Config, t *terms, b *blobs) *programs {
	if cfg.Compile == nil {
		cfg.Compile = CompileStep
	}
	if cfg.Hosts == nil {
		cfg.Hosts = Hosts
	}
	return &programs{cfg: cfg, t: t, blobs: b, refs: map[int][]wire.Program{}}
}

// at returns the rank's programs, one a host.
func (p *programs) at(rank int) ([]wire.Program, error) {
	if refs, ok := p.refs[rank]; ok {
		return refs, nil
	}
	var refs []wire.Program
	for _, host := range p.cfg.Hosts {
		code, err := p.cfg.Compile(ProgramSpec{Job: p.t.job, Base: p.t.base, Rank: rank, Host: host, Compact: p.t.compact})
		if err != nil {
			return nil, fmt.Errorf("coordinator: program of rank %d for %s: %w", rank, host, err)
		}
		refs = append(refs, wire.Program{Host: host, Blob: p.blobs.keep(PartPrograms, code)})
	}
	p.refs[rank] = refs
	return refs, nil
}

// ingredients are what a job's programs are made from beside the base, its
// name and its labels: CompileStep looks at no more of a job.
type ingredients struct {
	Task     string       `json:"task,omitempty"`
	Adapter  job.Adapter  `json:"adapter"`
	Training job.Training `json:"training"`
}

// Recipe writes what a job's programs are made from, for its devices. The job is
// one that knows its base: see job.Job.ForBase.
func Recipe(j Job) ([]byte, error) {
	b, err := json.Marshal(ingredients{Task: j.Task, Adapter: j.Adapter, Training: j.Training})
	if err == nil && len(b) > wire.MaxRecipe {
		err = refuseJob("adapter: %d bytes of names, a recipe has at most %d", len(b), wire.MaxRecipe)
	}
	return b, err
}

// ErrWork is a program that would take more work to make than is allowed.
var ErrWork = errors.New("coordinator: the program takes too much work to make")

// CompileWork is about what compiling the training step of a job takes, from its
// configuration alone and before anything is built: in the units of a device's limit
// of work, eighths of an instruction. The graph grows with the layers, and each trained
// tensor is looked for among all stages. Measured from 8 to 128 layers over all methods
// it lies between the time taken and four times that.
func CompileWork(j Job, base *model.Base, rank int) (float64, error) {
	const graph, search = 1.2e8, 2.5e6
	l, err := model.NewLayout(base.Config, j.Method(), len(j.Labels))
	if err != nil {
		return 0, fmt.Errorf("coordinator: %w", err)
	}
	layers, tensors := float64(base.Config.NumHiddenLayers+base.Config.T5.DecoderLayers), float64(len(l.Spans(rank)))
	return graph*(layers+tensors/4) + search*layers*tensors, nil
}

// Remake compiles the program of an announced job again, for a device that runs no
// other: of the job's name, labels and recipe, over the base, at a rank and for a
// host. With the same version of the compiler it is the coordinator's to the bit. The
// coordinator chooses how large base and program are: what would take more than work
// (see CompileWork) is not begun and returns ErrWork, and the end of ctx ends it.
func Remake(ctx context.Context, work float64, name string, labels []string, recipe []byte, base *model.Base, rank int, host string) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(recipe))
	dec.DisallowUnknownFields()
	var from ingredients
	if err := dec.Decode(&from); err != nil {
		return nil, fmt.Errorf("coordinator: the job's recipe cannot be read: %w", err)
	}
	spec := ProgramSpec{Job: Job{Name: name, Labels: labels, Task: from.Task, Adapter: from.Adapter, Training: from.Training},
		Base: base, Rank: rank, Host: host}
	if from.Training.CompactBase {
		spec.Compact = compactable(base)
	}
	if takes, err := CompileWork(spec.Job, base, rank); err != nil {
		return nil, err
	} else if !(takes <= work) {
		return nil, fmt.Errorf("%w: about %.2g units at rank %d, the limit is %.2g: give more by work=%.2g, or name the program in the "+
			"policy (programs)", ErrWork, takes, rank, work, takes)
	}
	return compileStep(ctx, spec)
}
