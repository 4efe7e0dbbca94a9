// Package report turns a grid of simulations into what people publish: means and
// spreads, paired differences with intervals, plots, one page that opens without a
// network, and tables for LaTeX.
package report

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/internal/leaf/durable"
	"github.com/starling-fl/starling/lab/sweep"
)

// Report is the result of a grid.
type Report struct {
	Name    string       `json:"name"`
	Axes    []sweep.Axis `json:"axes"`
	Done    int          `json:"done"`
	Of      int          `json:"of"`
	Cells   []*Cell      `json:"cells"`
	Pairs   []Paired     `json:"pairs"`
	Plots   []Plot       `json:"-"`
	Fixed   []Setting    `json:"settings"` // those that every run shares
	Engines []string     `json:"engines"`
	Base    string       `json:"base"`
	Version []string     `json:"versions"`
	Data    []string     `json:"data"`
	// Searched are the axes of which validation chose, seed by seed; what that costs of
	// privacy is in no epsilon here.
	Searched []string `json:"searched,omitempty"`
	// Failed lists the runs that failed.
	Failed []sweep.Failure `json:"failed,omitempty"`
	// Missing lists the runs that were not made yet.
	Missing []string `json:"missing,omitempty"`

	index *sweep.Index
}

// Setting is a setting with one value in all runs.
type Setting struct{ Key, Value string }

// ErrEmpty is a grid of which no run is done.
var ErrEmpty = errors.New("report: no run is done")

// New reads a grid's folders: one, or those that several machines made.
func New(interval Interval, dirs ...string) (*Report, error) {
	x, records, failed, err := sweep.ReadAll(dirs...)
	if err != nil {
		return nil, err
	}
	dir := strings.Join(dirs, ", ")
	if len(records) == 0 {
		if len(failed) > 0 {
			return nil, fmt.Errorf("%s: %w, %d failed: %s", dir, ErrEmpty, len(failed), failed[0].Error)
		}
		return nil, fmt.Errorf("%s: %w of %d: make it with starling sweep", dir, ErrEmpty, len(x.Runs))
	}
	r := &Report{Name: x.Name, Done: len(records), Of: len(x.Runs), Base: records[0].Base, Failed: failed, index: x}
	if r.Name == "" {
		r.Name = filepath.Base(dirs[0])
	}
	for _, run := range x.Missing(records, failed) {
		r.Missing = append(r.Missing, r.Place(sweep.Failure{On: run.On}))
	}
	for _, a := range x.Searched() {
		if x.AccountSearch != "" && a.Name == sweep.TrialAxis {
			continue
		}
		r.Searched = append(r.Searched, r.searched(a, sweep.Chosen(x, records)))
	}
	if x.AccountSearch != "" {
		r.Searched = append(r.Searched, r.counted(sweep.Chosen(x, records)))
	}
	records = sweep.Chosen(x, records)
	if len(records) == 0 {
		return nil, fmt.Errorf("%s: %w whose place has all its trials: go on with starling sweep", dir, ErrEmpty)
	}
	for _, a := range x.Axes {
		if a.Name != seedAxis && !a.Search {
			r.Axes = append(r.Axes, a)
		}
	}
	r.Cells = cells(x, records)
	r.Pairs = pairs(x, r.Cells, interval)
	if err := r.shared(records); err != nil {
		return nil, err
	}
	return r, r.plots()
}

// searched says what was tried on an axis, and how often each value was chosen.
func (r *Report) searched(a sweep.Axis, chosen []*sweep.Record) string {
	var parts []string
	for _, v := range a.Values {
		n := 0
		for _, rec := range chosen {
			if rec.On[a.Name] == v {
				n++
			}
		}
		parts = append(parts, fmt.Sprintf("%s (chosen %d times)", v, n))
	}
	said := fmt.Sprintf("%s of %s: chosen on validation within each seed", a.Name, strings.Join(parts, ", "))
	if r.index.AccountSearch == "" {
		said += "; the search's privacy is not counted"
	}
	return said
}

// counted says what an accounted search comes to.
func (r *Report) counted(chosen []*sweep.Record) string {
	said := fmt.Sprintf("a number of runs drawn by %s, of settings picked by chance: %s", r.index.AccountSearch, r.index.Counted(chosen))
	if empty := r.index.Empty(); len(empty) > 0 {
		said += "; no run was drawn for seed " + strings.Join(empty, ", ") + ", of which nothing is released"
	}
	return said
}

// shared finds what all runs have in common.
func (r *Report) shared(records []*sweep.Record) error {
	add := func(list *[]string, v string) {
		if !slices.Contains(*list, v) {
			*list = append(*list, v)
		}
	}
	var common map[string]string
	for _, rec := range records {
		add(&r.Engines, rec.Engine)
		add(&r.Version, rec.Version)
		add(&r.Data, rec.Data)
		flat, err := rec.Settings.Flat()
		if err != nil {
			return err
		}
		if common == nil {
			common = flat
		}
		maps.DeleteFunc(common, func(k, v string) bool { return flat[k] != v })
	}
	for _, k := range slices.Sorted(maps.Keys(common)) {
		value := common[k]
		if slices.Contains(sweep.FileSettings, k) && value != "" {
			value = filepath.Base(value) // where it lay is nobody's business
		}
		r.Fixed = append(r.Fixed, Setting{k, value})
	}
	return nil
}

// label names a cell by the axes it is on, but for those left out.
func (r *Report) label(c *Cell, leaveOut ...string) string {
	var parts []string
	for _, a := range r.Axes {
		if slices.Contains(leaveOut, a.Name) {
			continue
		}
		v := c.On[a.Name]
		if i := strings.LastIndex(a.Name, "."); i >= 0 || isNumber(v) { // words speak for themselves
			v = a.Name[i+1:] + " " + v
		}
		parts = append(parts, v)
	}
	if len(parts) == 0 {
		return "all"
	}
	return strings.Join(parts, ", ")
}

func isNumber(s string) bool { _, err := strconv.ParseFloat(s, 64); return err == nil }

// Write makes report.html, tables.tex and the plots in a folder, and returns
// their paths.
func (r *Report) Write(dir string) ([]string, error) {
	page, err := r.html()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"report.html": page, "tables.tex": r.latex()}
	for _, p := range r.Plots {
		for _, ending := range Formats {
			if files[p.Name+ending], err = p.File(p.Name + ending); err != nil {
				return nil, err
			}
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, name)
		if err := durable.Replace(path, files[name], 0o644); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// Place names a run by all axes, the seed among them.
func (r *Report) Place(f sweep.Failure) string { return sweep.Place(r.index.Axes, f.On) }

// Against names what a cell is compared with: the axes in which they differ.
func (r *Report) Against(p Paired) string {
	var out []string
	for _, a := range r.Axes {
		if p.On[a.Name] != p.Against[a.Name] {
			out = append(out, p.Against[a.Name])
		}
	}
	return strings.Join(out, ", ")
}
