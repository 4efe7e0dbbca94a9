package report

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-fl/starling/simulate/sweep"
)

// A table's rows stand beside what was published of them, with the seeds' mean, their
// spread and the paired difference.
func TestReproductionOfATable(t *testing.T) {
	table := `run,on:population,on:method,on:seed,seed,engine,base,values,rho,signal_norm,noise_norm,clipped,rounds,cohort_mean,bytes_up,bytes_down,rank,test_accuracy,test_macro_f1
a,30000,LoRA r=16,1,1,program,b0,100,0.5,1,2,0.9,40,50,1500,500,16,0.70,0.5
b,30000,LoRA r=16,2,2,program,b0,100,0.5,1,2,0.9,40,50,1500,500,16,0.74,0.5
c,30000,DyLoRA 1-16,1,1,program,b0,100,0.5,1,2,0.9,40,50,1500,500,3,0.80,0.5
d,30000,DyLoRA 1-16,2,2,program,b0,100,0.5,1,2,0.9,40,50,1500,500,5,0.88,0.5
`
	text, err := Reproduction(fstest.MapFS{"paper004-table4-small.csv": {Data: []byte(table)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| 30000 | LoRA r=16 | 90.0 | 72.0 ± 2.8 | 50.0 | 2 |  | 16, 16 | 100 | 0.5 | 1 | 2 | 90 % | 4 |",
		"| 30000 | DyLoRA 1-16 | 96.2 | 84.0 ± 5.7 | 50.0 | 2 | +12.0 (+10.0 to +14.0) | 3, 5 | 100 | 0.5 | 1 | 2 | 90 % | 4 |",
		"| population | DyLoRA 1-16 minus | seeds | difference | at least as good |",
		"| 30000 | LoRA r=16 | 2 | +12.0 (+10.0 to +14.0) | too few seeds |",
		"4 of the preset's 42 runs. Base b0 (SHA-256); engine program.",
		"**Not run.** `starling sweep --preset paper004-table4",
		"| LoRA r = 6 | 3410000 | 32 | 2 | 7 | 380 MB | 382 MB |",
		"| 7.7 MB | 7.67 MB |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for name, bad := range map[string]string{"no table": "x\n1\n", "no rows": "test_accuracy\n", "ragged": "test_accuracy,a\n1\n"} {
		if _, err := Reproduction(fstest.MapFS{"paper004-table4.csv": {Data: []byte(bad)}}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestAtLeastAsGood(t *testing.T) {
	for _, c := range []struct {
		seeds     int
		low, high float64
		want      string
	}{{2, 5, 6, "too few seeds"}, {3, -1, 2, "yes"}, {3, -1.1, 2, "not shown"}, {4, -3, -1, "not shown"}, {3, -3, -1.1, "no"}} {
		if got := asGoodAs(c.seeds, c.low, c.high); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// A claim is shown by an interval within its bounds, contradicted by one outside of them.
func TestVerdicts(t *testing.T) {
	zero, one, minus := 0.0, 1.0, -1.0
	better, alike := statement{Above: &zero}, statement{Above: &minus, Below: &one}
	for _, c := range []struct {
		s         statement
		seeds     int
		low, high float64
		want      string
	}{
		{better, 3, 0.1, 2, "shown"},
		{better, 3, 0, 2, "not shown"}, // a seed's tie is no win
		{better, 3, -2, 2, "not shown"},
		{better, 3, -2, 0, "contradicted"},
		{better, 2, 1, 2, "too few seeds"},
		{alike, 3, -0.9, 0.9, "shown"},
		{alike, 3, -0.9, 1.1, "not shown"},
		{alike, 3, 1, 3, "contradicted"},
		{alike, 3, -3, -1.5, "contradicted"},
		{statement{Below: &zero}, 3, -3, -1, "shown"},
	} {
		if got := c.s.verdict(c.seeds, c.low, c.high); got != c.want {
			t.Errorf("%s with %v to %v of %d seeds: %s, want %s", c.s.bound(), c.low, c.high, c.seeds, got, c.want)
		}
	}
}

// What is compared is the accuracy in points, or the signal over the noise, seed by seed.
func TestStatementsOfATable(t *testing.T) {
	table := `run,on:budget,on:rank,seed,signal_norm,noise_norm,test_accuracy
a,epsilon 2,r=16,1,4,4,0.70
b,epsilon 2,r=16,2,5,4,0.74
c,epsilon 2,r=16,3,5,5,0.72
d,epsilon 2,r=04,2,6,1,0.70
e,epsilon 2,r=04,3,6,1,0.71
f,epsilon 2,r=04,1,6,1,0.69
`
	text, err := Reproduction(fstest.MapFS{"paper004-figure7-small.csv": {Data: []byte(table)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| With noise rank 16 is worse than rank 4 | Figure 7 on the default base | +2.0 (+1.0 to +4.0) | below 0 | 3 | contradicted |",
		"| Signal to noise falls from rank 4 to 16 | Figure 7 on the default base | -4.9 (-5.0 to -4.8) | below 0 | 3 | shown |",
		"| Without it rank 16 is as good as rank 4 | Figure 7 on the default base |  | above -1 | 0 | not run |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// Every claim is about a preset, and of every preset something is claimed; each
// published row is a point of its grid.
func TestClaimsFitThePresets(t *testing.T) {
	all, err := claims()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(sweep.Presets()) {
		t.Errorf("%d claims for %d presets", len(all), len(sweep.Presets()))
	}
	for _, c := range all {
		_, plan, err := sweep.Preset(c.Preset)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range c.Rows {
			found := false
			for _, p := range plan.Points {
				match := true
				for axis, v := range r.On {
					match = match && p.On[axis] == v
				}
				found = found || match
			}
			if !found {
				t.Errorf("%s has no point %v", c.Preset, r.On)
			}
		}
		for _, s := range c.Claims {
			if s.Above == nil && s.Below == nil || s.Column != "" && s.Column != snr {
				t.Errorf("%s: %q claims nothing of a figure", c.Preset, s.Says)
			}
			for _, on := range []map[string]string{s.Of, s.Than} {
				if !slices.ContainsFunc(plan.Points, func(p sweep.Point) bool { return maps.Equal(without(p.On, seedAxis), on) }) {
					t.Errorf("%s: %q: the grid has no point %v", c.Preset, s.Says, on)
				}
			}
		}
	}
}

func TestReproductionIsCurrent(t *testing.T) {
	want, err := Reproduction(os.DirFS("../../docs/reproduction"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/REPRODUCTION.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/REPRODUCTION.md is not what its tables make: run make reproduction")
	}
}
