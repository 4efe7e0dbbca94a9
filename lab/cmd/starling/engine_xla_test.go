//go:build xla && cgo

package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/app/engine"
	"github.com/starling-fl/starling/lab/sweep"
)

func plugin(t *testing.T) {
	t.Helper()
	if os.Getenv(engine.PluginVariable) == "" {
		t.Skipf("no PJRT plugin: set %s to the absolute path of one, or run make xla", engine.PluginVariable)
	}
}

// A simulation on XLA comes to what the program comes to, as nearly as rounding lets
// it, says what it was made with, and is not taken for one of the program's.
func TestXLASimulates(t *testing.T) {
	plugin(t)
	settings := []string{"simulate", "--rounds", "3", "--cohort", "30", "--examples", "6", "--every", "0", "--validation", "60",
		"--set", "training.steps=2", "--set", "adapter.rank_max=1", "--json"}
	simulated := func(more ...string) sweep.Record {
		t.Helper()
		code, out, stderr := runCLI(t, append(settings, more...)...)
		if code != 0 {
			t.Fatal(stderr)
		}
		var r sweep.Record
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	dir := t.TempDir()
	fast := simulated("--engine", "xla", "--out", dir)
	plain := simulated("--out", t.TempDir())
	if !strings.HasPrefix(fast.Engine, "xla ") || plain.Engine != engine.Program {
		t.Errorf("engines %q and %q", fast.Engine, plain.Engine)
	}
	if math.Abs(fast.SignalNorm/plain.SignalNorm-1) > 1e-3 || math.Abs(fast.Accuracy-plain.Accuracy) > 0.02 {
		t.Errorf("signal %v and accuracy %v, the program has %v and %v", fast.SignalNorm, fast.Accuracy, plain.SignalNorm, plain.Accuracy)
	}
	if code, _, stderr := runCLI(t, append(settings, "--out", dir)...); code == 0 || !strings.Contains(stderr, "engine: xla") {
		t.Errorf("the program in the folder of XLA's run: exit %d, %s", code, stderr)
	}
	// Several clients' steps at once, which is another engine.
	together := simulated("--engine", "xla", "--together", "8", "--out", t.TempDir())
	if together.Engine == fast.Engine || math.Abs(together.SignalNorm/plain.SignalNorm-1) > 1e-3 || math.Abs(together.Accuracy-plain.Accuracy) > 0.02 {
		t.Errorf("8 clients together: engine %q, signal %v and accuracy %v", together.Engine, together.SignalNorm, together.Accuracy)
	}
	// Through the queue, with a worker of our own.
	if queued := simulated("--engine", "xla", "--out", t.TempDir(), "--nats-listen", "127.0.0.1:0"); queued.SignalNorm != fast.SignalNorm {
		t.Errorf("through the queue the signal is %v, was %v", queued.SignalNorm, fast.SignalNorm)
	}
}

func TestXLAEvaluatesPredictsAndPretrains(t *testing.T) {
	plugin(t)
	dir := writeCheckpoint(t, 1)
	file := filepath.Join(t.TempDir(), "test.csv")
	if err := os.WriteFile(file, []byte("text,label\na line,grain\nanother,ship\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := runCLI(t, "evaluate", "--engine", "xla", "--checkpoint", dir, "--json", file)
	if code != 0 || !strings.Contains(out, `"engine":"xla `) || !strings.Contains(out, `"accuracy":0.5,`) {
		t.Errorf("evaluate: exit %d, %s%s", code, out, stderr)
	}
	if out, code := predictWith(t, "wheat\n", "--engine", "xla", "--checkpoint", dir, "--top", "1"); code != 0 || out != "grain\t0.9867\n" {
		t.Errorf("predict: %d %q", code, out)
	}
	made := filepath.Join(t.TempDir(), "base")
	corpus := filepath.Join(t.TempDir(), "corpus.txt")
	if err := os.WriteFile(corpus, []byte(strings.Repeat("the quick brown fox jumps over the lazy dog\n", 64)), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, stderr = runCLI(t, "pretrain", "--engine", "xla", "--corpus", corpus, "--out", made, "--hidden", "16", "--layers", "1", "--heads", "2",
		"--vocab", "64", "--seq", "12", "--batch", "4", "--steps", "6", "--json")
	if code != 0 || !strings.Contains(out, `"engine":"xla `) {
		t.Errorf("pretrain: exit %d, %s%s", code, out, stderr)
	}
}
