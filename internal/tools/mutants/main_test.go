package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// Every record fits the program as it stands: what changes a line that is listed here
// changes the record with it.
func TestRecordsApply(t *testing.T) {
	var out strings.Builder
	if err := run(watchdog.Context(t), []string{"-root", "../../..", "-list"}, &out); err != nil {
		t.Fatal(err)
	}
	all, err := records("../../..", "")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 150 {
		t.Errorf("%d records, want 150 or more", len(all))
	}
	for _, r := range all {
		if dir := filepath.Join("..", "..", "..", filepath.FromSlash(strings.TrimSuffix(r.Test.Package, "/..."))); !isDir(dir) {
			t.Errorf("%s: no package %s", r.Name, r.Test.Package)
		}
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// The parts of a run are all of it, and nothing twice.
func TestParts(t *testing.T) {
	all, err := records("../../..", "dp.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, part := range []string{"1/3", "2/3", "3/3"} {
		some, err := divide(all, part)
		if err != nil || len(some) < len(all)/3 {
			t.Fatalf("%s: %d of %d, %v", part, len(some), len(all), err)
		}
		for _, r := range some {
			seen[r.File+r.Name]++
		}
	}
	for name, n := range seen {
		if n != 1 {
			t.Errorf("%s is in %d parts", name, n)
		}
	}
	if len(seen) != len(all) {
		t.Errorf("%d of %d are in a part", len(seen), len(all))
	}
	for _, part := range []string{"0/3", "4/3", "1", "x/2", "1/0", "/"} {
		if _, err := divide(all, part); err == nil {
			t.Errorf("part %q was taken", part)
		}
	}
	if _, err := records("..", "no such file"); err == nil {
		t.Error("nothing is a run")
	}
}

// What is alive, or no longer applies, is an error that names it.
func TestVerdicts(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module example.com/m\n\ngo 1.25\n",
		"p/p.go":      "package p\n\nfunc One() int { return 1 }\n\nfunc Two() int { return 2 }\n",
		"p/p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif One() != 1 {\n\t\tt.Error(\"no\")\n\t}\n}\n",
		"internal/tools/mutants/p.txt": "file: p/p.go\ntest: ./p TestOne\n\nname: one is two\n-return 1\n+return 2\n\nname: two is one\n-return 2\n+return 1\n\n" +
			"name: three\n-return 3\n+return 1\n",
	} {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	err := run(watchdog.Context(t), []string{"-root", root}, &out)
	if err == nil || !strings.Contains(err.Error(), "two is one: alive") || !strings.Contains(err.Error(), "three: no longer applies") || strings.Contains(err.Error(), "one is two") {
		t.Errorf("%v\n%s", err, &out)
	}
	if !strings.Contains(out.String(), "1 of 3 killed, 1 alive, 1 no longer apply, 0 errors") {
		t.Error(out.String())
	}
	out.Reset()
	if err := run(watchdog.Context(t), []string{"-root", root, "-only", "one is two"}, &out); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
}
