package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/lab/internal/resident"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/model/trainer"
)

// runGoMLX times the same graph on GoMLX's Go backend, on one core.
func runGoMLX(ctx context.Context, dir, name string, warm, steps int, smooth bool) (*result, error) {
	runtime.GOMAXPROCS(1)
	data, err := os.ReadFile(filepath.Join(dir, name+".json"))
	if err != nil {
		return nil, err
	}
	var c benchCase
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("%s.json: %w", name, err)
	}
	if c.Step == nil {
		return nil, fmt.Errorf("%s is not a training step", name)
	}
	backend, err := gobackend.New("ops_sequential")
	if err != nil {
		return nil, err
	}
	// Go's exp on amd64 is SSE assembly and runs far slower after the AVX code of a
	// GOEXPERIMENT=simd build: written by expm1 the SIMD build is at its best.
	c.Step.Smooth = smooth
	g := graph.NewGraph(backend, name)
	params, outputs, err := c.Step.Build(g)
	if err != nil {
		return nil, err
	}
	var nodes []*graph.Node
	state := make(map[string]int) // output that becomes a parameter
	for i, o := range outputs {
		nodes = append(nodes, o.Node)
		if o.State != "" {
			state[o.State] = i
		}
	}
	if err := g.Compile(nodes...); err != nil {
		return nil, err
	}
	buffers := make([]compute.Buffer, len(params))
	for i, p := range params {
		if buffers[i], err = backend.BufferFromFlatData(0, c.value(p), shapes.Make(p.DType, p.Shape...)); err != nil {
			return nil, err
		}
	}
	r := &result{Name: name, Engine: "gomlx", Steps: warm + steps, Outputs: make(map[string][]float32)}
	times := new(clock)
	for i := range warm + steps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		times.begin()
		results, err := g.Executable().Execute(buffers, make([]bool, len(buffers)), 0)
		if err != nil {
			return nil, err
		}
		if i >= warm {
			times.end()
		}
		loss := make([]float32, 1)
		if err := results[0].ToFlatData(loss); err != nil {
			return nil, err
		}
		r.Outputs[trainer.OutputLoss] = loss
		for j, p := range params {
			if at, ok := state[p.Name]; ok {
				_ = buffers[j].Finalize()
				buffers[j] = results[at]
			}
		}
	}
	r.times(times)
	r.PeakRSS = resident.Own()
	return r, nil
}

// value is what a parameter begins with.
func (c *benchCase) value(p nn.Param) any {
	switch {
	case p.Name == task.Tokens:
		return c.tokens()
	case p.Name == task.Boxes:
		return make([]int32, model.Elements(p.Shape))
	case p.DType == dtypes.Int32:
		return c.labels(c.Step.Batch)
	}
	return floats(p.Name, model.Elements(p.Shape))
}
