package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/app/evaluation"
	"github.com/starling-fl/starling/internal/app/predict"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
)

// Where an answer stands, learnt from files of receipts in a simulation, asked and
// scored from its checkpoint: a model that reads boxes finds the one that differs from
// others by its place alone, and documents longer than a sequence are read in parts.
func TestSpansFromFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var lines strings.Builder
	for n := range 120 {
		fmt.Fprintf(&lines, `{"width":100,"height":100,"provider":"p%d","fields":{"date":"%d May"},"lines":[`+
			`{"text":"taxi %d","box":[0,10,50,12]},{"text":"date %d May","box":[0,20,50,22]},{"text":"cash %d","box":[0,30,50,32]}]}`+"\n",
			n%40, 1+n%28, 100+n, 1+n%28, 300+n)
	}
	file := write("receipts.jsonl", lines.String())
	code, out, stderr := runCLI(t, "simulate", "--json", "--data", file, "--out", filepath.Join(dir, "runs"), "--rounds", "3", "--cohort", "30",
		"--examples", "4", "--every", "0", "--set", "task=span", "--set", "adapter.rank_min=2", "--set", "adapter.rank_max=2",
		"--set", "adapter.sequence=24", "--set", "adapter.also=[box_embeddings]", "--set", "training.steps=4")
	if code != 0 {
		t.Fatal(stderr)
	}
	var record struct {
		Accuracy float64
		MacroF1  float64 `json:"macro_f1"`
		ANLS     *float64
	}
	if err := json.Unmarshal([]byte(out), &record); err != nil {
		t.Fatal(err)
	}
	if record.ANLS == nil || *record.ANLS < 0.5 || record.MacroF1 != 0 {
		t.Errorf("%s", out)
	}

	// A checkpoint of an untrained head still answers: with a span of the document.
	b, err := base.Default()
	if err != nil {
		t.Fatal(err)
	}
	lay, err := model.NewLayout(b.Config, model.Method{Task: model.TaskSpan, RMax: 1, Alpha: 1, Answer: 4}, 0)
	if err != nil {
		t.Fatal(err)
	}
	checkpoint := filepath.Join(dir, "checkpoint")
	if err := model.WriteCheckpoint(checkpoint, &model.Checkpoint{CheckpointInfo: model.CheckpointInfo{Seq: 16}, Base: b, Adapter: model.NewAdapter(lay, 1)}); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("word ", 60) + "end"
	asked := write("asked.jsonl", `{"text":"`+long+`","question":"which?","answers":["end"]}`+"\n"+`{"text":"one two","question":"which?","answers":["two"]}`+"\n")
	code, out, stderr = runCLI(t, "predict", "--checkpoint", checkpoint, "--json", asked)
	rows := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || len(rows) != 2 {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	for i, row := range rows {
		var a predict.Answered
		if err := json.Unmarshal([]byte(row), &a); err != nil {
			t.Fatal(err)
		}
		if a.Line != i+1 || a.Answer == "" || !strings.Contains(long+" one two", a.Answer) || !(a.Probability > 0 && a.Probability <= 1) {
			t.Errorf("%s", row)
		}
	}
	code, out, stderr = runCLI(t, "evaluate", "--checkpoint", checkpoint, "--json", asked)
	var scored evaluation.AnswerReport
	if err := json.Unmarshal([]byte(out), &scored); err != nil || code != 0 || scored.Questions != 2 {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	merged := filepath.Join(dir, "merged")
	if code, _, stderr := runCLI(t, "export", "--checkpoint", checkpoint, "--rank", "1", "--format", "merged", "--out", merged); code != 0 {
		t.Fatal(stderr)
	}
	card, err := os.ReadFile(filepath.Join(merged, "README.md"))
	if err != nil || !strings.Contains(string(card), "question-answering") {
		t.Errorf("%v: %s", err, card)
	}
	if code, _, stderr := runCLI(t, "demo", "--data", file); code != 2 || !strings.Contains(stderr, "holds questions") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
