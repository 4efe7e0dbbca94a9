package sweep

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
)

// ReadAll reads the folders of one grid, such as two machines made: the runs of all of them,
// those that failed in one and were made in none, and an index with the points of each.
// The grids must have the same axes, on which each may have values of its own; a run that
// was made twice must have come to the same.
func ReadAll(dirs ...string) (x *Index, done []*Record, failed []Failure, err error) {
	made := map[string]*Record{}
	for i, dir := range dirs {
		next, records, err := Read(dir)
		if err != nil {
			return nil, nil, nil, err
		}
		more, err := Failures(dir, next)
		if err != nil {
			return nil, nil, nil, err
		}
		failed = append(failed, more...)
		if i == 0 {
			x = next
		} else if err := x.merge(next); err != nil {
			return nil, nil, nil, fmt.Errorf("%s is not part of the sweep in %s: %w", dir, dirs[0], err)
		}
		for _, r := range records {
			if o := made[r.ID]; o == nil {
				made[r.ID] = r
			} else if o.Base != r.Base || o.Data != r.Data || o.Engine == r.Engine && o.Version == r.Version && (o.Accuracy != r.Accuracy || o.Validation != r.Validation) {
				return nil, nil, nil, fmt.Errorf("%s: run %s came to %v there and to %v before, of base %.12s and %.12s: remove the one that is wrong",
					filepath.Join(dir, RunsFolder), r.ID, r.Accuracy, o.Accuracy, r.Base, o.Base)
			}
		}
	}
	for _, run := range x.Runs {
		if r := made[run.ID]; r != nil {
			r.On = run.On
			done = append(done, r)
		}
	}
	once := map[string]bool{}
	failed = slices.DeleteFunc(failed, func(f Failure) bool {
		seen := once[f.ID]
		once[f.ID] = true
		return seen || made[f.ID] != nil
	})
	return x, done, failed, nil
}

// merge adds another part of the grid.
func (x *Index) merge(o *Index) error {
	same := slices.EqualFunc(x.Axes, o.Axes, func(a, b Axis) bool { return a.Name == b.Name && a.Search == b.Search })
	if !same || x.AccountSearch != o.AccountSearch || !maps.Equal(x.Compare, o.Compare) {
		return fmt.Errorf("its axes, search or compare are others (%s, %s)", names(o.Axes), names(x.Axes))
	}
	for i, a := range o.Axes {
		for _, v := range a.Values {
			if !slices.Contains(x.Axes[i].Values, v) {
				x.Axes[i].Values = append(x.Axes[i].Values, v)
			}
		}
	}
	known := map[string]bool{}
	for _, run := range x.Runs {
		known[run.ID] = true
	}
	for _, run := range o.Runs {
		if !known[run.ID] {
			x.Runs = append(x.Runs, run)
		}
	}
	return nil
}

func names(axes []Axis) (out []string) {
	for _, a := range axes {
		out = append(out, a.Name)
	}
	return out
}

// Missing are the runs of a grid that neither are done nor failed.
func (x *Index) Missing(done []*Record, failed []Failure) (missing []Run) {
	there := map[string]bool{}
	for _, r := range done {
		there[r.ID] = true
	}
	for _, f := range failed {
		there[f.ID] = true
	}
	for _, run := range x.Runs {
		if !there[run.ID] {
			missing = append(missing, run)
		}
	}
	return missing
}
