package starling

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// longest is how many words a sentence has at most, and share the part of a document's sentences that may be longer.
const (
	longest = 35
	share   = 0.02
)

// Documents that people decide and operate by have short sentences.
func TestSentencesAreShort(t *testing.T) {
	for _, name := range []string{"README.md", "docs/OPERATE.md", "docs/MODELS.md", "docs/PRIVACY.md", "docs/RATIONALE.md",
		"docs/PROTOCOL.md", "docs/privacy/proofs.md", "docs/WASM.md", "docs/BANDWIDTH.md",
		"docs/ARCHITECTURE.md", "docs/SIMULATE.md", "docs/GLOSSARY.md", "SECURITY.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all := sentences(string(text))
		var long []string
		for _, s := range all {
			if len(strings.Fields(s)) > longest {
				long = append(long, s)
			}
		}
		if len(all) < 50 {
			t.Errorf("%s has %d sentences", name, len(all))
		}
		if float64(len(long)) > share*float64(len(all)) {
			t.Errorf("%s: %d of %d sentences have more than %d words:\n%s", name, len(long), len(all), longest, strings.Join(long, "\n"))
		}
	}
}

func TestSentencesAreFound(t *testing.T) {
	got := sentences("# A heading\n\nOne of `a.b` and\ntwo. Three?\n\n- four\n- (five.) six\n\n| seven | eight. nine |\n\n```sh\ncode. code\n```\n    code. code\n")
	want := []string{"One of `a.b` and two.", "Three?", "four", "(five.)", "six", "seven", "eight.", "nine"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%q, want %q", got, want)
	}
}

// A long document begins with links to its sections, all of them and in their order.
func TestContentsAreCurrent(t *testing.T) {
	heading := regexp.MustCompile(`(?m)^(##+) (.+)$`)
	odd := regexp.MustCompile(`[^a-z0-9 -]`)
	for name, level := range map[string]string{"docs/OPERATE.md": "##", "docs/MODELS.md": "##", "docs/SIMULATE.md": "##", "docs/RATIONALE.md": "###"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		fence := false
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "```") {
				fence = !fence
			}
			if m := heading.FindStringSubmatch(line); m != nil && m[1] == level && !fence {
				anchor := strings.ReplaceAll(odd.ReplaceAllString(strings.ToLower(m[2]), ""), " ", "-")
				want = append(want, "["+m[2]+"](#"+anchor+")")
			}
		}
		head, _, _ := strings.Cut(string(text), "\n## ")
		got := regexp.MustCompile(`\[[^\]]+\]\(#[^)]*\)`).FindAllString(strings.Join(strings.Fields(head), " "), -1)
		if len(want) < 5 || !slices.Equal(got, want) {
			t.Errorf("%s begins with\n%s\nits sections are\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

var (
	sentenceEnd = regexp.MustCompile(`([.?!]["*)]*)\s+`)
	bullet      = regexp.MustCompile(`^([-*]|\d+\.) `)
)

// sentences are those of a Markdown text: of paragraphs, entries of lists and cells of tables; code and headings are none.
func sentences(text string) (all []string) {
	var paragraph []string
	add := func(s string) {
		for part := range strings.SplitSeq(sentenceEnd.ReplaceAllString(strings.TrimSpace(s), "$1\x00"), "\x00") {
			if part != "" {
				all = append(all, part)
			}
		}
	}
	flush := func() {
		add(strings.Join(paragraph, " "))
		paragraph = nil
	}
	code := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			flush()
			code = !code
		case code:
		case strings.HasPrefix(trimmed, "|"):
			flush()
			for cell := range strings.SplitSeq(strings.Trim(trimmed, "|"), "|") {
				add(cell)
			}
		case trimmed == "" || trimmed[0] == '#' || strings.HasPrefix(line, "    ") && paragraph == nil:
			flush()
		default:
			if mark := bullet.FindString(trimmed); mark != "" {
				flush()
				trimmed = trimmed[len(mark):]
			}
			paragraph = append(paragraph, trimmed)
		}
	}
	flush()
	return all
}
