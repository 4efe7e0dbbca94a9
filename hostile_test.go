package starling

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestHostileTable: every attack in docs/PROTOCOL.md, section 12, names the tests
// that play it, and there are such tests.
func TestHostileTable(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("docs", "PROTOCOL.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## 12. What a hostile party can still do\n")
	if !found {
		t.Fatal("docs/PROTOCOL.md has no section 12 of that name")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	tests := declaredTests(t, "TestHostile")
	rows := 0
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || strings.HasPrefix(line, "| attack") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 3 {
			t.Errorf("a row of %d cells, want attack, defence, played by: %s", len(cells), line)
			continue
		}
		for name := range strings.SplitSeq(cells[2], ",") {
			if name = strings.TrimSpace(name); !tests[name] {
				t.Errorf("%q is played by %q: there is no such test", strings.TrimSpace(cells[0]), name)
			}
		}
	}
	if rows < 60 {
		t.Errorf("section 12 has %d attacks, fewer than 60: its tables moved", rows)
	}
}

// TestSecurityTable: every promise in SECURITY.md says what it holds if, and names tests
// that hold it, which there are.
func TestSecurityTable(t *testing.T) {
	text, err := os.ReadFile("SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "| against | promise | holds if | held by |\n")
	if !found {
		t.Fatal("SECURITY.md has no table of what is promised")
	}
	section, _, _ = strings.Cut(section, "\n\n")
	tests := declaredTests(t, "Test")
	rows := 0
	for line := range strings.Lines(section) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "| ---") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 4 || strings.TrimSpace(cells[2]) == "" {
			t.Errorf("a row of %d cells, want against, promise, holds if, held by: %s", len(cells), line)
			continue
		}
		for name := range strings.SplitSeq(cells[3], ",") {
			if name = strings.TrimSpace(name); !tests[name] {
				t.Errorf("%q is held by %q: there is no such test", strings.TrimSpace(cells[1]), name)
			}
		}
	}
	if rows < 8 {
		t.Errorf("SECURITY.md promises %d things: its table is not where it was", rows)
	}
}

// declaredTests are the names of all tests that begin so.
func declaredTests(t *testing.T, begin string) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (` + begin + `\w+)\(`)
	eachSource(t, func(path string) error {
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		b, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(b), -1) {
			tests[m[1]] = true
		}
		return err
	})
	return tests
}
