package report

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/starling-fl/starling/lab/sweep"
)

// Verdicts on a publication's claims. Any other says why there is none.
const (
	shown        = "shown"
	contradicted = "contradicted"
	notShown     = "not shown"
)

// noiseCosts is what noise and clipping must cost LoRA, in points, for a table to say
// anything of how methods stand them.
const noiseCosts = 1

// control is the pair of points that says what noise costs where a claim is about noise:
// the same runs with it, and without noise and clipping.
type control struct {
	With    map[string]string `yaml:"with"`
	Without map[string]string `yaml:"without"`
}

// finding is what a table says of a statement.
type finding struct {
	statement
	d        []float64 // differences, seed by seed
	cost     []float64 // of noise, seed by seed, where the statement has a control
	reason   string    // why it is not tested
	p        float64   // corrected
	verdict  string
	inFamily float64 // p before it is corrected
	inside   bool    // what p is the p value of: the claim, or that it is wrong
	detects  float64 // distance of the mean from a bound that would very likely be told; 0 where nothing is tested
}

// judge checks every claim of a table against its points. A control is measured in the
// column of its claim: what noise costs in accuracy says nothing of what it costs in ANLS.
func (c claim) judge(plan *sweep.Plan, points []*point) []*finding {
	unclean := builds(points)
	var all, tested []*finding
	var family []float64
	for _, s := range c.Claims {
		f := &finding{statement: s, d: differences(points, s.Of, s.Than, s.Column)}
		if s.Control != nil {
			f.cost = differences(points, s.Control.Without, s.Control.With, s.Column)
		}
		same, err := equal(plan, s)
		all = append(all, f)
		switch {
		case len(f.d) == 0:
			f.reason = "not run"
		case err != nil:
			f.reason = "not tested: " + err.Error()
		case same != "":
			f.reason = "tests nothing: " + same
		case unclean != "":
			f.reason = "not tested: " + unclean
		default:
			f.reason = f.untested()
		}
		if f.reason == "" {
			f.inside, f.inFamily = s.test(f.d)
			tested, family = append(tested, f), append(family, f.inFamily)
		}
		f.verdict = f.reason
	}
	for i, p := range holm(family) {
		f := tested[i]
		f.p, f.verdict = p, verdictOf(f.inside, p)
		f.detects = detectable(f.d, len(family))
	}
	return all
}

func verdictOf(inside bool, p float64) string {
	switch {
	case p >= level:
		return notShown
	case inside:
		return shown
	}
	return contradicted
}

// untested says why a difference's statement is not tested; "" if it is.
func (f *finding) untested() string {
	if why := testable(f.d); why != "" {
		return "not tested: " + why
	}
	switch {
	case !f.Noise:
		return ""
	case f.Control == nil || len(f.cost) == 0:
		return "not tested: no control, the same runs without noise and clipping"
	case len(f.cost) < leastSeeds:
		return fmt.Sprintf("not tested: the control has %d seeds, %d are needed", len(f.cost), leastSeeds)
	case !(summarize(f.cost).Mean >= noiseCosts):
		return "not tested here: noise costs nothing"
	}
	return ""
}

// test is the p value of a statement, two-sided: of the nearer to being shown of the two,
// that the mean is within the bounds and that it is outside of them.
func (s statement) test(d []float64) (inside bool, p float64) {
	within, beyond, bounds := 0.0, 1.0, 0.0
	if s.Above != nil {
		less := below(d, *s.Above)
		within, beyond, bounds = max(within, 1-less), min(beyond, less), bounds+1
	}
	if s.Below != nil {
		less := below(d, *s.Below)
		within, beyond, bounds = max(within, less), min(beyond, 1-less), bounds+1
	}
	beyond = min(1, bounds*beyond) // either of two ways
	return within <= beyond, min(1, 2*min(within, beyond))
}

// builds says why a table's runs cannot be compared with each other: not all of one clean
// build; "" if they can.
func builds(points []*point) string {
	seen := map[string]bool{}
	for _, p := range points {
		for _, e := range p.rows {
			seen[e["version"]] = true
		}
	}
	names := slices.Sorted(maps.Keys(seen))
	for _, v := range names {
		if unclean(v) {
			return "a build that was not clean made the runs"
		}
	}
	if len(names) > 1 {
		return fmt.Sprintf("%d builds made the runs", len(names))
	}
	return ""
}

// differences of a column between two points, seed by seed.
func differences(all []*point, on, from map[string]string, column string) []float64 {
	find := func(on map[string]string) *point {
		for _, p := range all {
			if maps.Equal(p.on, on) {
				return p
			}
		}
		return nil
	}
	of, than := find(on), find(from)
	if of == nil || than == nil {
		return nil
	}
	value := func(e entry) float64 {
		switch column {
		case snr:
			return e.number("signal_norm") / e.number("noise_norm")
		case chosenRank:
			return e.number("rank")
		case anls:
			return 100 * e.number("test_anls")
		}
		return 100 * e.number("test_accuracy")
	}
	var d []float64
	for _, seed := range slices.Sorted(maps.Keys(of.rows)) {
		if o, ok := than.rows[seed]; ok {
			d = append(d, difference(value(of.rows[seed]), value(o)))
		}
	}
	return d
}

// rounding is the relative difference below which two figures are one, computed in another order.
const rounding = 1e-9

// difference is a - b, and 0 where they differ by rounding alone.
func difference(a, b float64) float64 {
	if math.Abs(a-b) <= rounding*max(math.Abs(a), math.Abs(b)) {
		return 0
	}
	return a - b
}

// costs is how a table says what noise costs.
func (f *finding) costs() string {
	switch {
	case !f.Noise:
		return ""
	case len(f.cost) == 0:
		return "no control"
	}
	return interval(f.cost)
}

// corrected is how a table says a p value.
func (f *finding) corrected() string {
	if f.reason != "" || math.IsNaN(f.p) {
		return ""
	}
	return fmt.Sprintf("%.2g", f.p)
}

// told is how a table says what a design detects.
func (f *finding) told() string {
	if f.detects == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", f.detects)
}
