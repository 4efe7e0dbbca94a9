package starling

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
	if len(decisions) < 12 || len(decisions) > 20 {
		t.Fatalf("%d decisions, want the 12 to 20 that the rest follows from", len(decisions))
	}
	part := regexp.MustCompile(`(?m)^- \*\*(\w+):\*\*`)
	replaced := regexp.MustCompile(`"([^"]+)"`)
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
		said, _, _ := strings.Cut(d, "- **Context:**")
		_, said, _ = strings.Cut(said, "replaces")
		for _, m := range replaced.FindAllStringSubmatch(said, -1) {
			if old := strings.Join(strings.Fields(m[1]), " "); strings.Contains(string(b), "\n### "+old+"\n") {
				t.Errorf("%q replaces %q, which is still there", title, old)
			}
		}
	}
}

// TestWordsAreExplained: anyone who opens a document can look its words up.
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

// TestDocumentsNameWhatExists: a link leads somewhere; a test, a name of one of our packages, a
// folder and a flag that a document speaks of is there.
func TestDocumentsNameWhatExists(t *testing.T) {
	out, err := exec.Command("git", "ls-files").Output()
	if err != nil {
		t.Skip("not a checkout: ", err)
	}
	packages, all, folders := map[string]string{}, "", map[string]bool{}
	var documents []string
	comments := regexp.MustCompile(`(?m)^\s*//.*$`)
	for _, name := range strings.Fields(string(out)) {
		for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
			folders[filepath.ToSlash(dir)] = true
		}
		folders[name] = true
		b, err := os.ReadFile(name)
		switch {
		case err != nil: // deleted and not committed
		case strings.HasSuffix(name, ".go"):
			source := comments.ReplaceAllString(string(b), "")
			packages[filepath.Base(filepath.Dir(name))] += source
			all += source
		case strings.HasSuffix(name, ".md") && !strings.Contains(name, "testdata") && name != "CHANGELOG.md":
			documents = append(documents, name)
		}
	}
	if len(documents) < 15 || len(packages) < 40 {
		t.Fatalf("%d documents, %d packages", len(documents), len(packages))
	}
	rooms, err := os.ReadFile("docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for dir := range mayImport {
		name := filepath.Base(strings.TrimSuffix(dir, "/..."))
		small := slices.Contains([]string{"asm", "neon", "schema"}, name) // what writes a file of the package above
		if !small && !strings.Contains(string(rooms), name+"/ ") && !strings.Contains(string(rooms), name+":") {
			t.Errorf("docs/ARCHITECTURE.md has no line for %s", dir)
		}
	}
	known := map[string]bool{} // by package and name
	word := func(in, name string) bool {
		key := in + "." + name
		is, asked := known[key]
		if !asked {
			is = regexp.MustCompile(`\b` + name + `\b`).MatchString(packages[in])
			known[key] = is
		}
		return is
	}
	tests := regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w+`)
	spans := regexp.MustCompile("`[^`\n]+`")
	names := regexp.MustCompile(`\b([a-z]\w*)\.([A-Z]\w*)\)?(?:\.(\w+))?`)
	flags := regexp.MustCompile(`(?:^|[^\w-])--([a-z][a-z-]+)`)
	folder := regexp.MustCompile(`^[a-z][\w-]*(/[\w-]+)+/?$`)
	links := regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	for _, document := range documents {
		b, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		lacks := func(what string) { t.Errorf("%s speaks of %s, which is nowhere", document, what) }
		for _, name := range tests.FindAllString(text, -1) {
			if !strings.Contains(all, "func "+name) {
				lacks(name)
			}
		}
		for _, m := range links.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(document), m[1])); err != nil && !strings.Contains(m[1], "://") {
				lacks("the file " + m[1])
			}
		}
		for _, span := range spans.FindAllString(text, -1) {
			span = strings.Trim(span, "`")
			for _, m := range names.FindAllStringSubmatch(span, -1) {
				_, ours := packages[m[1]]
				if ours && (!word(m[1], m[2]) || m[3] != "" && !word(m[1], m[3])) {
					lacks(m[0])
				}
			}
			for _, m := range flags.FindAllStringSubmatch(span, -1) {
				if !strings.Contains(all, `"`+m[1]+`"`) {
					lacks("--" + m[1])
				}
			}
			first, _, _ := strings.Cut(span, "/")
			if folder.MatchString(span) && folders[first] && !folders[strings.TrimSuffix(span, "/")] {
				lacks("the folder " + span)
			}
		}
	}
}

// The table of docs/INTEROP.md counts the checks that docs/results/interop.csv holds.
func TestInteropCountsItsChecks(t *testing.T) {
	checks, err := os.ReadFile("docs/results/interop.csv")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/INTEROP.md")
	if err != nil {
		t.Fatal(err)
	}
	made := strings.Count(string(checks), "\n") - 1
	passed := len(regexp.MustCompile(`(?m),ok$`).FindAll(checks, -1))
	if want := fmt.Sprintf("%d checks passed, %d failed.", passed, made-passed); !strings.Contains(string(page), want) {
		t.Errorf("docs/INTEROP.md does not say %q", want)
	}
	sum := 0
	for _, m := range regexp.MustCompile(`(?m)^\| .* \| (\d+) \| \d+ \| \S+ \|$`).FindAllStringSubmatch(string(page), -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	if sum != made {
		t.Errorf("docs/INTEROP.md counts %d checks, the file has %d", sum, made)
	}
}
