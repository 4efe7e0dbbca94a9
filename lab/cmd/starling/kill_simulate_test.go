package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A simulation that is killed, several times and anywhere, comes to the adapter
// that it would have come to: nothing of a round is kept but a whole one.
func TestSimulateSurvivesKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := build(t)
	command := func(out string) []string {
		return []string{"simulate", "--rounds", "5", "--cohort", "30", "--examples", "4", "--every", "0", "--validation", "40",
			"--set", "training.steps=1", "--set", "adapter.rank_max=2", "--out", out}
	}
	whole := filepath.Join(dir, "whole")
	if err := start(t, binary, command(whole)...).end(); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(dir, "broken")
	for i, after := range []string{`^ *1/5 `, `^ *2/5 `, `^ *4/5 `} {
		p := start(t, binary, command(broken)...)
		if i > 0 {
			p.await(t, `^going on `)
		}
		p.await(t, after)
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond) // anywhere in what follows
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		p.end()
	}
	if err := start(t, binary, command(broken)...).end(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(simulated(t, broken), simulated(t, whole)) {
		t.Error("killed three times: another adapter")
	}
}

// simulated reads the adapter that the only run below a folder came to.
func simulated(t *testing.T, out string) []byte {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(out, "*", "adapter.safetensors"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s holds %q: %v", out, found, err)
	}
	b, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return b
}
