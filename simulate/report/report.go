// Package report turns a grid of simulations into what people publish: means and
// spreads, paired differences with intervals, plots, one page that opens without a
// network, and tables for LaTeX.
package report

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/internal/durable"
	"github.com/starling-fl/starling/simulate/sweep"
)

// Report is what a grid came to.
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
	// Failed are the runs that came to nothing.
	Failed []sweep.Failure `json:"failed,omitempty"`

	index *sweep.Index
}

// Setting is one that does not vary.
type Setting struct{ Key, Value string }

// ErrEmpty is a grid of which no run is done.
var ErrEmpty = errors.New("report: no run is done")

// New reads a grid's folder.
func New(dir string, interval Interval) (*Report, error) {
	x, records, err := sweep.Read(dir)
	if err != nil {
		return nil, err
	}
	failed, err := sweep.Failures(dir, x)
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		if len(failed) > 0 {
			return nil, fmt.Errorf("%s: %w, %d failed: %s", dir, ErrEmpty, len(failed), failed[0].Error)
		}
		return nil, fmt.Errorf("%s: %w: make it with starling sweep", dir, ErrEmpty)
	}
	r := &Report{Name: x.Name, Done: len(records), Of: len(x.Runs), Base: records[0].Base, Failed: failed, index: x}
	if r.Name == "" {
		r.Name = filepath.Base(dir)
	}
	for _, a := range x.Searched() {
		r.Searched = append(r.Searched, r.searched(a, sweep.Chosen(x, records)))
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
	return fmt.Sprintf("%s of %s: chosen on validation within each seed; the search's privacy is not counted", a.Name, strings.Join(parts, ", "))
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
		if k == "data" && value != "" {
			value = filepath.Base(value) // where it lay is nobody's business
		}
		r.Fixed = append(r.Fixed, Setting{k, value})
	}
	return nil
}

// label names a cell by the axes it stands on, but for those left out.
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

// plots draws one figure for each axis of numbers, and accuracy against bytes.
func (r *Report) plots() error {
	var charts []chart
	for _, a := range r.Axes {
		if len(a.Values) < 2 || slices.ContainsFunc(a.Values, func(v string) bool { return !isNumber(v) }) {
			continue
		}
		value := func(c *Cell) (float64, bool) { v, err := strconv.ParseFloat(c.On[a.Name], 64); return v, err == nil }
		c := chart{
			name: "accuracy-by-" + fileName(a.Name), title: "Accuracy against " + a.Name, x: a.Name, y: "test accuracy, %", lines: true,
			caption: "Mean over seeds, at the rank that validation chose; whiskers are one standard deviation.",
			series:  byX(r.Cells, func(c *Cell) string { return r.label(c, a.Name) }, value),
		}
		least, most := 0.0, 0.0
		for i, v := range a.Values {
			x, _ := strconv.ParseFloat(v, 64)
			c.ticks = append(c.ticks, x)
			if i == 0 || x < least {
				least = x
			}
			most = max(most, x)
		}
		c.logX = least > 0 && most/least >= 8
		if a.Name == "privacy.epsilon" {
			c.name, c.title, c.x = "privacy-utility", "Privacy against utility", "epsilon of the simulated deployment"
		}
		charts = append(charts, c)
	}
	least, most := math.Inf(1), 0.0
	for _, c := range r.Cells {
		least, most = min(least, c.Bytes), max(most, c.Bytes)
	}
	charts = append(charts, chart{
		name: "bytes-utility", title: "Bytes against utility", x: "bytes of one device over all rounds, up and down", y: "test accuracy, %",
		logX:    least > 0 && most/least >= 8,
		caption: "Masked vector and adapter slice of a device that is drawn in every round; the base, the page and the keys are left out.",
		series:  byX(r.Cells, func(c *Cell) string { return r.label(c) }, func(c *Cell) (float64, bool) { return c.Bytes, c.Bytes > 0 }),
	})
	if c, ok := r.curves(); ok {
		charts = append(charts, c)
	}
	for _, c := range charts {
		if len(c.series) > maxSeries {
			c.caption += fmt.Sprintf(" The first %d of %d series.", maxSeries, len(c.series))
			c.series = c.series[:maxSeries]
		}
		p, err := c.draw()
		if err != nil {
			return fmt.Errorf("report: plot %s: %w", c.name, err)
		}
		r.Plots = append(r.Plots, p)
	}
	return nil
}

// maxSeries is what a plot can show apart.
const maxSeries = 14

// curves follows validation accuracy over the rounds: the best of the ranks that
// were measured, mean over seeds.
func (r *Report) curves() (chart, bool) {
	c := chart{
		name: "learning-curves", title: "Accuracy over the rounds", x: "round", y: "validation accuracy, %", lines: true,
		caption: "The best of the ranks measured in that round, on validation data; mean and standard deviation over seeds.",
	}
	for _, cell := range r.Cells {
		at := map[int][]float64{}
		for _, seed := range slices.Sorted(maps.Keys(cell.runs)) {
			for _, round := range cell.runs[seed].Curve {
				best := -1.0
				for _, a := range round.Accuracy {
					best = max(best, a.Accuracy)
				}
				if best >= 0 {
					at[round.Number] = append(at[round.Number], 100*best)
				}
			}
		}
		s := series{name: r.label(cell)}
		for _, v := range slices.Sorted(maps.Keys(at)) {
			sum := summarize(at[v])
			s.x, s.y, s.err = append(s.x, float64(v)), append(s.y, sum.Mean), append(s.err, sum.SD)
		}
		if len(s.x) > 0 {
			c.series = append(c.series, s)
		}
	}
	return c, len(c.series) > 0
}

func fileName(axis string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' {
			return c
		}
		return '-'
	}, strings.ToLower(axis))
}

// Write makes report.html, tables.tex and the plots in a folder, and returns
// their paths.
func (r *Report) Write(dir string) ([]string, error) {
	page, err := r.html()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"report.html": page, "tables.tex": r.latex()}
	for _, p := range r.Plots {
		files[p.Name+".svg"], files[p.Name+".png"] = p.SVG, p.PNG
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
