package sweep

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Seeds are the run and those beside it in a folder of runs that differ from it in the seed
// alone: made of the same base by the same engine and build. They come in the order of
// their seeds.
func Seeds(dir string, of *Record) ([]*Record, error) {
	flat, err := of.repeats()
	if err != nil {
		return nil, err
	}
	folders, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	all := []*Record{of}
	for _, f := range folders {
		if !f.IsDir() {
			continue
		}
		r, err := readRecord(filepath.Join(dir, f.Name()))
		if errors.Is(err, fs.ErrNotExist) { // not done, or no run
			continue
		}
		if err != nil {
			return nil, err
		}
		other, err := r.repeats()
		if err != nil {
			return nil, err
		}
		if r.Settings.Seed != of.Settings.Seed && maps.Equal(flat, other) {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *Record) int { return cmp.Compare(a.Settings.Seed, b.Settings.Seed) })
	return all, nil
}

// repeats is all that runs of several seeds have in common.
func (r *Record) repeats() (map[string]string, error) {
	flat, err := r.Settings.Flat()
	if err != nil {
		return nil, err
	}
	delete(flat, "seed")
	flat["base"], flat["engine"], flat["version"], flat["start"] = r.Base, r.Engine, r.Version, r.Start
	return flat, nil
}
