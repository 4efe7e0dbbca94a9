package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/starling-fl/starling/lab/sweep"
)

// ten are values whose figures are SciPy's: stats.t.interval, stats.ttest_1samp and
// stats.bootstrap(method="BCa", n_resamples=400000).
var ten = []float64{0.1, 0.9, 0.35, 1.4, -0.2, 0.6, 0.75, 0.05, 0.5, 2.9}

func TestIntervalsAndTestsAgainstSciPy(t *testing.T) {
	near := func(what string, got, want, within float64) {
		t.Helper()
		if !(math.Abs(got-want) <= within) {
			t.Errorf("%s is %v, SciPy has %v", what, got, want)
		}
	}
	low, high := IntervalT.of(ten)
	near("t, low", low, 0.09849536161416206, 1e-9)
	near("t, high", high, 1.3715046383858378, 1e-9)
	low, high = IntervalT.of(ten[:5])
	near("t of five, low", low, -0.2855375247973623, 1e-9)
	near("t of five, high", high, 1.3055375247973622, 1e-9)
	low, high = IntervalBCa.of(ten)
	near("BCa, low", low, 0.355, 0.01)
	near("BCa, high", high, 1.505, 0.02)
	near("p of being below 1", below(ten, 1), 0.1854385455049126, 1e-9)
	near("p of being below 0", below(ten, 0), 0.9859158216841262, 1e-9)
	for _, few := range [][]float64{ten[:9], ten[:2]} {
		a, b := IntervalT.of(few)
		if c, d := IntervalBCa.of(few); a != c || b != d {
			t.Errorf("BCa of %d values", len(few))
		}
	}
	if l, h := IntervalT.of([]float64{0.3}); l != 0.3 || h != 0.3 {
		t.Errorf("one value: %v to %v", l, h)
	}
	if _, err := ParseInterval("percentile"); err == nil {
		t.Error("a percentile interval is taken")
	}
}

// By hand: the smallest times 5, the next times 4, never below the one before.
func TestHolm(t *testing.T) {
	got := holm([]float64{0.01, 0.04, 0.03, 0.005, 0.5})
	want := []float64{0.04, 0.09, 0.09, 0.025, 0.5}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-12 {
			t.Fatalf("%v, want %v", got, want)
		}
	}
	if len(holm(nil)) != 0 {
		t.Error("something of nothing")
	}
}

// A table of claims that are all false is contradicted or shown somewhere in no more than
// 5 % of tables, where a claim by claim test errs in a quarter of them: 2,000 tables of 6
// claims, independent, which is Holm's worst case. The seed is fixed; another would pass
// but once in a million (5 % and five standard deviations).
func TestATableErrsInOneOfTwenty(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	zero := 0.0
	const tables, claims = 2000, 6
	wrong, alone := 0, 0
	for range tables {
		var p []float64
		for range claims {
			d := make([]float64, 6)
			for i := range d {
				d[i] = rng.NormFloat64()
			}
			_, v := statement{Above: &zero}.test(d)
			p = append(p, v)
		}
		if slices.Min(p) < level {
			alone++
		}
		if slices.Min(holm(p)) < level {
			wrong++
		}
	}
	if limit := tables*level + 5*math.Sqrt(tables*level*(1-level)); float64(wrong) > limit {
		t.Errorf("%d of %d tables err", wrong, tables)
	}
	if alone < tables/5 {
		t.Errorf("uncorrected only %d err: the tables test nothing", alone)
	}
}

// rows makes a table of one axis, method, from accuracies in percent, seed by seed.
func rows(version string, of map[string][]float64) []*point {
	var b strings.Builder
	b.WriteString("run,on:method,seed,version,test_accuracy\n")
	names := []string{}
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for i, v := range of[name] {
			fmt.Fprintf(&b, "x,%s,%d,%s,%v\n", name, i, version, v/100)
		}
	}
	_, points, _, err := read([]byte(b.String()))
	if err != nil {
		panic(err)
	}
	return points
}

