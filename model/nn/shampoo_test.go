package nn

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/trainer"
)

// Tensors of every form end where numpy's twin, testdata/shampoo/make.py, has them: it takes roots by eigenvalues.
func TestShampooMatchesNumpy(t *testing.T) {
	var golden struct {
		Steps           int     `json:"steps"`
		StatisticsEvery int     `json:"statistics_every"`
		RootsEvery      int     `json:"roots_every"`
		Rate            float64 `json:"rate"`
		Tensors         []struct {
			Name      string      `json:"name"`
			Shape     []int       `json:"shape"`
			Start     []float32   `json:"start"`
			End       []float32   `json:"end"`
			Gradients [][]float32 `json:"gradients"`
		} `json:"tensors"`
	}
	text, err := os.ReadFile(filepath.Join("testdata", "shampoo", "golden.json"))
	if err == nil {
		err = json.Unmarshal(text, &golden)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := StepSpec{Spec: training.Spec{Optimizer: training.Shampoo, StatisticsEvery: golden.StatisticsEvery, RootsEvery: golden.RootsEvery}}
	p, err := Compile(nil, "shampoo", func(g *graph.Graph) ([]Param, []Output, error) {
		p := newParams(g)
		step, rate := p.add(trainer.InputStep, Input, dtypes.Float32), p.add(trainer.InputRate, Input, dtypes.Float32)
		var grads, tensors []*graph.Node
		states := make([][]*graph.Node, len(golden.Tensors))
		for i, x := range golden.Tensors {
			grads = append(grads, p.add(x.Name+".grad", Input, dtypes.Float32, x.Shape...))
			tensors = append(tensors, p.add(x.Name, State, dtypes.Float32, x.Shape...))
			for k, suffix := range shampooStates {
				states[i] = append(states[i], p.add(x.Name+suffix, State, dtypes.Float32, s.grid(x.Shape).shape(k)...))
			}
		}
		outputs := []Output{{Name: trainer.OutputLoss, Node: step}}
		for i, dir := range s.shampoo(grads, states, step, nil) {
			name := golden.Tensors[i].Name
			outputs = append(outputs, Output{Name: name + ".new", State: name, Node: s.update(tensors[i], dir, rate, step, nil)})
			for k, suffix := range shampooStates {
				outputs = append(outputs, Output{Name: name + suffix + ".new", State: name + suffix, Node: states[i][k]})
			}
		}
		return p.list, outputs, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	state := map[string]compute.Buffer{}
	for _, param := range p.Params {
		if param.Role == State {
			values := make([]float32, model.Elements(param.Shape))
			for _, x := range golden.Tensors {
				if x.Name == param.Name {
					copy(values, x.Start)
				}
			}
			if state[param.Name], err = p.Buffer(param, values); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n := range golden.Steps {
		inputs := map[string]any{trainer.InputStep: []float32{float32(n + 1)}, trainer.InputRate: []float32{float32(golden.Rate)}}
		for _, x := range golden.Tensors {
			inputs[x.Name+".grad"] = x.Gradients[n]
		}
		if _, _, err := p.Advance(state, nil, inputs); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range golden.Tensors {
		got, err := Floats(state[x.Name], len(x.End))
		if err != nil {
			t.Fatal(err)
		}
		worst := 0.0
		for i := range got {
			worst = max(worst, math.Abs(float64(got[i]-x.End[i])))
		}
		if worst > 2e-6 {
			t.Errorf("%s is off by %v", x.Name, worst)
		}
	}
}
