package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/app/evaluation"
	"github.com/starling-fl/starling/internal/app/predict"
)

func TestEvaluateScoresAFile(t *testing.T) {
	dir := writeCheckpoint(t, 1) // always says grain
	file := filepath.Join(t.TempDir(), "test.csv")
	rows := "text,label\n" + strings.Repeat("a line,grain\n", 300) + strings.Repeat("another,ship\n", 100)
	if err := os.WriteFile(file, []byte(rows), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := runCLI(t, "evaluate", "--checkpoint", dir, "--rank", "all", "--json", file)
	if code != 0 {
		t.Fatal(stderr)
	}
	var r evaluation.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if r.Texts != 400 || len(r.Ranks) != 2 || r.Ranks[0].Accuracy != 0.75 {
		t.Fatalf("%+v", r)
	}
	// grain: precision 3/4, recall 1, F1 6/7; ship is never said; earn is not there.
	c := r.Ranks[1].Classes
	if c[1].Precision != 0.75 || c[1].Recall != 1 || math.Abs(c[1].F1-6.0/7) > 1e-12 || c[2].F1 != 0 || c[2].Texts != 100 || c[0].Texts != 0 {
		t.Errorf("classes %+v", c)
	}
	if math.Abs(r.Ranks[0].MacroF1-3.0/7) > 1e-12 {
		t.Errorf("macro-F1 %v, want the mean over the two classes that are there", r.Ranks[0].MacroF1)
	}
	if code, out, _ := runCLI(t, "evaluate", "--checkpoint", dir, file); code != 0 || !strings.Contains(out, "75.0 %") || !strings.Contains(out, "grain") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	other := filepath.Join(t.TempDir(), "other.tsv")
	if err := os.WriteFile(other, []byte("corn\ta line\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := runCLI(t, "evaluate", "--checkpoint", dir, other); code == 0 || !strings.Contains(stderr, "corn") || strings.Count(stderr, filepath.Base(other)) != 1 {
		t.Errorf("a label that the checkpoint lacks: %d %q", code, stderr)
	}
}

func TestPredictTop(t *testing.T) {
	dir := writeCheckpoint(t, 1) // logits 0, 5, 0
	out, code := predictWith(t, "wheat\n", "--checkpoint", dir, "--top", "2", "--json")
	var p predict.Prediction
	if err := json.Unmarshal([]byte(out), &p); err != nil || code != 0 {
		t.Fatal(out, err)
	}
	if len(p.Top) != 2 || p.Top[0].Label != "grain" || p.Top[1].Label != "earn" || math.Abs(p.Top[1].Probability-1/(2+math.Exp(5))) > 1e-6 {
		t.Errorf("%+v", p)
	}
	if out, code := predictWith(t, "wheat\n", "--checkpoint", dir, "--top", "1"); code != 0 || out != "grain\t0.9867\n" {
		t.Errorf("exit %d: %q", code, out)
	}
	if _, code := predictWith(t, "", "--checkpoint", dir, "--top", "4"); code != 2 {
		t.Errorf("more labels than there are: exit %d", code)
	}
}
