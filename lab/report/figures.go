package report

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/lab/sweep"
)

// maxSeries is what a plot can show apart.
const maxSeries = 14

// plots draws what the grid came to: against each axis of numbers, against bytes, ranks and
// rounds.
func (r *Report) plots() error {
	charts := r.byAxes()
	charts = append(charts, chart{
		name: "bytes-utility", title: "Bytes against utility", x: "bytes of one device over all rounds, up and down", y: "test " + r.Measures()[0] + ", %",
		caption: "Masked vector and adapter slice of a device that is drawn in every round; the base, the page and the keys are left out.",
		series:  byX(r.Cells, func(c *Cell) string { return r.label(c) }, func(c *Cell) (float64, bool) { return c.Bytes, c.Bytes > 0 }, (*Cell).scores),
	}.scaled())
	if c, ok := r.byRank(); ok {
		charts = append(charts, c)
	}
	if c, ok := r.curves(); ok {
		charts = append(charts, c)
	}
	for _, c := range charts {
		if len(c.series) == 0 {
			continue
		}
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

// each is a figure of a cell's runs, in the order of their seeds.
func (c *Cell) each(figure func(*sweep.Record) float64) []float64 {
	var out []float64
	for _, seed := range slices.Sorted(maps.Keys(c.runs)) {
		out = append(out, figure(c.runs[seed]))
	}
	return out
}

func (c *Cell) scores() []float64 {
	return c.each(func(r *sweep.Record) float64 { return 100 * r.Score() })
}

// decibels of the exact mean update over the noise in it, means over the rounds; none
// where there is no noise.
func (c *Cell) decibels() []float64 {
	if c.Noise == 0 || c.Signal == 0 {
		return nil
	}
	return c.each(func(r *sweep.Record) float64 { return 20 * math.Log10(r.SignalNorm/r.NoiseNorm) })
}

// axisNames is how plots call settings that are axes often.
var axisNames = map[string]string{
	"privacy.epsilon": "privacy budget, epsilon", "population": "registered clients", "alpha": "Dirichlet concentration alpha of the clients' labels",
	"rounds": "rounds", "cohort": "clients trained in a round", "adapter.rank_max": "largest rank", "privacy.clip_norm": "clip norm",
}

// numbers are an axis' values as numbers, without the words that all of them begin with,
// such as "epsilon " or "r=".
func numbers(values []string) (words string, x []float64, ok bool) {
	if len(values) < 2 {
		return "", nil, false
	}
	words = strings.TrimRight(values[0], "0123456789.")
	for _, v := range values {
		rest, found := strings.CutPrefix(v, words)
		n, err := strconv.ParseFloat(rest, 64)
		if !found || err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
			return "", nil, false
		}
		x = append(x, n)
	}
	return strings.Trim(words, " =:"), x, true
}

// byAxes are a chart for each axis of numbers, and signal to noise where the number of
// trained values changes along it.
func (r *Report) byAxes() []chart {
	var charts []chart
	measure := r.Measures()[0]
	for _, a := range r.Axes {
		words, x, ok := numbers(a.Values)
		if !ok {
			continue
		}
		value := func(c *Cell) (float64, bool) {
			i := slices.Index(a.Values, c.On[a.Name])
			return x[max(i, 0)], i >= 0
		}
		name := func(c *Cell) string { return r.label(c, a.Name) }
		called := axisNames[a.Name]
		switch {
		case called == "" && words == "":
			called = a.Name
		case called == "":
			called = fmt.Sprintf("%s (%s)", a.Name, words)
		}
		c := chart{
			name: "accuracy-by-" + fileName(a.Name), title: capital(measure) + " against " + a.Name, x: called, y: "test " + measure + ", %", lines: true,
			caption: "At the rank that validation chose.", series: byX(r.Cells, name, value, (*Cell).scores), ticks: slices.Clone(x),
		}.scaled()
		slices.Sort(c.ticks)
		if a.Name == "privacy.epsilon" {
			c.name, c.title = "privacy-utility", "Privacy against utility"
		}
		charts = append(charts, c)
		if !r.resized(a) {
			continue
		}
		snr := c
		snr.name, snr.title, snr.y = "signal-to-noise-by-"+fileName(a.Name), "Signal to noise against "+a.Name, "signal to noise, dB"
		snr.caption = "The norm of the exact mean update over that of the noise in it, mean over the rounds."
		snr.series = byX(r.Cells, name, value, (*Cell).decibels)
		charts = append(charts, snr)
	}
	return charts
}

// resized reports whether cells that differ on one axis alone train different numbers of values.
func (r *Report) resized(a sweep.Axis) bool {
	seen := map[string]int{}
	for _, c := range r.Cells {
		at := r.label(c, a.Name)
		if v, ok := seen[at]; ok && v != c.Values {
			return true
		}
		seen[at] = c.Values
	}
	return false
}

// rankSaid is how a name says its one rank.
var rankSaid = regexp.MustCompile(`,? ?\(?\b(?:r ?=? ?|rank ?=? ?|adapter\.rank_m(?:in|ax) )0*(\d+)\)?`)

// byRank shows validation accuracy at every rank: the curve of an adapter that has many,
// and adapters of one rank each, as a series where their names differ in it alone.
func (r *Report) byRank() (chart, bool) {
	c := chart{
		name: "rank-utility", title: "Accuracy against rank", x: "rank", y: "validation accuracy, %", lines: true,
		caption: "On validation data: the test split is asked once, at the rank that validation chooses.",
	}
	at := map[string]map[int][]float64{}
	var order []string
	ranks := map[int]bool{}
	for _, cell := range r.Cells {
		name := r.label(cell)
		for _, seed := range slices.Sorted(maps.Keys(cell.runs)) {
			measured := cell.runs[seed].ByRank
			for _, m := range measured {
				if m.Rank < 1 { // the head alone, or a method without ranks
					continue
				}
				if len(measured) == 1 {
					if said := rankSaid.FindStringSubmatch(name); said != nil && said[1] == strconv.Itoa(m.Rank) {
						name = strings.Trim(strings.Replace(name, said[0], "", 1), ", ")
					}
				}
				if at[name] == nil {
					at[name], order = map[int][]float64{}, append(order, name)
				}
				at[name][m.Rank], ranks[m.Rank] = append(at[name][m.Rank], 100*m.Accuracy), true
			}
		}
	}
	for _, name := range order {
		c.series = append(c.series, series{name, marks(at[name])})
	}
	return c, len(ranks) > 1
}

// curves follows validation accuracy over the rounds: the best of the ranks that were
// measured.
func (r *Report) curves() (chart, bool) {
	c := chart{
		name: "learning-curves", title: "Accuracy over the rounds", x: "round", y: "validation accuracy, %", lines: true,
		caption: "The best of the ranks measured in that round, on validation data.",
	}
	for _, cell := range r.Cells {
		at := map[int][]float64{}
		for _, seed := range slices.Sorted(maps.Keys(cell.runs)) {
			for _, round := range cell.runs[seed].Curve {
				if best, ok := bestOf(round); ok {
					at[round.Number] = append(at[round.Number], best)
				}
			}
		}
		if len(at) > 0 {
			c.series = append(c.series, series{r.label(cell), marks(at)})
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
