package partition

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-fl/starling/data/dataset"
)

// HoldOut divides a set at random into parts of the given fractions, which must sum to 1:
// one to train on, and others that are scored without noise. Whoever the set names, users
// and providers, is in one part alone, as far as there are enough of them; byProvider says
// that of the two it is providers whose privacy counts. note says where that was not to be
// had, and is empty elsewhere.
func HoldOut(all *dataset.Set, byProvider bool, seed uint64, fractions ...float64) (parts []*dataset.Set, note string, err error) {
	users := slices.ContainsFunc(all.Examples, func(e dataset.Example) bool { return e.User != "" })
	providers := slices.ContainsFunc(all.Examples, func(e dataset.Example) bool { return e.Provider != "" })
	var owners []Owner
	switch {
	case users && providers && byProvider:
		owners = []Owner{OwnerBoth, OwnerGroup, OwnerUser}
	case users && providers:
		owners = []Owner{OwnerBoth, OwnerUser, OwnerProvider}
	case users:
		owners = []Owner{OwnerUser}
	case providers:
		owners = []Owner{OwnerProvider}
	}
	for i, owner := range owners {
		parts, err = SplitWhole(all, owner, seed, fractions...)
		if errors.Is(err, ErrCoarse) {
			continue
		}
		if i > 0 {
			note = fmt.Sprintf("users and providers are too entangled to part: validation and test hold texts of no %s that is trained on, "+
				"but not so for both", owner)
		}
		return parts, note, err
	}
	if len(owners) > 0 {
		note = fmt.Sprintf("too few are named to hold any %s out whole: validation and test hold other texts of those trained on, "+
			"whose privacy covers neither the choice of the rank nor the accuracies", owners[len(owners)-1])
	}
	parts, err = Split(all, seed, fractions...)
	return parts, note, err
}

// Common leaves out the labels that fewer than least examples of all the sets together
// have, with their examples, and says how many labels those were. Sets share their labels.
func Common(least int, sets ...*dataset.Set) (out []*dataset.Set, dropped int, err error) {
	labels := sets[0].Labels
	count := make([]int, len(labels))
	for _, s := range sets {
		for _, e := range s.Examples {
			if f := e.Form(); f == dataset.FormWords || f == dataset.FormLists || len(labels) == 0 {
				return nil, 0, errors.New("its examples have no label each: there are no classes to count")
			}
			count[e.Label]++
		}
	}
	to, kept := make([]int, len(labels)), []string{}
	for i, n := range count {
		if to[i] = -1; n >= least {
			to[i], kept = len(kept), append(kept, labels[i])
		}
	}
	if len(kept) < 2 {
		return nil, 0, fmt.Errorf("%d of %d labels have %d examples or more, want at least 2; the most has %d", len(kept), len(labels), least, slices.Max(count))
	}
	for _, s := range sets {
		next := &dataset.Set{Name: s.Name, Labels: kept}
		for _, e := range s.Examples {
			if to[e.Label] >= 0 {
				e.Label = to[e.Label]
				next.Examples = append(next.Examples, e)
			}
		}
		out = append(out, next)
	}
	return out, len(labels) - len(kept), nil
}
