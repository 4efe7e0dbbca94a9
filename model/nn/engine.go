package nn

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/model/trainer"
)

// goBackend is GoMLX's Go backend, the reference for the compiler's programs, where
// something links it (tests import github.com/gomlx/compute/gobackend; no command does).
// Operations run one after the other: with parallel scheduling it can deadlock on two cores.
var goBackend = sync.OnceValues(func() (compute.Backend, error) {
	const name = "go"
	if !slices.Contains(compute.List(), name) {
		return nil, errors.New("this program does not link it")
	}
	return compute.NewWithConfig(name + ":ops_sequential")
})

// Program is a compiled graph with its parameters, in the order of its buffers, and outputs.
type Program struct {
	backend compute.Backend
	graph   *graph.Graph
	Params  []Param
	outputs []Output
}

// Compile builds and compiles a graph on a backend, nil being the Go backend.
func Compile(be compute.Backend, name string, build func(*graph.Graph) ([]Param, []Output, error)) (*Program, error) {
	if be == nil {
		var err error
		if be, err = goBackend(); err != nil {
			return nil, fmt.Errorf("nn: starting the Go backend: %w", err)
		}
	}
	p := &Program{backend: be}
	var buildErr error
	err := catch(func() {
		p.graph = graph.NewGraph(be, name)
		if p.Params, p.outputs, buildErr = build(p.graph); buildErr != nil {
			return
		}
		nodes := make([]*graph.Node, len(p.outputs))
		for i, o := range p.outputs {
			nodes[i] = o.Node
		}
		buildErr = p.graph.Compile(nodes...)
	})
	if err == nil {
		err = buildErr
	}
	if err != nil {
		return nil, fmt.Errorf("nn: compiling %s: %w", name, err)
	}
	return p, nil
}

// Buffer copies a flat slice into a device buffer of the parameter's shape.
func (p *Program) Buffer(param Param, flat any) (compute.Buffer, error) {
	b, err := p.backend.BufferFromFlatData(0, flat, shapes.Make(param.DType, param.Shape...))
	if err != nil {
		return nil, fmt.Errorf("nn: parameter %q %v: %w", param.Name, param.Shape, err)
	}
	return b, nil
}

// Run executes once; buffers are in the parameters' order and stay valid.
func (p *Program) Run(buffers []compute.Buffer) ([]compute.Buffer, error) {
	return p.graph.Executable().Execute(buffers, make([]bool, len(buffers)), 0)
}

// Close frees the program; its buffers stay.
func (p *Program) Close() { p.graph.Finalize() }

// Floats copies a float32 buffer of n values to the host.
func Floats(b compute.Buffer, n int) ([]float32, error) {
	out := make([]float32, n)
	return out, b.ToFlatData(out)
}

// Advance runs one step: inputs are flat slices by name, frozen buffers stay,
// state buffers are replaced by their new values. It returns the loss, and what is right where
// the step tells it, else NaN.
func (p *Program) Advance(state, frozen map[string]compute.Buffer, inputs map[string]any) (loss, right float32, err error) {
	right = float32(math.NaN())
	buffers := make([]compute.Buffer, len(p.Params))
	for i, param := range p.Params {
		switch param.Role {
		case State:
			buffers[i] = state[param.Name]
		case Frozen:
			buffers[i] = frozen[param.Name]
		default:
			b, err := p.Buffer(param, inputs[param.Name])
			if err != nil {
				return 0, 0, err
			}
			defer b.Finalize() // gives the memory back to the backend's pool
			buffers[i] = b
		}
	}
	results, err := p.Run(buffers)
	if err != nil {
		return 0, 0, err
	}
	for i, o := range p.outputs {
		if o.State != "" {
			_ = state[o.State].Finalize()
			state[o.State] = results[i]
			continue
		}
		v, err := Floats(results[i], 1)
		if err != nil {
			return 0, 0, err
		}
		if o.Name == trainer.OutputRight {
			right = v[0]
		} else {
			loss = v[0]
		}
		_ = results[i].Finalize()
	}
	return loss, right, nil
}
