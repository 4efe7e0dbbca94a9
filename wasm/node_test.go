//go:build !js

package wasm

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// lookNode finds node, or skips: where it is missing the browser's side is
// covered by anyone who has it.
func lookNode(t *testing.T) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed: the JavaScript host is not tested here")
	}
	return node
}

// TestNodeAgrees runs the toy program with lab/bench/wasm/run_program.mjs and in this
// process: equal state, bit for bit.
func TestNodeAgrees(t *testing.T) {
	node := lookNode(t)
	dir := t.TempDir()
	program, inputs := filepath.Join(dir, "toy.wasm"), filepath.Join(dir, "inputs.bin")
	check(t, os.WriteFile(program, toy().assemble(), 0o600))
	in := instance(t, load(t, toy(), Config{}))
	fillToy(t, in)
	f, err := os.Create(inputs)
	check(t, err)
	check(t, in.Snapshot(f), f.Close())
	out, err := exec.CommandContext(t.Context(), node, "../lab/bench/wasm/run_program.mjs", program, inputs, "--steps", "4", "--warm", "1", "--json").Output()
	check(t, err)
	var report struct {
		State   string               `json:"state_sha256"`
		Outputs map[string][]float32 `json:"outputs"`
		Steps   int                  `json:"steps"`
	}
	check(t, json.Unmarshal(out, &report))
	for range 5 {
		check(t, in.Step(t.Context()))
	}
	sum, err := in.StateSHA256()
	check(t, err)
	loss := make([]float32, 1)
	check(t, in.ReadFloat32("loss", loss))
	if got := fmt.Sprintf("%x", sum); got != report.State || report.Steps != 5 {
		t.Errorf("state after 5 steps %s, in node after %d: %s", got, report.Steps, report.State)
	}
	if len(report.Outputs["loss"]) != 1 || report.Outputs["loss"][0] != loss[0] {
		t.Errorf("loss %v, in node %v", loss, report.Outputs)
	}
}

// TestUnderJS runs this package's tests again, compiled for GOOS=js, on node's
// WebAssembly engine, with its worker threads as a page's helpers.
func TestUnderJS(t *testing.T) {
	lookNode(t)
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	check(t, err)
	wrapper := filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "go_js_wasm_exec")
	if _, err := os.Stat(wrapper); err != nil {
		t.Skipf("this Go has no %s", wrapper)
	}
	team, err := filepath.Abs("../lab/bench/wasm/team.mjs")
	check(t, err)
	cmd := exec.CommandContext(t.Context(), "go", "test", "-exec", wrapper, ".")
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0", "GOEXPERIMENT=",
		"NODE_OPTIONS=--import "+(&url.URL{Scheme: "file", Path: filepath.ToSlash(team)}).String(),
		"GOMAXPROCS=1") // that runtime has one thread, and stops at more
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
