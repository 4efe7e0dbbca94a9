package report

import (
	"maps"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/starling-fl/starling/lab/sweep"
)

// seedAxis is the axis that repeats a point.
const seedAxis = "seed"

// Summary is a figure over the seeds of one point.
type Summary struct {
	N    int     `json:"n"`
	Mean float64 `json:"mean"`
	SD   float64 `json:"sd"` // of a sample; 0 where N is 1
}

// percent is the mean and, after a sign for it, the spread, which one value alone has not.
func (s Summary) percent(sign string) string {
	if s.N < 2 {
		return percent(s.Mean)
	}
	return percent(s.Mean) + sign + percent(s.SD)
}

func summarize(x []float64) Summary {
	s := Summary{N: len(x)}
	if s.N == 1 {
		s.Mean = x[0]
	} else if s.N > 1 {
		s.Mean, s.SD = stat.MeanStdDev(x, nil)
	}
	return s
}

// Cell is a point of the grid over its seeds.
type Cell struct {
	On       map[string]string `json:"on"` // by axis, without the seed
	Accuracy Summary           `json:"accuracy"`
	MacroF1  Summary           `json:"macro_f1"`
	ANLS     *Summary          `json:"anls,omitempty"` // of answers, whose accuracy is exact matches
	Rho      float64           `json:"rho"`
	Signal   float64           `json:"signal_norm"`
	Noise    float64           `json:"noise_norm"`
	Clipped  float64           `json:"clipped"`
	Values   int               `json:"values"`
	Epsilon  float64           `json:"epsilon"`
	Delta    float64           `json:"delta"`
	// Search is the epsilon of the whole search, the largest of the seeds'; 0 if it is not
	// counted.
	Search float64 `json:"search_epsilon,omitempty"`
	// Bytes of one device in all rounds, up and down, base and page left out.
	Bytes float64 `json:"bytes"`

	runs map[string]*sweep.Record // by seed
}

// Measures are the columns of each cell; cells are compared by the first.
func (r *Report) Measures() [2]string {
	for _, c := range r.Cells {
		if c.ANLS != nil {
			return [2]string{"ANLS", "exact match"}
		}
	}
	return [2]string{"accuracy", "macro-F1"}
}

// Measured are a cell's figures of the report's measures.
func (c *Cell) Measured() [2]Summary {
	if c.ANLS != nil {
		return [2]Summary{*c.ANLS, c.Accuracy}
	}
	return [2]Summary{c.Accuracy, c.MacroF1}
}

// Paired is how a cell differs from the one it is compared with: over the seeds
// that both have, which share data, division and cohorts.
type Paired struct {
	On        map[string]string `json:"on"`
	Against   map[string]string `json:"against"`
	N         int               `json:"n"`
	Mean      float64           `json:"mean"` // of the first measure, less the other's
	Low, High float64           // 95 % interval of the mean, of this difference alone

	// P is the two-sided t test's p value, corrected by Holm over all pairs of the report
	// that are tested; nil, and why not, where this one is not.
	P         *float64 `json:"p_holm,omitempty"`
	NotTested string   `json:"not_tested,omitempty"`
}

// verdict is what may be said of a pair: "" where nothing.
func (p Paired) verdict() string {
	switch {
	case p.P == nil:
		return "not tested: " + p.NotTested
	case *p.P >= level:
		return "not told from zero"
	case p.Mean > 0:
		return "better"
	}
	return "worse"
}

// cells groups the records by everything but the seed, in the order they came.
func cells(x *sweep.Index, records []*sweep.Record) []*Cell {
	var out []*Cell
	at := map[string]*Cell{}
	for _, r := range records {
		on := without(r.On, seedAxis)
		for _, a := range x.Searched() {
			delete(on, a.Name)
		}
		key := x.Key(on)
		c := at[key]
		if c == nil {
			c = &Cell{On: on, Rho: r.Rho, Values: r.Values, runs: map[string]*sweep.Record{}}
			at[key] = c
			out = append(out, c)
		}
		c.runs[r.On[seedAxis]] = r
	}
	for _, c := range out {
		var accuracy, f1, anls []float64
		n := float64(len(c.runs))
		for _, seed := range slices.Sorted(maps.Keys(c.runs)) {
			r := c.runs[seed]
			accuracy, f1 = append(accuracy, r.Accuracy), append(f1, r.MacroF1)
			if r.ANLS != nil {
				anls = append(anls, *r.ANLS)
			}
			c.Signal += r.SignalNorm / n
			c.Noise += r.NoiseNorm / n
			c.Clipped += r.Clipped / n
			c.Bytes += (r.BytesUp + r.BytesDown) * float64(len(r.Curve)) / n
			c.Epsilon, c.Delta = max(c.Epsilon, r.Epsilon), r.Delta
			if r.Search != nil {
				c.Search = max(c.Search, r.Search.Epsilon)
			}
		}
		c.Accuracy, c.MacroF1 = summarize(accuracy), summarize(f1)
		if len(anls) > 0 {
			s := summarize(anls)
			c.ANLS = &s
		}
	}
	return out
}

func without(on map[string]string, axis string) map[string]string {
	out := maps.Clone(on)
	delete(out, axis)
	return out
}

// pairs compares every cell with the one that has the index's compared values and
// is equal in the rest.
func pairs(x *sweep.Index, all []*Cell, interval Interval) []Paired {
	if len(x.Compare) == 0 {
		return nil
	}
	at := map[string]*Cell{}
	for _, c := range all {
		at[x.Key(c.On)] = c
	}
	var out []Paired
	var tested []int
	var family []float64
	for _, c := range all {
		on := maps.Clone(c.On)
		maps.Copy(on, x.Compare)
		other := at[x.Key(on)]
		if other == nil || other == c {
			continue
		}
		var d []float64
		for _, seed := range slices.Sorted(maps.Keys(c.runs)) {
			if b := other.runs[seed]; b != nil {
				d = append(d, difference(c.runs[seed].Score(), b.Score()))
			}
		}
		if len(d) == 0 {
			continue
		}
		p := Paired{On: c.On, Against: on, N: len(d), Mean: summarize(d).Mean}
		p.Low, p.High = interval.of(d)
		if p.NotTested = testable(d); p.NotTested == "" {
			less := below(d, 0)
			tested, family = append(tested, len(out)), append(family, 2*min(less, 1-less))
		}
		out = append(out, p)
	}
	for k, v := range holm(family) {
		out[tested[k]].P = &v
	}
	return out
}
