package starling

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// widest is how many columns a line of a document has at most; tables, code and
// addresses cannot be broken.
const widest = 120

// TestDocumentsAreNarrow: a document is read in a terminal and in a review as well.
func TestDocumentsAreNarrow(t *testing.T) {
	out, err := exec.Command("git", "ls-files", "*.md").Output()
	if err != nil {
		t.Skip("not a checkout: ", err)
	}
	files := strings.Fields(string(out))
	if len(files) < 10 {
		t.Fatalf("documents %v", files)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
			continue
		}
		code := false
		n := 0
		for line := range strings.Lines(string(b)) {
			n++
			trimmed := strings.TrimSpace(line)
			if strings.HasPrefix(trimmed, "```") {
				code = !code
			}
			whole := len(strings.Fields(trimmed)) < 2 // a lone address
			if code || whole || strings.HasPrefix(trimmed, "|") || strings.HasPrefix(line, "    ") || strings.HasPrefix(trimmed, "<!--") {
				continue
			}
			if w := utf8.RuneCountInString(strings.TrimRight(line, "\n")); w > widest {
				t.Errorf("%s:%d has %d columns, limit %d", name, n, w, widest)
			}
		}
	}
}

// TestDecisionsAreWhole: each decision says what asked for it and what follows, and
// since when it holds.
func TestDecisionsAreWhole(t *testing.T) {
	b, err := os.ReadFile("docs/RATIONALE.md")
	if err != nil {
		t.Fatal(err)
	}
	decisions := regexp.MustCompile(`(?m)^### `).Split(string(b), -1)[1:]
	if len(decisions) < 50 {
		t.Fatalf("%d decisions", len(decisions))
	}
	part := regexp.MustCompile(`(?m)^- \*\*(\w+):\*\*`)
	status := regexp.MustCompile(`(?m)^- \*\*Status:\*\* accepted, 20\d\d-\d\d-\d\d[.;]`)
	for _, d := range decisions {
		title, _, _ := strings.Cut(d, "\n")
		var parts []string
		for _, m := range part.FindAllStringSubmatch(d, -1) {
			parts = append(parts, m[1])
		}
		if got := strings.Join(parts, " "); got != "Status Context Decision Consequence" || !status.MatchString(d) {
			t.Errorf("%q has %s; want Status (accepted, with a date), Context, Decision, Consequence", title, got)
		}
	}
}

// TestWordsAreExplained: whoever opens a document can look its words up.
func TestWordsAreExplained(t *testing.T) {
	names, err := filepath.Glob("docs/*.md")
	if err != nil || len(names) < 10 {
		t.Fatal(names, err)
	}
	for _, name := range append(names, "README.md", "CONTRIBUTING.md", "SECURITY.md") {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		} else if name != "docs/GLOSSARY.md" && !strings.Contains(string(b), "GLOSSARY.md") {
			t.Errorf("%s does not link the glossary", name)
		}
	}
}
