package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/app/outcome"
	"github.com/starling-fl/starling/model"
)

// Pretraining of a decoder, federation over it and what is written before and after, end to
// end; the checkpoint writes behind a prompt.
func TestCausalDemo(t *testing.T) {
	base := filepath.Join(t.TempDir(), "base")
	if code, _, out := runCLI(t, "pretrain", "--architecture", "llama", "--generated", "--packed", "--hidden", "16", "--layers", "1", "--heads", "2",
		"--vocab", "600", "--steps", "4", "--batch", "4", "--out", base); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	file := filepath.Join(t.TempDir(), "talks.jsonl")
	var lines strings.Builder
	for i := range 120 {
		user := string(rune('a' + i%6))
		lines.WriteString(`{"prompt": "turn on the light ` + user + `", "completion": "{\"on\":true}", "user": "` + user + "\"}\n")
	}
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := runCLI(t, "demo", "--task", "causal", "--data", file, "--base", base, "--rounds", "2", "--devices", "4", "--vanish", "0",
		"--out", t.TempDir(), "--json", "--reproducible")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var r outcome.WrittenReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if r.Rounds != 2 || r.Devices != 4 || r.Before.Completions < 10 || r.After.Completions != r.Before.Completions || len(r.Validation) != 8 || r.BestPerplexity == nil {
		t.Errorf("%+v", r)
	}
	ck, err := model.ReadCheckpoint(r.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	if ck.Method.Task != model.TaskCausal || ck.Base.Config.ModelType != "llama" {
		t.Errorf("%+v", ck.CheckpointInfo)
	}
	if code, _, stderr := runCLI(t, "generate", "--checkpoint", r.Checkpoint, "--prompt", "turn on the light", "--max-tokens", "3"); code != 0 {
		t.Errorf("generate exits with %d: %s", code, stderr)
	}
	// A base writes without an adapter; an encoder does not.
	code, out, stderr = runCLI(t, "generate", "--base", base, "--prompt", "turn on the light", "--max-tokens", "3")
	if code != 0 {
		t.Errorf("generate of a base exits with %d: %s", code, stderr)
	}
	if _, trained, _ := runCLI(t, "generate", "--checkpoint", r.Checkpoint, "--rank", "0", "--prompt", "turn on the light", "--max-tokens", "3"); out != trained {
		t.Errorf("the base writes %q, a checkpoint over it at rank 0 %q", out, trained)
	}
	for _, args := range [][]string{
		{"generate", "--base", base, "--checkpoint", r.Checkpoint, "--prompt", "x"}, {"generate", "--base", "starling/default", "--prompt", "x"},
		{"demo", "--task", "causal", "--head-only"}, {"demo", "--task", "causal", "--data", file, "--record", "x", "--head-only"},
		{"pretrain", "--architecture", "llama", "--corpus", "x", "--out", base}, {"pretrain", "--architecture", "llama", "--generated", "--heads", "7", "--out", base},
	} {
		if code, _, stderr := runCLI(t, args...); code != 2 {
			t.Errorf("%q exits with %d: %s", args, code, stderr)
		}
	}
}
