package sweep

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/dataset/partition"
)

// Source names the data of a run, which [Lab.Data] yields.
type Source struct {
	Path        string // a labelled file; "" generates invoices
	Test        string // one whose examples are the test part; "": a part of Path
	Partition   string // a file that says which examples each client has (dataset.LoadPartition); ""
	MinPerClass int    // leaves out labels with fewer examples
	Seed        uint64
}

// Source describes the data that the settings name.
func (s Settings) Source() Source {
	return Source{Path: s.Data, Test: s.Test, Partition: s.Partition, MinPerClass: s.MinPerClass, Seed: s.Seed}
}

// Shares of a file that are held out: validation and test, or validation alone.
var (
	heldOut     = []float64{0.8, 0.1, 0.1}
	heldOutOnce = []float64{0.9, 0.1}
)

// Divide makes a run's data of all examples of its file, those of its test file, nil where
// it has none, and the examples of each client, nil if its partition has none.
//
// What no client has is held out for validation and test. Where clients have all of it, a
// tenth each is held out as of a file that names users: other clients than those trained.
func (s Source) Divide(all, test *dataset.Set, clients [][]int) (*Data, error) {
	numbered := &dataset.Set{Name: all.Name, Labels: all.Labels, Examples: slices.Clone(all.Examples)}
	owner := make([]int, len(all.Examples)) // its client, from 1
	for k, part := range clients {
		for _, i := range part {
			owner[i] = k + 1
		}
	}
	for i := range numbered.Examples {
		e := &numbered.Examples[i]
		e.Line = i + 1
		if clients != nil {
			e.User, e.Provider = "", ""
			if owner[i] > 0 {
				e.User = strconv.Itoa(owner[i])
			}
		}
	}
	numbered, test, err := s.common(numbered, test)
	if err != nil {
		return nil, err
	}
	parts, err := s.parts(numbered, test, clients != nil)
	if err != nil {
		return nil, err
	}
	d := &Data{Labels: numbered.Labels}
	for i, to := range []**dataset.Set{&d.Train, &d.Validation, &d.Test} {
		if *to = parts[i]; len(parts[i].Examples) == 0 {
			return nil, badSetting("%s: of %d examples none is left to %s: give more", cmp.Or(parts[i].Name, all.Name), len(all.Examples),
				[]string{"train on", "validate on", "test on"}[i])
		}
	}
	if clients != nil {
		d.Clients = held(clients, numbered, d.Train)
	}
	for _, part := range parts {
		if part == test {
			continue
		}
		for i, e := range part.Examples {
			part.Examples[i] = all.Examples[e.Line-1]
			part.Examples[i].Label = e.Label
		}
	}
	return d, nil
}

// common leaves out rare labels, and has test share the labels of all.
func (s Source) common(all, test *dataset.Set) (_, _ *dataset.Set, err error) {
	sets := []*dataset.Set{all}
	if test != nil {
		if test, err = test.Relabel(all.Labels); err != nil {
			return nil, nil, err
		}
		if a, b := test.Form(), all.Form(); a != b && (a.Textless() || b.Textless()) {
			return nil, nil, badSetting("test: %s holds %s, and %s %s: give two of a kind", test.Name, a.Description(), all.Name, b.Description())
		}
		sets = append(sets, test)
	}
	if s.MinPerClass > 0 {
		if sets, _, err = partition.Common(s.MinPerClass, sets...); err != nil {
			return nil, nil, badSetting("min_per_class is %d: %s: %w", s.MinPerClass, all.Name, err)
		}
	}
	if test != nil {
		test = sets[1]
	}
	return sets[0], test, nil
}

// parts are those to train on, to validate and to test on.
func (s Source) parts(all, test *dataset.Set, given bool) ([]*dataset.Set, error) {
	var mine, nobodys []int
	for i, e := range all.Examples {
		if given && e.User == "" {
			nobodys = append(nobodys, i)
		} else {
			mine = append(mine, i)
		}
	}
	var parts []*dataset.Set
	var err error
	switch {
	case len(nobodys) > 0 && test != nil:
		parts = []*dataset.Set{all.Pick(mine), all.Pick(nobodys)}
	case len(nobodys) > 0:
		parts, err = partition.Split(all.Pick(nobodys), s.Seed, 0.5, 0.5)
		parts = append([]*dataset.Set{all.Pick(mine)}, parts...)
	case test != nil:
		parts, _, err = partition.HoldOut(all, false, s.Seed, heldOutOnce...)
	default:
		parts, _, err = partition.HoldOut(all, false, s.Seed, heldOut...)
	}
	if test != nil {
		parts = append(parts, test)
	}
	return parts, err
}

// held are the clients' examples as they are in train, whose lines number them as all's
// do. A client whose examples are held out is none; one that never had any remains.
func held(clients [][]int, all, train *dataset.Set) (parts [][]int) {
	place, known := map[int]int{}, map[int]bool{}
	for at, e := range train.Examples {
		place[e.Line-1] = at
	}
	for _, e := range all.Examples {
		known[e.Line-1] = true
	}
	for _, part := range clients {
		mine, out := []int{}, false
		for _, i := range part {
			if at, ok := place[i]; ok {
				mine = append(mine, at)
			} else if known[i] {
				out = true
			}
		}
		if len(mine) > 0 || !out {
			parts = append(parts, mine)
		}
	}
	return parts
}
