package model

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// LoadHead reads the tensors of a task's head from a base's folder, by
// the layout's names; empty where the folder has none.
func LoadHead(fsys fs.FS, c Config, t TaskKind) (map[string]Tensor, error) {
	files, err := readWeights(fsys)
	if err != nil {
		return nil, err
	}
	head := map[string]Tensor{}
	names := c.headNames(t)
	for _, name := range names {
		for _, st := range files {
			if !hasTensor(st, name) {
				continue
			}
			t, err := st.Tensor(name)
			if err != nil {
				return nil, err
			}
			head[name] = t
		}
	}
	if len(head) > 0 {
		if err := t.checkProblem(fsys); err != nil {
			return nil, err
		}
	}
	for _, name := range names { // a module's half would be filled up with zeros
		if _, there := head[name]; !there {
			continue
		}
		for _, halves := range [][2]string{{".weight", ".bias"}, {".bias", ".weight"}} {
			if module, ok := strings.CutSuffix(name, halves[0]); ok {
				other := module + halves[1]
				if _, there := head[other]; !there && slices.Contains(names, other) {
					return nil, fmt.Errorf("its own head has a tensor %q and no %q", name, other)
				}
			}
		}
	}
	return head, nil
}

// checkProblem refuses a classifier whose outputs are no scores as the task has them.
func (t TaskKind) checkProblem(fsys fs.FS) error {
	want := t.of().problem
	if want == "" {
		return nil
	}
	var o struct {
		Problem *string `json:"problem_type"`
	}
	if err := optionalJSON(fsys, ConfigFile, &o); err != nil {
		return err
	}
	if o.Problem == nil || *o.Problem == want {
		return nil
	}
	for _, other := range tasks {
		if other.problem == *o.Problem {
			return fmt.Errorf("%w: config.json: problem_type of its head is %s, which is task %s, not %s", ErrConfig, other.problem, other.name, t)
		}
	}
	return fmt.Errorf("%w: config.json: problem_type of its head is %.40q, and task %s computes %s", ErrConfig, *o.Problem, t, want)
}

// headNames are the tensors of a task's head that a job trains.
func (c Config) headNames(t TaskKind) (names []string) {
	if k := t.of(); k.entries != nil && k.suits(c) == nil {
		for _, e := range k.entries(c) {
			names = append(names, e.Name)
		}
	}
	for _, d := range c.HeadFor(t) {
		if d.Trained {
			names = append(names, d.Name+".weight", d.Name+".bias")
		}
	}
	return names
}

// HeadAdapter is an adapter of rank 1 that changes nothing but the head, which is
// the given one where it has tensors.
func HeadAdapter(c Config, t TaskKind, labels int, head map[string]Tensor) (*Adapter, error) {
	lay, err := NewLayout(c, Method{RMax: 1, Alpha: 1, Task: t}, labels)
	if err != nil {
		return nil, err
	}
	a := NewAdapter(lay, 0)
	return a, a.SetHead(head)
}

// FreshHead reports whether the last map of the adapter's head, which gives the answers, is as
// NewAdapter begins it: nothing has trained it, and neither the adapter's file nor the base had one.
func (a *Adapter) FreshHead() bool {
	begun, fresh := NewAdapter(a.layout, 0), false
	for i, e := range a.layout.entries {
		if e.Kind == KindHead && len(e.Shape) > 1 { // not a bias, which may stay zero
			fresh = slices.Equal(a.tensors[i], begun.tensors[i])
		}
	}
	return fresh
}

// SetHead takes over the tensors of a head that the layout has.
func (a *Adapter) SetHead(head map[string]Tensor) error {
	for i, e := range a.layout.entries {
		t, ok := head[e.Name]
		if !ok || e.Kind != KindHead {
			continue
		}
		if !slices.Equal(t.Shape, e.Shape) {
			return fmt.Errorf("%w: the base's own %s has shape %v, want %v for the labels given", ErrConfig, e.Name, t.Shape, e.Shape)
		}
		a.tensors[i] = t.Data
	}
	return nil
}
