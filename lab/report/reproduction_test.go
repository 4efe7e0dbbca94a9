package report

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-fl/starling/lab/sweep"
)

// A table's rows stand beside what was published of them, with the seeds' mean, their
// spread and the paired difference.
func TestReproductionOfATable(t *testing.T) {
	table := `run,on:population,on:method,on:seed,seed,version,engine,base,values,rho,signal_norm,noise_norm,clipped,rounds,cohort_mean,bytes_up,bytes_down,rank,test_accuracy,test_macro_f1
a,30000,LoRA r=16,1,1,abc1234,program,b0,100,0.5,1,2,0.9,40,50,1500,500,16,0.70,0.5
b,30000,LoRA r=16,2,2,abc1234,program,b0,100,0.5,1,2,0.9,40,50,1500,500,16,0.74,0.5
c,30000,DyLoRA 1-16,1,1,abc1234,program,b0,100,0.5,1,2,0.9,40,50,1500,500,3,0.80,0.5
d,30000,DyLoRA 1-16,2,2,abc1234,program,b0,100,0.5,1,2,0.9,40,50,1500,500,5,0.88,0.5
`
	text, err := Reproduction(fstest.MapFS{"paper004-table4-small.csv": {Data: []byte(table)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| 30000 | LoRA r=16 | 90.0 | 72.0 ± 2.8 | 50.0 | 2 |  | 16, 16 | 100 | 0.5 | 1 | 2 | 90 % | 4 |",
		"| 30000 | DyLoRA 1-16 | 96.2 | 84.0 ± 5.7 | 50.0 | 2 | +12.0 (-13.4 to +37.4) | 3, 5 | 100 | 0.5 | 1 | 2 | 90 % | 4 |",
		"| population | method | minus | seeds | difference |",
		"| 30000 | DyLoRA 1-16 | LoRA r=16 | 2 | +12.0 (-13.4 to +37.4) |",
		"4 of the preset's 160 runs. Base b0 (SHA-256); engine program; build abc1234.",
		"**Not run.** `starling sweep --preset paper004-table4",
		"| LoRA r = 6 | 3419136 | 32 | 2 | 7 | 380 MB | 383 MB |",
		"| 7.7 MB | 7.69 MB |",
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

// Of a search all runs are kept and counted, and the one that validation chose is scored.
func TestReproductionOfASearch(t *testing.T) {
	const table = `run,on:regime,on:method,seed,chosen,version,engine,base,test_accuracy
a,eps 0.1,LoRA r=16,31,false,abc1234,program,b0,0.9
b,eps 0.1,LoRA r=16,31,true,abc1234,program,b0,0.7
c,eps 0.1,LoRA r=16,31,false,abc1234,program,b0,0.8
`
	text, err := Reproduction(fstest.MapFS{"paper004-clips-small.csv": {Data: []byte(table)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 of the preset's 130 runs, of which validation chose 1. Base b0", "| eps 0.1 | LoRA r=16 | – | 70.0 |"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q", want)
		}
	}
}

// What is compared is the accuracy in points, or the signal over the noise, seed by seed.
func TestStatementsOfATable(t *testing.T) {
	table := "run,on:budget,on:rank,seed,version,signal_norm,noise_norm,test_accuracy\n"
	for seed := 1; seed <= 5; seed++ {
		table += fmt.Sprintf("a,epsilon 2,r=16,%d,abc1234,%d,4,0.7%d\nb,epsilon 2,r=04,%d,abc1234,6,1,0.6%d\n", seed, 3+seed%2, seed%3, seed, seed)
	}
	text, err := Reproduction(fstest.MapFS{"paper004-figure7-small.csv": {Data: []byte(table)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| With noise rank 16 is worse than rank 4 | Figure 7 on the default base | +8.2 (+6.2 to +10.2) | below 0 | 5 | no control |  | not tested: no control,",
		"| Signal to noise falls from rank 4 to 16 | Figure 7 on the default base | -5.1 (-5.3 to -4.9) | below 0 | 5 |  | 1.2e-07 | shown |",
		"| Without it rank 16 is as good as rank 4 | Figure 7 on the default base |  | above -1 | 0 |  |  | not run |",
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
			if s.Above == nil && s.Below == nil || s.Column != "" && !slices.Contains([]string{snr, chosenRank, anls}, s.Column) {
				t.Errorf("%s: %q claims nothing of a figure", c.Preset, s.Says)
			}
			places := []map[string]string{s.Of, s.Than}
			if s.Control != nil {
				places = append(places, s.Control.With, s.Control.Without)
			}
			if s.Control != nil && !s.Noise {
				t.Errorf("%s: %q has a control and is not about noise", c.Preset, s.Says)
			}
			for _, on := range places {
				if !slices.ContainsFunc(plan.Points, func(p sweep.Point) bool {
					at := without(p.On, seedAxis)
					for _, a := range plan.Axes {
						if a.Search {
							delete(at, a.Name)
						}
					}
					return maps.Equal(at, on)
				}) {
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

// A table with runs of a build that no commit names is refused, unless it was there before and is unchanged.
func TestUncleanTablesAreRefused(t *testing.T) {
	const name = "paper004-table4-medium.csv"
	text, err := os.ReadFile("../../docs/reproduction/" + name)
	if err != nil {
		t.Fatal(err)
	}
	listed, err := os.ReadFile("../../docs/reproduction/" + uncleanTables)
	if err != nil {
		t.Fatal(err)
	}
	_, points, _, err := read(text)
	if err != nil {
		t.Fatal(err)
	}
	with := func(listed string, text []byte) (string, error) {
		return cleanness(fstest.MapFS{uncleanTables: {Data: []byte(listed)}}, name, text, points)
	}
	if says, err := with(string(listed), text); err != nil || !strings.Contains(says, "of 12 runs") {
		t.Errorf("a table that was there before: %q, %v", says, err)
	}
	if _, err := with("", text); err == nil || !strings.Contains(err.Error(), "dirty") {
		t.Errorf("a new table: %v", err)
	}
	if _, err := with(string(listed), append(text, '\n')); err == nil {
		t.Error("a changed table is taken for the one that was there before")
	}
	for _, p := range points {
		for _, e := range p.rows {
			e["version"] = "989e6a6"
		}
	}
	if says, err := with("", text); err != nil || says != "" {
		t.Errorf("a clean table: %q, %v", says, err)
	}
}

// TestEveryFigureIsSpokenOf: the paper's ten figures have a row each, and the presets that the
// rows name are there; every preset of the paper is in one.
func TestEveryFigureIsSpokenOf(t *testing.T) {
	for i := 1; i <= 10; i++ {
		if !strings.Contains(figures, fmt.Sprintf("\n| %d | ", i)) {
			t.Errorf("nothing is said of figure %d", i)
		}
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`(paper004-[^`]+)`").FindAllStringSubmatch(figures, -1) {
		if named[m[1]] = true; !slices.Contains(sweep.Presets(), m[1]) {
			t.Errorf("there is no preset %s", m[1])
		}
	}
	for _, p := range sweep.Presets() {
		if strings.HasPrefix(p, "paper004") && !named[p] && p != "paper004-table4-medium" && p != "paper004-table4-short" {
			t.Errorf("%s is of no figure", p)
		}
	}
}

// TestSettingsStandBesideThePapers: a preset's own settings, and what it costs.
func TestSettingsStandBesideThePapers(t *testing.T) {
	text, err := Reproduction(fstest.MapFS{})
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## Figure 7, R8\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, want := range []string{
		"| clients | 1,000,000, for which 1,000 stand | 1000000 |", "| rounds | 200 | 200 |", "| epsilon | 2; none | 2; none |", "| seeds | 1 | 5 |",
		"| clip norm | of 3 that are searched | the base's default; none where there is no noise |",
		"| time |  | 60 runs of some 25 minutes of a core: 12 hours on two |",
		"`starling sweep --preset paper004-figure7 --data R8.train.txt.gz --base FOLDER`",
	} {
		if !strings.Contains(section, want) {
			t.Errorf("no %q in\n%s", want, section)
		}
	}
}

// Every command that is printed names the base that its preset needs, and rows that a coordinator
// refuses today are called so, with their size and the bound.
func TestReproductionOfWhatWasNotRun(t *testing.T) {
	text, err := Reproduction(fstest.MapFS{})
	if err != nil {
		t.Fatal(err)
	}
	flat := strings.Join(strings.Fields(string(text)), " ")
	for _, name := range sweep.Presets() {
		stated, err := sweep.StatedOf(name)
		if err != nil {
			t.Fatal(err)
		}
		command, _, found := strings.Cut(flat, "`, then copy its results.csv to docs/reproduction/"+name+".csv")
		if !found {
			t.Errorf("%s has no command", name)
			continue
		}
		command = command[strings.LastIndex(command, "`starling sweep --preset "+name):]
		if want := strings.Count(stated.Flag(), "--base"); strings.Count(command, "--base") != want || !strings.HasSuffix(command, stated.Flag()) {
			t.Errorf("%s: %q, want %q once", name, command, stated.Flag())
		}
	}
	for _, want := range []string{
		"**Refused today:** 0 baseline (225,659,136 values), 4 FedShampoo (200,984,832 values). A round carries updates of 16,777,216 values at most",
		"**Refused today:** every row (223,497,984 values).",
		"At the paper's size, estimated: 5.18 million documents, 3,900 hours of a core or 15 of an accelerator.",
	} {
		if !strings.Contains(flat, want) {
			t.Errorf("not said: %s", want)
		}
	}
}
