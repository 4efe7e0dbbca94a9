package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/app/demo"
	"github.com/starling-fl/starling/internal/app/outcome"
	"github.com/starling-fl/starling/model"
)

// Pretraining, federation and evaluation of answers, end to end: devices train, the
// adapter changes, both scores are of the same questions.
func TestAnswerDemo(t *testing.T) {
	t.Parallel()
	base := filepath.Join(t.TempDir(), "base")
	if code, _, out := runCLI(t, "pretrain", "--architecture", "t5", "--generated", "--packed", "--steps", "12", "--batch", "4", "--out", base); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	code, out, stderr := runCLI(t, "demo", "--task", "answer", "--base", base, "--rounds", "2", "--clients", "4", "--vanish", "0", "--out", t.TempDir(), "--json", "--reproducible")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var r outcome.AnswerReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if r.Rounds != 2 || r.Devices != 4 || r.Questions < 100 || r.Before.Confidence <= 0 || len(r.Validation) != 8 {
		t.Errorf("%+v", r)
	}
	ck, err := model.ReadCheckpoint(r.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	if ck.Method.Task != model.TaskAnswer || len(ck.Labels) != 0 || ck.Method.Answer != demo.AnswerTokens || ck.Base.Config.T5.Boxes == 0 {
		t.Errorf("%+v", ck.CheckpointInfo)
	}
	trained := false
	for _, x := range ck.Adapter.Tensors() {
		trained = trained || strings.HasSuffix(x.Name, "lora_B.weight") && slices.ContainsFunc(x.Data, func(v float32) bool { return v != 0 })
	}
	if !trained {
		t.Error("no device trained")
	}
	for _, args := range [][]string{
		{"demo", "--task", "answer", "--head-only"}, {"demo", "--task", "answer", "--data", "x.csv"},
		{"pretrain", "--architecture", "t5", "--corpus", "x", "--out", base}, {"pretrain", "--architecture", "gpt", "--generated", "--out", base},
	} {
		if code, _, _ := runCLI(t, args...); code != 2 {
			t.Errorf("%q exits with %d", args, code)
		}
	}
}
