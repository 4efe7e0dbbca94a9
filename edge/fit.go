package edge

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/trainer"
	"github.com/starling-fl/starling/wasm"
)

// ErrMisfit: a program's tensors are not those of its assignment.
var ErrMisfit = errors.New("edge: program and assignment differ")

// checkProgram refuses a program unless its tensors are exactly the task's:
// the task's columns with the shape of the batch, or of equal pieces of it, every
// trained tensor of the layout at the rank, optimizer state named after them, and
// frozen tensors of the base. rows is microBatch's.
func checkProgram(m *wasm.Manifest, t Task, rows int, base *model.Base) error {
	want := map[string]wasm.Tensor{trainer.InputRate: {DType: wasm.Float32}, trainer.InputStep: {DType: wasm.Float32}}
	needed := []string{trainer.InputRate}
	if rows < t.Batch {
		want[trainer.InputLast] = wasm.Tensor{DType: wasm.Float32}
		needed = append(needed, trainer.InputLast)
	}
	for _, c := range t.Columns {
		want[c.Name] = wasm.Tensor{DType: wasm.DType(c.Type), Shape: append([]int{rows}, c.Shape...)}
		needed = append(needed, c.Name)
	}
	keeps, err := keepsFeatures(m, t, rows)
	if err != nil {
		return err
	}
	if keeps {
		want[trainer.InputKept] = wasm.Tensor{DType: wasm.Float32}
		needed = append(needed, trainer.InputKept)
	}
	if err := checkInputs(m, want); err != nil {
		return err
	}
	for _, name := range needed {
		if !slices.ContainsFunc(m.Inputs, func(x wasm.Tensor) bool { return x.Name == name }) {
			return fmt.Errorf("%w: no input %s", ErrMisfit, name)
		}
	}
	state := make(map[string]wasm.Tensor, len(m.State))
	for _, s := range m.State {
		state[s.Name] = s
	}
	for _, span := range t.Layout.Spans(t.Rank) {
		if span.Len == 0 {
			continue
		}
		s, ok := state[span.Name]
		if !ok || s.DType != wasm.Float32 || !slices.Equal(s.Shape, span.Shape) {
			return fmt.Errorf("%w: state %s is %s%v, f32%v expected", ErrMisfit, span.Name, s.DType, s.Shape, span.Shape)
		}
	}
	return checkFrozen(m, base)
}

// microBatch is how many examples a program takes at once, where that divides the
// batch; else the batch, which the program then does not fit.
func microBatch(m *wasm.Manifest, t Task) int {
	for _, in := range m.Inputs {
		if in.Name == t.Columns[0].Name && len(in.Shape) > 0 && in.Shape[0] >= 1 && t.Batch%in.Shape[0] == 0 {
			return in.Shape[0]
		}
	}
	return t.Batch
}

// maxFeatures bounds the values of a batch's features, of which a device holds a copy beside the
// program's memory: 64 MiB.
const maxFeatures = 1 << 24

// keepsFeatures reports whether a program takes what it made of a recording before.
func keepsFeatures(m *wasm.Manifest, t Task, rows int) (bool, error) {
	for _, s := range m.State {
		if s.Name == trainer.StateFeatures {
			if !slices.ContainsFunc(t.Columns, func(c task.Column) bool { return c.Name == task.Samples }) {
				return false, fmt.Errorf("%w: state %s, and the task has no recordings", ErrMisfit, s.Name)
			}
			if elements(s.Shape) > maxFeatures {
				return false, fmt.Errorf("%w: state %s has %d values, at most %d", ErrMisfit, s.Name, elements(s.Shape), maxFeatures)
			}
			if s.DType != wasm.Float32 || len(s.Shape) == 0 || s.Shape[0] != rows {
				return false, fmt.Errorf("%w: state %s is %s%v, f32[%d ...] expected", ErrMisfit, s.Name, s.DType, s.Shape, rows)
			}
			return true, nil
		}
	}
	return false, nil
}

// checkInputs refuses an input that is not among those wanted.
func checkInputs(m *wasm.Manifest, want map[string]wasm.Tensor) error {
	for _, in := range m.Inputs {
		w, ok := want[in.Name]
		if !ok || in.DType != w.DType || !slices.Equal(in.Shape, w.Shape) {
			return fmt.Errorf("%w: input %s %s%v", ErrMisfit, in.Name, in.DType, in.Shape)
		}
	}
	return nil
}

// checkFrozen refuses frozen tensors that the base does not have.
func checkFrozen(m *wasm.Manifest, base *model.Base) error {
	for _, f := range m.Frozen {
		n := base.Len(f.Name)
		if f.DType != wasm.Float32 || n == 0 || n != elements(f.Shape) {
			return fmt.Errorf("%w: frozen %s is %s%v, the base has %d values", ErrMisfit, f.Name, f.DType, f.Shape, n)
		}
	}
	return nil
}

func elements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
