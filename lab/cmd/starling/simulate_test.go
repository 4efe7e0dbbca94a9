package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A simulation packs the base where the job asks for it, as a coordinator does.
func TestSimulatePacksTheBase(t *testing.T) {
	checkpoint, _ := exportedCheckpoint(t)
	merged := filepath.Join(t.TempDir(), "merged") // of plain floats
	if code, _, stderr := runCLI(t, "export", "--checkpoint", checkpoint, "--format", "merged", "--out", merged); code != 0 {
		t.Fatal(stderr)
	}
	norms := map[string]float64{}
	for _, format := range []string{"", "nf4"} {
		code, out, stderr := runCLI(t, "simulate", "--json", "--base", merged, "--rounds", "1", "--cohort", "30", "--examples", "2", "--every", "0",
			"--validation", "8", "--set", "adapter.rank_max=1", "--set", "adapter.sequence=12", "--set", "training.steps=1", "--set", "base_format="+format,
			"--out", t.TempDir())
		if code != 0 {
			t.Fatalf("%q: %s", format, stderr)
		}
		var r struct {
			Signal float64 `json:"signal_norm"`
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		norms[format] = r.Signal
	}
	if norms["nf4"] == 0 || norms["nf4"] == norms[""] {
		t.Errorf("signals %v: nothing was packed", norms)
	}
}

// A setting that no job has is told before anything else is, and leaves no folder.
func TestSimulateChecksFirst(t *testing.T) {
	out := filepath.Join(t.TempDir(), "runs")
	code, _, stderr := runCLI(t, "simulate", "--set", "training.stpes=1", "--out", out)
	if code == 0 || strings.Contains(stderr, "registered clients") || !strings.Contains(stderr, "stpes") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("%s is there: %v", out, err)
	}
}
