package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/wasm"
)

// simulateTiny is a simulation of a moment, with more arguments.
func simulateTiny(out string, more ...string) []string {
	return append([]string{"simulate", "--json", "--rounds", "1", "--cohort", "30", "--examples", "2", "--every", "0", "--validation", "8",
		"--set", "adapter.rank_max=1", "--set", "adapter.sequence=12", "--set", "training.steps=1", "--out", out}, more...)
}

// ran is what a simulation says that tells its arithmetic.
type ran struct {
	ID       string `json:"id"`
	Settings struct {
		Job struct {
			Training struct{ Arithmetic string }
		}
	}
}

func simulatedBy(t *testing.T, args ...string) (r ran, stderr string) {
	t.Helper()
	code, out, stderr := runCLI(t, args...)
	if code != 0 {
		t.Fatal(stderr)
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	return r, stderr
}

// A simulation is fused where the processor has it and the job says nothing, and says so; a
// folder that was begun in exact arithmetic goes on in it.
func TestSimulateIsFused(t *testing.T) {
	if !wasm.Fuses() {
		t.Skip("this processor has no fused multiply-add")
	}
	out := t.TempDir()
	fused, said := simulatedBy(t, simulateTiny(out)...)
	if fused.Settings.Job.Training.Arithmetic != "fused" || !strings.Contains(said, "arithmetic: fused") {
		t.Errorf("%+v: %s", fused, said)
	}
	exact, said := simulatedBy(t, simulateTiny(out, "--set", "training.arithmetic=exact")...)
	if exact.ID == fused.ID || exact.Settings.Job.Training.Arithmetic != "exact" {
		t.Errorf("exact %+v, fused %+v: %s", exact, fused, said)
	}
	if err := os.RemoveAll(filepath.Join(out, fused.ID)); err != nil {
		t.Fatal(err)
	}
	again, said := simulatedBy(t, simulateTiny(out)...)
	if again.ID != exact.ID || !strings.Contains(said, "arithmetic: exact") || !strings.Contains(said, "simulated before") {
		t.Errorf("%+v, want the run of %s: %s", again, exact.ID, said)
	}
}

// On a processor without fused multiply-add simulations are exact, and who asks for fused is
// told, instead of waiting hundreds of times as long.
func TestWithoutFusedMultiplyAdd(t *testing.T) {
	t.Parallel()
	binary := build(t)
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(watchdog.Context(t), binary, args...)
		cmd.Env = append(os.Environ(), "GODEBUG=cpu.avx512f=off,cpu.fma=off,cpu.asimd=off")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run(simulateTiny(t.TempDir())...); err != nil || !strings.Contains(out, "arithmetic: exact, this processor") {
		t.Errorf("%v: %s", err, out)
	}
	for _, args := range [][]string{
		simulateTiny(t.TempDir(), "--set", "training.arithmetic=fused"),
		{"demo", "--arithmetic", "fused", "--out", t.TempDir()},
	} {
		if out, err := run(args...); err == nil || !strings.Contains(out, "exact runs on any") {
			t.Errorf("%s: %v: %s", args[0], err, out)
		}
	}
}