// Every way in which a claim is, or is not, tested.
func TestVerdicts(t *testing.T) {
	zero, minus, one := 0.0, -1.0, 1.0
	on := func(m string) map[string]string { return map[string]string{"method": m} }
	base := []float64{80, 82, 81, 79, 83}
	plus := func(d ...float64) []float64 {
		out := slices.Clone(base[:len(d)])
		for i := range d {
			out[i] += d[i]
		}
		return out
	}
	plan := &sweep.Plan{}
	for i, m := range []string{"A", "B", "C", "D", "free"} {
		plan.Points = append(plan.Points, sweep.Point{On: on(m), Settings: sweep.Settings{Cohort: i + 1}})
	}
	lost := &control{With: on("B"), Without: on("free")}
	for _, c := range []struct {
		version string
		a, free []float64
		s       statement
		want    string
	}{
		{"abc1234", plus(2, 3, 2.5, 2, 3), nil, statement{Above: &zero}, shown},
		{"abc1234", plus(-2, -3, -2.5, -2, -3), nil, statement{Above: &zero}, contradicted},
		{"abc1234", plus(2, -3, 2.5, -2, 3), nil, statement{Above: &zero}, notShown},
		{"abc1234", plus(.1, -.2, .1, .2, -.1), nil, statement{Above: &minus, Below: &one}, shown},
		{"abc1234", plus(3, 3.1, 2.9, 3, 3.2), nil, statement{Above: &minus, Below: &one}, contradicted},
		{"abc1234", plus(.9, 1.1, .8, 1.2, 1.3), nil, statement{Above: &minus, Below: &one}, notShown},
		{"abc1234", plus(2, 3, 2.5, 2), nil, statement{Above: &zero}, "not tested: 4 seeds, 5 are needed"},
		{"abc1234", plus(0, 0, 0, 0, 0), nil, statement{Above: &zero}, "not tested: both sides are equal within rounding"},
		{"abc1234", plus(1e-13, -2e-13, 0, 1e-13, -3e-13), nil, statement{Above: &minus}, "not tested: both sides are equal within rounding"},
		{"abc1234", plus(2, 2, 2, 2, 2), nil, statement{Above: &zero}, "not tested: the same in every seed"},
		{"abc1234-dirty", plus(2, 3, 2.5, 2, 3), nil, statement{Above: &zero}, "not tested: a build that was not clean made the runs"},
		{"devel", plus(2, 3, 2.5, 2, 3), nil, statement{Above: &zero}, "not tested: a build that was not clean made the runs"},
		{"abc1234", plus(2, 3, 2.5, 2, 3), nil, statement{Above: &zero, Noise: true}, "not tested: no control, the same runs without noise and clipping"},
		{"abc1234", plus(2, 3, 2.5, 2, 3), plus(.4, .9, .7, 1, .2), statement{Above: &zero, Noise: true, Control: lost}, "not tested here: noise costs nothing"},
		{"abc1234", plus(2, 3, 2.5, 2, 3), plus(4, 9, 7), statement{Above: &zero, Noise: true, Control: lost}, "not tested: the control has 3 seeds, 5 are needed"},
		{"abc1234", plus(2, 3, 2.5, 2, 3), plus(4, 9, 7, 5, 6), statement{Above: &zero, Noise: true, Control: lost}, shown},
		{"abc1234", nil, nil, statement{Above: &zero}, "not run"},
	} {
		c.s.Of, c.s.Than = on("A"), on("B")
		got := claim{Claims: []statement{c.s}}.judge(plan, rows(c.version, map[string][]float64{"A": c.a, "B": base, "free": c.free}))
		if got[0].verdict != c.want {
			t.Errorf("%v against %v: %s (p %v), want %s", c.a, base, got[0].verdict, got[0].p, c.want)
		}
	}
	// Two builds in one table.
	mixed := rows("abc1234", map[string][]float64{"A": plus(2, 3, 2.5, 2, 3), "B": base})
	mixed[0].rows["1"]["version"] = "def5678"
	s := statement{Of: on("A"), Than: on("B"), Above: &zero}
	if f := (claim{Claims: []statement{s}}).judge(plan, mixed)[0]; f.verdict != "not tested: 2 builds made the runs" {
		t.Errorf("two builds: %s", f.verdict)
	}
	// What is shown alone is not beside others: p 0.02 of one claim, of three claims 0.06.
	few := plus(2.4, .3, 2.6, .4, 1.6)
	noise := plus(1, -1, 1, -1, .1)
	points := rows("abc1234", map[string][]float64{"A": few, "B": base, "C": noise, "D": plus(-1, 1, .3, -.9, .8)})
	three := claim{Claims: []statement{s, {Of: on("C"), Than: on("B"), Above: &zero}, {Of: on("D"), Than: on("B"), Above: &zero}}}
	if a, b := (claim{Claims: []statement{s}}).judge(plan, points)[0], three.judge(plan, points)[0]; a.verdict != shown || b.verdict != notShown || math.Abs(b.p-3*a.p) > 1e-12 {
		t.Errorf("alone %s (p %v), among three %s (p %v)", a.verdict, a.p, b.verdict, b.p)
	}
}

