package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/app/evaluation"
)

// A fleet learns which words of a text are of which kind, and what it releases labels
// the words of another.
func TestDemoOnTags(t *testing.T) {
	dir := t.TempDir()
	var lines strings.Builder
	for n := range 160 {
		fmt.Fprintf(&lines, `{"words":["the","%s","sold","%d","tons"],"tags":["O","WHO","O","N","O"]}`+"\n",
			[]string{"company", "ship", "bank"}[n%3], 100+7*n)
	}
	file := filepath.Join(dir, "tagged.jsonl")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	starling := func(stdin string, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := run(context.Background(), args, strings.NewReader(stdin), &out, &errs); code != 0 {
			t.Fatalf("starling %v: %s", args, errs.String())
		}
		return out.String()
	}
	var demo struct{ Checkpoint string }
	if err := json.Unmarshal([]byte(starling("", "demo", "--data", file, "--clients", "4", "--vanish", "0", "--rounds", "6", "--reproducible",
		"--out", filepath.Join(dir, "run"), "--json")), &demo); err != nil {
		t.Fatal(err)
	}
	var scored evaluation.Report
	if err := json.Unmarshal([]byte(starling("", "evaluate", "--checkpoint", demo.Checkpoint, "--json", file)), &scored); err != nil {
		t.Fatal(err)
	}
	// Always saying O is right for three words of five, and finds none.
	if s := scored.Ranks[0]; s.TokenF1 == nil || s.Accuracy < 0.9 || *s.TokenF1 < 0.8 {
		t.Errorf("%+v", scored)
	}
	if said := strings.TrimSpace(starling("the ship sold 450 tons\n", "predict", "--checkpoint", demo.Checkpoint)); said != "O WHO O N O" {
		t.Errorf("%q", said)
	}
}
