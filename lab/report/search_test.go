package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/lab/sweep"
)

// A report of a search holds the chosen runs against each other, and says what was tried,
// what was chosen, and that its privacy is in no epsilon.
func TestReportOfASearch(t *testing.T) {
	dir := t.TempDir()
	p, err := sweep.Parse(strings.NewReader(`
vary: {method: {A: {adapter.rank_max: 4}, B: {adapter.rank_max: 8}}}
search: {privacy.clip_norm: [0.5, 2]}
compare: {method: B}
seeds: [1, 2, 3, 4, 5]
`), "")
	ok(t, err)
	ok(t, new(sweep.Lab).Keep(p, dir))
	for i, at := range p.Points {
		id, err := at.Settings.ID()
		ok(t, err)
		r := sweep.Record{ID: id, On: at.On, Settings: at.Settings, Engine: "program", Version: "v1", Base: strings.Repeat("ab", 32), Epsilon: 1,
			Validation: 0.5, Accuracy: 0.99}
		if (at.On["privacy.clip_norm"] == "2") == (at.On["method"] == "A") {
			r.Validation, r.Accuracy = 0.6, 0.7+0.001*float64(i)
		}
		b, err := json.Marshal(r)
		ok(t, err)
		folder := filepath.Join(dir, sweep.RunsFolder, id)
		ok(t, os.MkdirAll(folder, 0o755))
		ok(t, os.WriteFile(filepath.Join(folder, "result.json"), b, 0o600))
	}
	r, err := New(IntervalT, dir)
	ok(t, err)
	if len(r.Cells) != 2 || len(r.Pairs) != 1 || r.Pairs[0].N != 5 || r.Cells[0].Accuracy.N != 5 || r.Cells[0].Accuracy.Mean > 0.8 {
		t.Fatalf("cells %+v, pairs %+v", r.Cells, r.Pairs)
	}
	want := "privacy.clip_norm of 0.5 (chosen 5 times), 2 (chosen 5 times): chosen on validation within each seed; the search's privacy is not counted"
	if len(r.Searched) != 1 || r.Searched[0] != want {
		t.Errorf("%q", r.Searched)
	}
	var text strings.Builder
	ok(t, r.Print(&text, nil))
	page, err := r.html()
	ok(t, err)
	if !strings.Contains(text.String(), want) || !strings.Contains(string(page), "chosen 5 times") || !strings.Contains(string(r.latex()), "is not counted") {
		t.Error("a table does not say that it was searched")
	}
}
