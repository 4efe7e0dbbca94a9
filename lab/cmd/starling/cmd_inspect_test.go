package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/internal/app/inspection"
	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler"
)

// writeProgram compiles one SGD step of a linear model into a file.
func writeProgram(t *testing.T, host string, fused bool) string {
	t.Helper()
	program, err := compiler.Compile(func(g *graph.Graph) []*graph.Node {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 4, 32))
		y := graph.Parameter(g, "y", shapes.Make(dtypes.Float32, 4))
		w := graph.Parameter(g, "w", shapes.Make(dtypes.Float32, 32))
		b := graph.Parameter(g, "b", shapes.Make(dtypes.Float32, 32))
		off := graph.Sub(graph.DotGeneral(x, []int{1}, nil, graph.Add(w, b), []int{0}, nil), y)
		loss := graph.ReduceAllSum(graph.Mul(off, off))
		return []*graph.Node{loss, graph.Sub(w, graph.MulScalar(graph.Gradient(loss, w)[0], 0.01))}
	}, compiler.Spec{Name: "linear", Host: host, Fused: fused,
		Params:  []compiler.Param{{Name: "w", Role: compiler.State}, {Name: "b", Role: compiler.Frozen}},
		Outputs: []compiler.Output{{Name: "loss"}, {Name: "w.new", State: "w"}}})
	if err != nil {
		t.Fatal(err)
	}
	return saved(t, program)
}

func saved(t *testing.T, program []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program.wasm")
	if err := os.WriteFile(file, program, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func runInspect(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(context.Background(), append([]string{"inspect"}, args...), strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestInspect(t *testing.T) {
	file := writeProgram(t, compiler.HostWazero, false)
	code, text, errs := runInspect(file, "--segments")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, want := range []string{"name      linear", "sha256", "code shaped for wazero", "fixed", "inputs: 2 tensors, 528 B", "[4,32]",
		"state: 1 tensors, 128 B", "frozen: 1 tensors", "outputs: 1 tensors, 4 B", "s0",
		"products  2 declared, 5.12e-07 GFLOP, exact; computed here by " + wasm.Kernels()[0]} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	code, text, errs = runInspect(file, "--json")
	var r inspection.Report
	if err := json.Unmarshal([]byte(text), &r); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v: %s", code, err, errs)
	}
	if len(r.SHA256) != 64 || r.Manifest.State[0].Name != "w" || len(r.Segments) == 0 || r.Cost == 0 {
		t.Errorf("report %+v", r)
	}
}

// TestInspectRelaxed: a fused program for browsers, which nothing here compiles, is verified and described all the same.
func TestInspectRelaxed(t *testing.T) {
	code, text, errs := runInspect(writeProgram(t, compiler.HostV8, true))
	if code != 0 || !strings.Contains(text, "verified; it has relaxed SIMD") || !strings.Contains(text, "fused; computed by browsers") {
		t.Errorf("exit code %d: %s\n%s", code, errs, text)
	}
}

func TestInspectRefuses(t *testing.T) {
	file := writeProgram(t, compiler.HostWazero, false)
	program, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// A start section (id 8) at the front: a program has none.
	program = append(append(append([]byte(nil), program[:8]...), 8, 1, 0), program[8:]...)
	if err := os.WriteFile(file, program, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := runInspect(file); code != 1 || !strings.Contains(errs, "start section: a program has none") {
		t.Errorf("start section: exit code %d, %s", code, errs)
	}
	if code, _, _ := runInspect(filepath.Join(t.TempDir(), "none.wasm")); code != 2 {
		t.Errorf("missing file: exit code %d", code)
	}
	if code, _, _ := runInspect(); code != 2 {
		t.Errorf("no file: exit code %d", code)
	}
}
