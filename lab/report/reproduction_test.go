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
	pages, err := Reproduction(fstest.MapFS{"paper004-table4-small.csv": {Data: []byte(table)}})
	if err != nil {
		t.Fatal(err)
	}
	text := all(pages)
	for _, want := range []string{
		"| 30000 | LoRA r=16 | 90.0 | 72.0 ± 2.8 | 50.0 | 2 |  | 16, 16 | 100 | 0.5 | 1 | 2 | 90 % | 4 |",
		"| 30000 | DyLoRA 1-16 | 96.2 | 84.0 ± 5.7 | 50.0 | 2 | +12.0 (-13.4 to +37.4) | 3, 5 | 100 | 0.5 | 1 | 2 | 90 % | 4 |",
		"| population | method | minus | seeds | difference |",
		"| 30000 | DyLoRA 1-16 | LoRA r=16 | 2 | +12.0 (-13.4 to +37.4) |",
		"4 of the preset's 160 runs. Base b0 (SHA-256); engine program; build abc1234.",
		"| `starling sweep --preset paper004-table4 ",
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
	pages, err := Reproduction(fstest.MapFS{"paper004-clips-small.csv": {Data: []byte(table)}})
	if err != nil {
		t.Fatal(err)
	}
	text := all(pages)
	for _, want := range []string{"3 of the preset's 130 runs, of which validation chose 1. Base b0", "| eps 0.1 | LoRA r=16 | – | 70.0 |"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q", want)
		}
	}
}

// all joins the pages of a reproduction.
func all(pages map[string][]byte) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		b.Write(pages[name])
	}
	return b.String()
}

// What is compared is the accuracy in points, or the signal over the noise, seed by seed.
func TestStatementsOfATable(t *testing.T) {
	table := "run,on:budget,on:rank,seed,version,signal_norm,noise_norm,test_accuracy\n"
	for seed := 1; seed <= 5; seed++ {
		table += fmt.Sprintf("a,epsilon 2,r=16,%d,abc1234,%d,4,0.7%d\nb,epsilon 2,r=04,%d,abc1234,6,1,0.6%d\nc,epsilon 1000,r=16,%d,abc1234,6,1,0.6%d\nd,epsilon 1000,r=04,%d,abc1234,6,1,0.6%d\n",
			seed, 3+seed%2, seed%3, seed, seed, seed, seed, seed, 6-seed)
	}
	pages, err := Reproduction(fstest.MapFS{"paper004-figure7-small.csv": {Data: []byte(table)}})
	if err != nil {
		t.Fatal(err)
	}
	text := string(pages[Verdicts])
	for _, want := range []string{
		"| Signal to noise falls from rank 4 to 16 | [paper004-figure7-small](paper004-figure7-small.md), 5 seeds | -5.1 (-5.3 to -4.9) | below 0 | 0.3 |  | 2.5e-07 | shown |",
		"| Without it rank 16 is as good as rank 4 | [paper004-figure7-small](paper004-figure7-small.md), 5 seeds | +0.0 (-3.9 to +3.9) | above -1 | 6.3 |  | 0.52 | not shown |",
		"| Signal to noise falls from rank 1 to 4 | paper004-figure7-small |  | below 0 |  |  |  | not run |",
	} {
		if !strings.Contains(text, want) {
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
	pages, err := Reproduction(os.DirFS("../../docs/reproduction"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range pages {
		got, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("docs/%s is not what its tables make: run make reproduction", name)
		}
	}
	if n := len(pages[Document]); n > 10<<10 {
		t.Errorf("%s has %d bytes, limit 10 kB", Document, n)
	}
	if !strings.Contains(string(pages[Verdicts]), "tests nothing: every client takes part in each round and nothing is clipped") {
		t.Error("paper000-clgecl-small is not said to test nothing")
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

// A preset's own settings are compared with the paper's, with what its runs cost.
func TestSettingsAreComparedWithThePapers(t *testing.T) {
	const table = "run,on:budget,on:method,seed,version,engine,base,test_accuracy\na,epsilon 2,LoRA r=16,1,abc1234,program,b0,0.9\n"
	pages, err := Reproduction(fstest.MapFS{"paper004-figure7.csv": {Data: []byte(table)}, "paper000-track1-small.csv": {Data: []byte(table)}})
	if err != nil {
		t.Fatal(err)
	}
	section := string(pages["results/paper004-figure7.md"])
	for _, want := range []string{
		"| clients | 1,000,000, for which 1,000 stand | 1000000 |", "| rounds | 200 | 200 |", "| epsilon | 2; none | 2; none |", "| seeds | 1 | 5 |",
		"| clip norm | of 3 that are searched | the base's default; none where there is no noise |",
		"| time |  | 60 runs of some 25 minutes of a core: 12 hours on two |",
	} {
		if !strings.Contains(section, want) {
			t.Errorf("no %q in\n%s", want, section)
		}
	}
	traffic := string(pages["results/paper000-track1-small.md"])
	for _, want := range []string{"| LoRA r = 6 | 3419136 | 32 | 2 | 7 | 380 MB | 383 MB |", "| 7.7 MB | 7.69 MB |"} {
		if !strings.Contains(traffic, want) {
			t.Errorf("no %q in\n%s", want, traffic)
		}
	}
}

// Every command that is printed names the base that its preset needs. Rows that a coordinator refuses today are listed,
// with their size and the bound.
func TestReproductionOfWhatWasNotRun(t *testing.T) {
	pages, err := Reproduction(fstest.MapFS{})
	if err != nil {
		t.Fatal(err)
	}
	text := string(pages[Waiting])
	for _, name := range sweep.Presets() {
		stated, err := sweep.StatedOf(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, "\n| `starling sweep --preset "+name+"`") {
			continue // without flags
		}
		_, command, found := strings.Cut(text, "\n| `starling sweep --preset "+name+" ")
		if !found {
			t.Errorf("%s has no command", name)
			continue
		}
		command, _, _ = strings.Cut(command, "`")
		if want := strings.Count(stated.Flag(), "--base"); strings.Count(command, "--base") != want || !strings.HasSuffix(" "+command, stated.Flag()) {
			t.Errorf("%s: %q, want %q once", name, command, stated.Flag())
		}
	}
	for _, want := range []string{
		"**Refused today:** 0 baseline (225,659,136 values), 4 FedShampoo (200,984,832 values). A round carries updates of 67,076,096 values at most.",
		"**Refused today:** every row (223,497,984 values).",
		"5.18 million documents: 3,900 hours of a core or 15 of an accelerator.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("not said: %s", want)
		}
	}
}
