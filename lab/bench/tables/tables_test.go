package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The documents are what this program writes of the results in them. An edit by hand fails here, as does a section's
// text that changed without running this.
func TestDocument(t *testing.T) {
	b, err := os.ReadFile("../../../docs/" + tablesName)
	if err != nil {
		t.Fatal(err)
	}
	opens, err := os.ReadFile("../../../docs/" + pageName)
	if err != nil {
		t.Fatal(err)
	}
	if render(parse(string(b))) != string(b) || page(parse(string(b))) != string(opens) {
		t.Error("docs/BENCHMARKS.md and its tables are not what this program writes: go run -C lab ./bench/tables -render")
	}
	if strings.Contains(string(opens), notMeasured) {
		t.Error("the page asks for a figure that no table has")
	}
	for _, said := range []string{"a twentieth hangs up, without gateways", "PyTorch in bf16 was not measured", "1,720 kB"} {
		if !strings.Contains(string(opens), said) {
			t.Errorf("the page does not say %q", said)
		}
	}
	results := parse(string(b))
	if n := strings.Count(string(b), "<!-- begin "); n != len(results) || n < 15 {
		t.Errorf("%d sections, %d with a sum", n, len(results))
	}
	for name, r := range results {
		if _, err := choose(name); err != nil {
			t.Error(err)
		}
		if r.hash() != r.sum {
			t.Errorf("%s is not what its command printed: its sum is %s, %s when it was written. Run it: make bench ONLY=%s", name, r.hash(), r.sum, name)
		}
		if r.unclean() && !r.found {
			t.Errorf("%s was made of a tree with changes", name)
		}
	}
}

// A figure, a commit or a load that is changed by hand no longer has its sum; writing the document again does not make it
// a new one.
func TestFiguresChangedByHand(t *testing.T) {
	all := map[string]result{"demo": printed("2026-01-02, commit abc; a machine, load 3.1", "| a |\n| --- |\n| 82.4 % |")}
	text := render(all)
	if r := parse(text)["demo"]; r.hash() != r.sum {
		t.Fatal("what was written has not its sum")
	}
	for old, changed := range map[string]string{"82.4": "92.4", "commit abc": "commit abd", "load 3.1": "load 0.1"} {
		edited := parse(render(parse(strings.ReplaceAll(text, old, changed))))["demo"]
		if edited.hash() == edited.sum || edited.sum != all["demo"].sum {
			t.Errorf("%q instead of %q passes", changed, old)
		}
	}
}

// The opening page says what the tables say, and where a table has no such cell it says that instead of anything.
func TestTheOpeningReadsTables(t *testing.T) {
	table := "Eight devices:\n\n| base | as | MB | s |\n| --- | --- | --- | --- |\n| a | - | 1 | 2 |\n| a | nf4, twice | 3 | 4 |\n\n" +
		"Nine devices:\n\n| base | s |\n| --- | --- |\n| a | 5 |\n| ab | 6 |\n\nledger: whole\n"
	for _, c := range []struct {
		after, row, column, want string
	}{
		{"", "a", "MB", "1"}, {"", "a | nf4", "s", "4"}, {"Nine", "a |", "s", "5"}, {"Nine", "ab", "s", "6"}, {"", "ledger: ", "", "whole"}, {"Nine", "", "s", "5"},
		{"", "b", "MB", ""}, {"", "a", "kB", ""}, {"Ten", "a", "MB", ""}, {"Nine", "a", "MB", ""}, {"", "a | nf4 |", "s", ""}, {"", "a | n | 3", "s", ""},
	} {
		got, ok := figureOf{"", c.after, c.row, c.column}.find(table)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%q below %q in %q: %q, %v, want %q", c.row, c.after, c.column, got, ok, c.want)
		}
	}
	table = "| what | ours |\n| --- | --- |\n| client: all five turns, native | 12.5 ms |"
	if page := page(map[string]result{"secagg": {table: table}}); !strings.Contains(page, "| 12.5 ms natively, "+notMeasured+" in WebAssembly") {
		t.Error(page)
	}
}

// A tree with changes makes no section.
func TestUncleanTreesAreRefused(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	t.Chdir(dir)
	if _, err := made(t.Context()); err == nil {
		t.Error("figures of no commit")
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "one")
	if of, err := made(t.Context()); err != nil || (result{made: of}).unclean() {
		t.Errorf("a clean tree: %q, %v", of, err)
	}
	if err := os.WriteFile("new.go", []byte("package a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), "text", ".", false); err == nil || !strings.Contains(err.Error(), "new.go") {
		t.Errorf("a tree with changes: %v", err)
	}
}

// What is written is read again to the byte, whatever a table holds.
func TestRoundTrip(t *testing.T) {
	want := map[string]result{}
	for _, s := range sections {
		want[s.Name] = printed("2026-01-02, commit abc, a machine", "| a |\n| --- |\n| "+s.Name+" |\n\nA line.\n\n| b |")
	}
	text := render(want)
	got := parse(text)
	for name, r := range want {
		if got[name] != r {
			t.Errorf("%s: %+v, %+v written", name, got[name], r)
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
