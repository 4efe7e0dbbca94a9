package fleetdata

import (
	"fmt"
	"path/filepath"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/dataset/partition"
	"github.com/starling-fl/starling/internal/app/usage"
)

// File says how a labelled file becomes a fleet's data.
type File struct {
	Path    string
	Columns dataset.Columns
	Seed    uint64
	Clients int
	Alpha   float64 // of Dirichlet, where clients are not users
	ByGroup bool    // providers are protected: none is spread over clients
}

// Load divides the file: 80 % to the clients, 10 % to validation, 10 % to test. Validation chooses
// the rank and is scored without noise, so each named user or provider is in only one of the three,
// if there are enough of them.
func (f File) Load() (*Data, error) {
	all, err := f.Columns.Load(f.Path)
	if err != nil {
		return nil, err
	}
	written := all.Form() == dataset.FormPrompts || all.Form() == dataset.FormTalks || all.Form() == dataset.FormTranscripts // which have no labels
	if len(all.Labels) == 0 && !written {
		return nil, usage.Errorf("%s holds %s, which serve, join and simulate take, and the demo does not: starling simulate --data %[1]s", f.Path, all.Form().Description())
	}
	if err := CheckLabels(f.Path, all); err != nil && !written {
		return nil, err
	}
	// The columns are among what else a figure depends on (internal/app/demo's settings).
	hash, err := Hash(f.Path, dataset.Columns{}, all)
	if err != nil {
		return nil, err
	}
	name, err := Name(f.Path)
	if err != nil {
		return nil, err
	}
	d := &Data{Name: name, SHA256: hash, Labels: all.Labels}
	if all.Left != "" {
		d.Note("%s: left out, being no examples: %s", name, all.Left)
	}
	parts, err := f.split(all, d)
	if err != nil {
		return nil, err
	}
	train := parts[0]
	d.Validation, d.Test = parts[1], parts[2]
	if len(d.Validation.Examples) == 0 || len(d.Test.Examples) == 0 {
		return nil, usage.Errorf("%s: %d examples are too few to hold out validation and test sets", f.Path, len(all.Examples))
	}
	if len(train.Examples) < f.Clients {
		return nil, usage.Errorf("%s: %d of %d examples are left to train on, fewer than %d devices: give more, or --devices",
			f.Path, len(train.Examples), len(all.Examples), f.Clients)
	}
	divided, err := f.divide(train, d)
	if err != nil {
		return nil, err
	}
	if n := partition.FillEmpty(divided); n > 0 {
		d.Note("%d devices would have had no example at alpha %v: each was given one", n, f.Alpha)
	}
	for _, p := range divided {
		d.Clients = append(d.Clients, train.Pick(p))
	}
	return d, nil
}

// CheckLabels refuses labels from which nothing can be learnt: a single one, or nearly one for each example, as
// where the columns of texts and labels are swapped.
func CheckLabels(path string, all *dataset.Set) error {
	if len(all.Labels) == 1 {
		return usage.Errorf("%s: every example has the label %q: want at least 2 labels", path, all.Labels[0])
	}
	if n := len(all.Examples); n >= 20 && 2*len(all.Labels) > n {
		return usage.Errorf("%s: its %d examples have %d labels, as %.40q: are the columns of texts and labels swapped? "+
			"Choose them with --map text=COLUMN,label=COLUMN", path, n, len(all.Labels), all.Labels[0])
	}
	return nil
}

// Name returns the name of a file or folder, with links and dots resolved.
func Name(path string) (string, error) {
	own, err := filepath.EvalSymlinks(path)
	if err == nil {
		own, err = filepath.Abs(own)
	}
	return filepath.Base(own), err
}

func (d *Data) Note(format string, args ...any) {
	d.Notes = append(d.Notes, fmt.Sprintf(format, args...))
}

// split holds out validation and test: other users and providers than those
// trained on, or where these are too few, other ones of the protected kind.
func (f File) split(all *dataset.Set, d *Data) ([]*dataset.Set, error) {
	parts, note, err := partition.HoldOut(all, f.ByGroup, f.Seed, 0.8, 0.1, 0.1)
	if note != "" {
		d.Note("%s", note)
	}
	return parts, err
}

// divide spreads the training part over the clients: whole users where there
// are enough, whole providers where those are protected, else by label.
func (f File) divide(train *dataset.Set, d *Data) ([][]int, error) {
	count := func(key func(dataset.Example) string) (n int, all bool) {
		names := map[string]struct{}{}
		all = true
		for _, e := range train.Examples {
			name := key(e)
			names[name] = struct{}{}
			all = all && name != ""
		}
		return len(names), all
	}
	users, named := count(func(e dataset.Example) string { return e.User })
	if named && users >= f.Clients {
		return partition.ByUser(train, f.Clients, f.Seed)
	}
	if groups, grouped := count(dataset.Example.Group); f.ByGroup && grouped {
		if groups < f.Clients {
			return nil, fmt.Errorf("%s: %d providers are left to train on, fewer than %d devices, and none may be spread over two: give --devices %d or fewer",
				f.Path, groups, f.Clients, groups)
		}
		if named {
			d.Note("%d users are left to train on, fewer than %d devices: divided by provider instead", users, f.Clients)
		}
		return partition.ByGroup(train, f.Clients, f.Seed)
	}
	if named {
		d.Note("%d users are left to train on, fewer than %d devices: divided by label instead (Dirichlet, alpha %v); "+
			"--devices %d gives each device users of its own", users, f.Clients, f.Alpha, users)
	}
	return partition.Dirichlet(train, f.Clients, f.Alpha, f.Seed)
}
