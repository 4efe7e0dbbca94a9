package model

import (
	"fmt"
	"slices"
)

// StartFrom returns an adapter of layout l that computes at r_max what from computes at
// its own r_max, with the seed's values where it has more ranks: what a job begins with
// in place of NewAdapter's. from must train the same tensors at no more ranks.
func StartFrom(l *Layout, from *Adapter, seed uint64) (*Adapter, error) {
	if len(l.entries) != len(from.layout.entries) || from.layout.Method.RMax > l.Method.RMax {
		return nil, fmt.Errorf("%w: the start has %d tensors and ranks up to %d, the job trains %d up to %d", ErrPEFT,
			len(from.layout.entries), from.layout.Method.RMax, len(l.entries), l.Method.RMax)
	}
	a := NewAdapter(l, seed)
	has, rank := from.layout.Method.RMax, l.Method.RMax
	factor := float32(from.layout.Method.Scale(has) / l.Method.Scale(rank))
	for i, e := range l.entries {
		theirs := from.layout.entries[i]
		if theirs.Name != e.Name || !slices.Equal(theirs.ShapeAt(1), e.ShapeAt(1)) {
			return nil, fmt.Errorf("%w: the start trains %s%v where the job trains %s%v", ErrPEFT, theirs.Name, theirs.Shape, e.Name, e.Shape)
		}
		if e.Kind != KindB {
			copy(a.tensors[i], from.tensors[i]) // of A the first ranks' rows
			continue
		}
		for row := range e.Shape[0] {
			for k := range has {
				a.tensors[i][row*rank+k] = factor * from.tensors[i][row*has+k]
			}
		}
	}
	return a, nil
}

// Rescaled is the same adapter under a rule for its scale: at r_max it computes what it
// did, below that what the rule says.
func Rescaled(a *Adapter, rule Scaling) (*Adapter, error) {
	m := a.layout.Method
	m.Scaling = rule
	l, err := NewLayout(a.layout.Config, m, a.layout.Classes)
	if err != nil {
		return nil, err
	}
	return &Adapter{layout: l, tensors: a.Clone().tensors}, nil
}
