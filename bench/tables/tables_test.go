package main

import (
	"os"
	"strings"
	"testing"
)

// The document is what this program writes of the results in it: whoever edits it
// by hand, or a section's words without running this, fails here.
func TestDocument(t *testing.T) {
	b, err := os.ReadFile("../../docs/BENCHMARKS.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := render(parse(string(b))); want != string(b) {
		t.Error("docs/BENCHMARKS.md is not what this program writes: go run ./bench/tables -render")
	}
	for name := range parse(string(b)) {
		if _, err := choose(name); err != nil {
			t.Error(err)
		}
	}
}

// What is written is read again to the byte, whatever a table holds.
func TestRoundTrip(t *testing.T) {
	want := map[string]result{}
	for _, s := range sections {
		want[s.name] = result{"2026-01-02, commit abc, a machine", "| a |\n| --- |\n| " + s.name + " |\n\nA line.\n\n| b |"}
	}
	text := render(want)
	got := parse(text)
	for name, r := range want {
		if got[name] != r {
			t.Errorf("%s: %q, %q written", name, got[name], r)
		}
	}
	if render(got) != text {
		t.Error("written again it differs")
	}
}

func TestBenchLine(t *testing.T) {
	name, m := benchLine("BenchmarkEpsilon/tight/q=0.01,z=1 \t 3\t 100437634 ns/op\t 38110000 cpu-ns/op\t 0.0000145 gap\n")
	if name != "Epsilon/tight/q=0.01,z=1" || m["cpu-ns/op"] != 38110000 || m["gap"] != 0.0000145 {
		t.Errorf("%s %v", name, m)
	}
	for _, line := range []string{"", "PASS", "ok  \tpkg\t1.2s", "BenchmarkX 3 a ns/op"} {
		if name, _ := benchLine(line); name != "" {
			t.Errorf("%q is %s", line, name)
		}
	}
	if p := pattern([]string{"A/x/y", "B"}); p != "^Benchmark(A|B)$" {
		t.Error(p)
	}
}

// A row that names a benchmark which is no more, or a metric it does not report,
// is an error and not an empty cell.
func TestMissingFigure(t *testing.T) {
	rows := []row{{"what", "./dp", "Gone", "cpu-ns/op", ""}}
	if _, err := goTable(rows, nil); err == nil || !strings.Contains(err.Error(), "Gone") {
		t.Error(err)
	}
}

func TestFigure(t *testing.T) {
	for want, v := range map[string]struct {
		v    float64
		unit string
	}{"1.23 s": {1.23e9, "ns/op"}, "38.1 ms": {38.11e6, "cpu-ns/op"}, "5.5 us": {5500, "ns/event"}, "2 ns": {2, "ns/op"}, "7.1 ms": {7.1, "cpu-ms"},
		"1.45e-05 gap": {0.0000145, "gap"}} {
		if got := figure(v.v, v.unit); got != want {
			t.Errorf("%v %s: %s", v.v, v.unit, got)
		}
	}
}
