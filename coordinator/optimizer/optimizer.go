// Package optimizer applies a round's mean update to the global parameters.
//
//	o, err := optimizer.New(job.Server{Optimizer: "fedadam"}, len(adapter))
//	...
//	err = o.Step(adapter, delta, nil) // changes adapter in place
//
// FedAvg is McMahan et al. (AISTATS 2017), FedAvgM adds server momentum (Hsu,
// Qi, Brown 2019), FedAdagrad, FedAdam and FedYogi are Reddi et al. (ICLR 2021,
// algorithm 2) with v0 = eps^2 and without bias correction, as printed there. All of them see only
// the noised mean: they are post-processing and cost no privacy.
//
// State is kept for every global parameter, and a round touches those that the
// rank trained: the update is a vector over a subset of coordinates named by an
// index. A coordinate outside the subset keeps its value and its state.
package optimizer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/starling-fl/starling/job"
)

// ErrState is a saved state that does not belong to the optimizer.
var ErrState = errors.New("optimizer: state does not fit")

// Optimizer holds the state over n global parameters. It is not safe for
// concurrent use.
type Optimizer struct {
	cfg  job.Server
	n    int
	m, v []float32 // first and second moment; nil if the optimizer has none
}

// New returns the optimizer that a job names, over n parameters.
func New(cfg job.Server, n int) (*Optimizer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, fmt.Errorf("optimizer: %d parameters", n)
	}
	o := &Optimizer{cfg: cfg, n: n}
	switch cfg.Optimizer {
	case job.FedAvgM:
		o.m = make([]float32, n)
	case job.FedAdagrad, job.FedAdam, job.FedYogi:
		o.m = make([]float32, n)
		o.v = make([]float32, n)
		for i := range o.v {
			o.v[i] = float32(cfg.Epsilon * cfg.Epsilon)
		}
	}
	return o, nil
}

// Step adds to x, in place, what the optimizer makes of the mean update delta
// (what devices moved by: a descent direction, added). x and delta have one
// length; index[i] in [0, n) is the global parameter that x[i] is, and no
// parameter appears twice. A nil index means x is all n parameters. A delta
// that is not finite is an error and changes nothing.
func (o *Optimizer) Step(x, delta []float32, index []int) error {
	if len(x) != len(delta) {
		return fmt.Errorf("optimizer: %d parameters, %d deltas", len(x), len(delta))
	}
	if index == nil && len(x) != o.n || index != nil && len(index) != len(x) {
		return fmt.Errorf("optimizer: %d parameters with an index of %d over %d", len(x), len(index), o.n)
	}
	for i, d := range delta {
		if d64 := float64(d); math.IsNaN(d64) || math.IsInf(d64, 0) {
			return fmt.Errorf("optimizer: delta[%d] is %v", i, d)
		}
	}
	for _, g := range index {
		if g < 0 || g >= o.n {
			return fmt.Errorf("optimizer: index %d of %d parameters", g, o.n)
		}
	}
	lr := o.cfg.LearningRate
	for i, d := range delta {
		g := i
		if index != nil {
			g = index[i]
		}
		step := float64(d)
		switch o.cfg.Optimizer {
		case job.FedAvgM:
			m := o.cfg.Momentum*float64(o.m[g]) + step
			o.m[g] = float32(m)
			step = m
		case job.FedAdagrad, job.FedAdam, job.FedYogi:
			m := o.cfg.Beta1*float64(o.m[g]) + (1-o.cfg.Beta1)*step
			v := o.second(float64(o.v[g]), step*step)
			o.m[g], o.v[g] = float32(m), float32(v)
			step = m / (math.Sqrt(v) + o.cfg.Epsilon)
		}
		x[i] = float32(float64(x[i]) + lr*step)
	}
	return nil
}

// second is the second moment after a squared step.
func (o *Optimizer) second(v, square float64) float64 {
	switch o.cfg.Optimizer {
	case job.FedAdagrad:
		return v + square
	case job.FedYogi:
		if v < square {
			return v + (1-o.cfg.Beta2)*square
		}
		if v > square {
			return v - (1-o.cfg.Beta2)*square
		}
		return v
	}
	return o.cfg.Beta2*v + (1-o.cfg.Beta2)*square
}

// Size is the length of State's result.
func (o *Optimizer) Size() int { return 4 * (len(o.m) + len(o.v)) }

// State returns the moments for the checkpoint: little-endian float32, first
// moments then second; empty for FedAvg.
func (o *Optimizer) State() []byte {
	b := make([]byte, 0, o.Size())
	for _, s := range [][]float32{o.m, o.v} {
		for _, x := range s {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	return b
}

// Restore continues from a result of State.
func (o *Optimizer) Restore(b []byte) error {
	if want := o.Size(); len(b) != want {
		return fmt.Errorf("%w: %d bytes, %s over %d parameters has %d", ErrState, len(b), o.cfg.Optimizer, o.n, want)
	}
	for _, s := range [][]float32{o.m, o.v} {
		for i := range s {
			s[i] = math.Float32frombits(binary.LittleEndian.Uint32(b))
			b = b[4:]
		}
	}
	return nil
}
