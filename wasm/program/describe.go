package program

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
)

// description is a training step for a trainer that makes it itself: the ingredients
// of its program, in place of one.
type description struct {
	ingredients
	Classes int `json:"classes"`
	Rank    int `json:"rank"`
}

// Describe is in Step's place for simulations whose trainer runs the step's graph on
// the host: it writes what Read reads.
func Describe(spec Spec) ([]byte, error) {
	return json.Marshal(description{
		ingredients: ingredients{Adapter: spec.Job.Adapter, Training: spec.Job.Training},
		Classes:     len(spec.Job.Labels), Rank: spec.Rank,
	})
}

// Read is the step that Describe has described, over the base. It is checked
// where it is built (nn.StepSpec).
func Read(text []byte, base *model.Base) (nn.StepSpec, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	var d description
	if err := dec.Decode(&d); err != nil {
		return nn.StepSpec{}, fmt.Errorf("program: the description of a step cannot be read: %w", err)
	}
	if !(d.Training.LearningRate > 0) {
		return nn.StepSpec{}, fmt.Errorf("program: the step's learning rate is %v, must be positive", d.Training.LearningRate)
	}
	return stepOf(job.Job{Adapter: d.Adapter, Training: d.Training}, base, d.Classes, d.Rank), nil
}
