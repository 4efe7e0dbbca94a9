package starling

import (
	"os"
	"os/exec"
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
