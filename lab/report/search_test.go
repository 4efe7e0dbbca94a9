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
	made(t, dir, p, func(i int, r *sweep.Record) {
		r.Validation, r.Accuracy = 0.5, 0.99
		if (r.On["privacy.clip_norm"] == "2") == (r.On["method"] == "A") {
			r.Validation, r.Accuracy = 0.6, 0.7+0.001*float64(i)
		}
	})
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

// made writes a grid's folder, its results as figures gives them by their place in the plan.
func made(t *testing.T, dir string, p *sweep.Plan, figures func(i int, r *sweep.Record)) {
	t.Helper()
	ok(t, new(sweep.Lab).Keep(p, dir))
	for i, at := range p.Points {
		id, err := at.Settings.ID()
		ok(t, err)
		r := sweep.Record{ID: id, On: at.On, Settings: at.Settings, Engine: "program", Version: "v1", Base: strings.Repeat("ab", 32), Epsilon: 1}
		figures(i, &r)
		b, err := json.Marshal(r)
		ok(t, err)
		folder := filepath.Join(dir, sweep.RunsFolder, id)
		ok(t, os.MkdirAll(folder, 0o755))
		ok(t, os.WriteFile(filepath.Join(folder, "result.json"), b, 0o600))
	}
}

// Answers have no classes: they are compared by ANLS, beside which exact matches stand.
func TestReportOfAnswers(t *testing.T) {
	dir := t.TempDir()
	p, err := sweep.Parse(strings.NewReader(`
vary: {privacy.epsilon: [1, 2]}
compare: {privacy.epsilon: 1}
seeds: [1, 2, 3, 4, 5]
`), "")
	ok(t, err)
	made(t, dir, p, func(i int, r *sweep.Record) {
		anls := 0.3 + 0.001*float64(i*i%7)
		if r.On["privacy.epsilon"] == "2" {
			anls += 0.1
		}
		r.Accuracy, r.ANLS = 0.25, &anls
	})
	r, err := New(IntervalT, dir)
	ok(t, err)
	if len(r.Pairs) != 1 || r.Pairs[0].Mean < 0.08 || r.Pairs[0].P == nil {
		t.Fatalf("pairs %+v", r.Pairs)
	}
	var text strings.Builder
	ok(t, r.Print(&text, nil))
	page, err := r.html()
	ok(t, err)
	for name, shown := range map[string]string{"text": text.String(), "page": string(page), "LaTeX": string(r.latex())} {
		if !strings.Contains(shown, "ANLS") || !strings.Contains(shown, "exact match") || !strings.Contains(shown, "25.0") || strings.Contains(shown, "macro-F1") {
			t.Errorf("%s: %s", name, shown)
		}
	}
	if !strings.Contains(string(page), "ANLS against privacy.epsilon") && !strings.Contains(string(page), "ANLS minus that") {
		t.Error("the page names accuracy for what is ANLS")
	}
}
