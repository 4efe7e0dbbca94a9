package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/wasm/compiler"
)

// Hosts are the shapes of code that Step makes: one for wazero, one for
// browsers and node. Their results are equal, bit for bit.
var Hosts = []string{compiler.HostWazero, compiler.HostV8}

// stepOf is the training step of a job at a rank. The job is one that knows its base:
// see job.Job.ForBase.
func stepOf(j job.Job, base *model.Base, classes, rank int) nn.StepSpec {
	return nn.StepSpec{
		Config: base.Config, Method: j.Method(),
		Classes: classes, Rank: rank, Sequence: j.Adapter.Sequence, Spec: j.Training,
	}
}

// Spec says which program of a job is wanted.
type Spec struct {
	Job  job.Job
	Base *model.Base
	Rank int
	Host string
	// Compact names the frozen matrices that stay 4-bit codes in memory.
	Compact map[string]bool
}

// Compile compiles the training step of a Spec for one rank and one host ("wazero" or "v8"), as Step does.
type Compile func(spec Spec) ([]byte, error)

// Step makes model/nn's training step into a WebAssembly program by wasm/compiler.
func Step(spec Spec) ([]byte, error) { return step(context.Background(), spec) }

// step leaves off when ctx ends.
func step(ctx context.Context, spec Spec) ([]byte, error) {
	step := stepOf(spec.Job, spec.Base, len(spec.Job.Labels), spec.Rank)
	lay, err := step.Layout()
	if err != nil {
		return nil, err
	}
	step.Keep = nn.Keepable(lay)
	// The job's name is free text, which a manifest is not; and equal steps of two
	// jobs are one program.
	mib := cmp.Or(step.Memory, training.DefaultMemory)
	for _, step.Recompute = range nn.Recomputes(step.Memory) {
		var code []byte
		if code, err = compileGraph(ctx, "step", spec, spec.Job.Fused(), mib<<20, step.Build); !errors.Is(err, compiler.ErrMemory) {
			return code, err
		}
	}
	return nil, fmt.Errorf("training.memory is %d, of %d MiB: %w; give more of it, or a smaller training.micro_batch or adapter.sequence, or base_format: nf4",
		step.Memory, mib, err)
}

// Forward makes the forward pass of one example into a program, for participants who try the
// released model. It is exact whatever the job trained with, so it runs wherever a program does.
func Forward(spec Spec) ([]byte, error) {
	j := spec.Job
	pass := nn.ForwardSpec{
		Config: spec.Base.Config, Method: j.Method(), Classes: len(j.Labels), Rank: spec.Rank, Batch: 1, Sequence: j.Adapter.Sequence,
	}
	return compileGraph(context.Background(), "forward", spec, false, training.DefaultMemory<<20, pass.Build)
}

// compileGraph makes what build adds to a graph into a program of at most so many bytes of memory.
func compileGraph(ctx context.Context, what string, spec Spec, fused bool, memory int,
	build func(*graph.Graph) ([]nn.Param, []nn.Output, error),
) ([]byte, error) {
	var params []nn.Param
	var outputs []nn.Output
	recorded, err := compiler.Record(func(g *graph.Graph) []*graph.Node {
		var err error
		if params, outputs, err = build(g); err != nil {
			panic(err) // Record returns it
		}
		nodes := make([]*graph.Node, len(outputs))
		for i, o := range outputs {
			nodes[i] = o.Node
		}
		return nodes
	})
	if err != nil {
		return nil, err
	}
	s := compiler.Spec{Name: fmt.Sprintf("%s rank %d", what, spec.Rank), Host: spec.Host, Fused: fused, Memory: memory, Stop: ctx.Err}
	for _, p := range params {
		switch p.Role {
		case nn.State:
			s.Params = append(s.Params, compiler.Param{Name: p.Name, Role: compiler.State})
		case nn.Frozen:
			// 4-bit in memory where the base is no more than that: lossless, an
			// eighth of the memory.
			s.Params = append(s.Params, compiler.Param{Name: p.Name, Role: compiler.Frozen, NF4: spec.Compact[p.Name]})
		}
	}
	for _, o := range outputs {
		s.Outputs = append(s.Outputs, compiler.Output{Name: o.Name, State: o.State})
	}
	code, err := compiler.CompileGraph(recorded, s)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("rank %d for %s", spec.Rank, spec.Host), err)
	}
	return code, nil
}