// A control is measured in its claim's metric: here noise costs six points of ANLS and none of accuracy, then the other
// way round.
func TestControlsAreInTheClaimsMetric(t *testing.T) {
	zero := 0.0
	on := func(m string) map[string]string { return map[string]string{"method": m} }
	plan := &sweep.Plan{}
	for i, m := range []string{"A", "B", "free"} {
		plan.Points = append(plan.Points, sweep.Point{On: on(m), Settings: sweep.Settings{Cohort: i + 1}})
	}
	s := statement{Of: on("A"), Than: on("B"), Above: &zero, Column: anls, Noise: true, Control: &control{With: on("B"), Without: on("free")}}
	for _, c := range []struct {
		costs, other string
		want         string
	}{{"test_anls", "test_accuracy", shown}, {"test_accuracy", "test_anls", "not tested here: noise costs nothing"}} {
		var points []*point
		for i, m := range []string{"A", "B", "free"} {
			p := &point{on(m), map[string]entry{}}
			for seed := range 5 {
				jitter := float64((seed*7+i*3)%5) / 1000
				p.rows[strconv.Itoa(seed)] = entry{"version": "abc1234",
					c.costs: fmt.Sprint([]float64{0.85, 0.80, 0.86}[i] + jitter), c.other: fmt.Sprint([]float64{0.85, 0.80, 0.80}[i] + jitter)}
			}
			points = append(points, p)
		}
		if f := (claim{Claims: []statement{s}}).judge(plan, points)[0]; f.verdict != c.want {
			t.Errorf("noise costs six points of %s: %s (%s), want %s", c.costs, f.verdict, f.costs(), c.want)
		}
	}
}

// Of every published claim that is tested the effect that its design detects is planted once into its differences, and
// told; a tenth of it is not.
func TestDesignsTellThePlantedEffect(t *testing.T) {
	all, err := claims()
	if err != nil {
		t.Fatal(err)
	}
	planted := 0
	for _, c := range all {
		text, err := os.ReadFile("../../docs/reproduction/" + c.Preset + ".csv")
		if err != nil {
			continue
		}
		_, points, _, err := read(text)
		if err != nil {
			t.Fatal(err)
		}
		_, plan, err := sweep.Preset(c.Preset)
		if err != nil {
			t.Fatal(err)
		}
		findings := c.judge(plan, points)
		tested := 0
		for _, f := range findings {
			if f.reason == "" {
				tested++
			}
		}
		for _, f := range findings {
			if f.reason != "" {
				continue
			}
			planted++
			mean := summarize(f.d).Mean
			for _, x := range []struct {
				part float64
				told bool
			}{{1, true}, {.1, false}} {
				d := slices.Clone(f.d)
				for i := range d {
					d[i] += x.part*f.detects - mean // differences like these, around the effect
				}
				less := below(d, 0)
				if p := float64(tested) * 2 * min(less, 1-less); (p < level) != x.told {
					t.Errorf("%s: %q: an effect of %.2g has p %.2g among %d claims", c.Preset, f.Says, x.part*f.detects, p, tested)
				}
			}
		}
	}
	if planted < 40 {
		t.Errorf("effects were planted into %d designs", planted)
	}
}

// A design whose sides are one computation tests nothing, however narrow its interval is; each published one is known.
func TestEqualSidesTestNothing(t *testing.T) {
	all, err := claims()
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]bool{}
	for _, c := range all {
		_, plan, err := sweep.Preset(c.Preset)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range c.Claims {
			why, err := equal(plan, s)
			if err != nil {
				t.Errorf("%s: %v", c.Preset, err)
			}
			if why != "" {
				refused[c.Preset] = true
			}
			if s.Noise != (s.Control != nil) {
				t.Errorf("%s: %q: a claim about noise has a control, and no other", c.Preset, s.Says)
			}
			s.Than = s.Of
			if why, err := equal(plan, s); err != nil || why == "" {
				t.Errorf("%s: a point against itself: %q, %v", c.Preset, why, err)
			}
		}
	}
	if len(refused) != 1 || !refused["paper000-clgecl-small"] {
		t.Errorf("designs that test nothing: %v, want paper000-clgecl-small alone", refused)
	}
}
