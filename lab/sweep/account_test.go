package sweep

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/dp"
)

const searched = `
set: {population: 40, sampling_rate: 0.5, cohort: 0, examples: 2, rounds: 2, every: 0, adapter.rank_max: 2, training.steps: 1, training.batch: 2,
  adapter.sequence: 8, privacy.epsilon: 8, cohort.floor: 2, shard.floor: 2, shard.breach_bits: 0}
vary: {adapter.rank_min: [1, 2]}
search: {privacy.clip_norm: [0.5, 1], server.learning_rate: [1, 2]}
`

// Each seed draws a number of runs, the same at each place, and each run a combination; one
// that is drawn again is another run, and nothing but the seed decides.
func TestAccountedSearchDrawsRuns(t *testing.T) {
	var seeds []string
	for i := range 200 {
		seeds = append(seeds, fmt.Sprint(i+1))
	}
	text := searched + "seeds: [" + strings.Join(seeds, ", ") + "]\n"
	plan := func() *Plan {
		t.Helper()
		p, err := Parse(strings.NewReader(text), "")
		ok(t, err)
		ok(t, p.AccountSearch("poisson:3"))
		return p
	}
	p, again := plan(), plan()
	runs, picked, twice := map[string]int{}, map[string]int{}, 0
	for i, at := range p.Points {
		if fmt.Sprint(at) != fmt.Sprint(again.Points[i]) {
			t.Fatalf("the same plan drew %v and %v", at, again.Points[i])
		}
		runs[at.On["seed"]+"/"+at.On["adapter.rank_min"]]++
		picked[at.On["privacy.clip_norm"]+"/"+at.On["server.learning_rate"]]++
		if at.Settings.Trial > 0 {
			twice++
		}
		if at.Settings.AccountSearch != "poisson:3" {
			t.Fatal("a run that does not know its search")
		}
	}
	none := 0
	for _, seed := range seeds {
		if runs[seed+"/1"] != runs[seed+"/2"] {
			t.Errorf("seed %s: %d and %d runs", seed, runs[seed+"/1"], runs[seed+"/2"])
		}
		if runs[seed+"/1"] == 0 {
			none++
		}
	}
	// 400 x 3 runs, sd 35 of twice 200 Poisson draws, which pairs share; seeds are fixed.
	if n := len(p.Points); n < 1000 || n > 1400 || none == 0 || none > 30 || twice == 0 {
		t.Errorf("%d runs, %d seeds with none, %d drawn again", n, none, twice)
	}
	for _, n := range picked {
		if n < 180 || n > 420 {
			t.Errorf("picked: %v", picked)
		}
	}
	x := &Index{Axes: p.Axes, AccountSearch: p.Search}
	for _, at := range p.Points {
		x.Runs = append(x.Runs, Run{On: at.On})
	}
	if got := x.Empty(); len(got) != none {
		t.Errorf("%d seeds of which nothing is released, want %d", len(got), none)
	}
}

// A run of an accounted search says what the search costs, by the noise that it drew itself;
// the table has both epsilons.
func TestAccountedSearchIsCounted(t *testing.T) {
	if _, err := Parse(strings.NewReader(searched+"account_search: geometric:2\nseeds: [1]\n"), ""); err == nil || !strings.Contains(err.Error(), "account_search") {
		t.Fatalf("a setting outside of set: %v", err)
	}
	p, err := Parse(strings.NewReader(strings.Replace(searched, "set: {", "set: {account_search: 'geometric:2', ", 1)+"seeds: [1, 2, 3]\n"), "")
	ok(t, err)
	dir, l := t.TempDir(), lab(t)
	p.Points = p.Points[:1]
	ok(t, l.Keep(p, dir))
	r, _, err := l.Make(t.Context(), p.Points[0], filepath.Join(dir, RunsFolder))
	ok(t, err)
	if r.Search == nil || r.Search.Epsilon <= r.Epsilon || r.Search.Accountant != dp.RDP || r.Search.Delta != r.Delta {
		t.Fatalf("one run %v, the search %v", r.Epsilon, r.Search)
	}
	x, records, err := Read(dir)
	ok(t, err)
	if said := x.Counted(records); !strings.Contains(said, fmt.Sprintf("epsilon %.4g of the whole search beside %.4g of one run", r.Search.Epsilon, r.Epsilon)) {
		t.Error(said)
	}
	ok(t, KeepTable(dir))
	table, err := os.ReadFile(filepath.Join(dir, TableFile))
	if err != nil || !strings.Contains(string(table), "search:trial") || !strings.Contains(string(table), "search_epsilon") {
		t.Errorf("the table: %s, %v", table, err)
	}
	// Another trial of the same settings has other secrets and the same data.
	other := p.Points[0]
	other.Settings.Trial++
	b, _, err := l.Make(t.Context(), other, filepath.Join(dir, RunsFolder))
	ok(t, err)
	if b.ID == r.ID || b.SignalNorm == r.SignalNorm || b.Data != r.Data {
		t.Errorf("trials %s and %s: signal %v and %v, data %q and %q", r.ID, b.ID, r.SignalNorm, b.SignalNorm, r.Data, b.Data)
	}
}

func TestAccountedSearchRefuses(t *testing.T) {
	for _, c := range []struct{ text, by, says string }{
		{searched, "fixed:3", "account_search is accounting: \"fixed:3\""},
		{strings.Replace(searched, "search: {", "#", 1), "poisson:3", "no axis is listed under search"},
		{strings.Replace(searched, "privacy.clip_norm: [0.5, 1]", "privacy.epsilon: [4, 8]", 1), "poisson:3", "trials differ in privacy.epsilon"},
		{strings.Replace(searched, "privacy.clip_norm: [0.5, 1]", "rounds: [1, 2]", 1), "poisson:3", "trials differ in rounds"},
		{searched, "poisson:9000", "more than 10000 points"},
	} {
		p, err := Parse(strings.NewReader(c.text), "")
		ok(t, err)
		if err := p.AccountSearch(c.by); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.by, err, c.says)
		}
	}
}
