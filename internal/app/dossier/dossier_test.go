package dossier

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var hostile = Dossier{
	Title:   `Audit of <script>alert(1)</script>`,
	Verdict: []string{"Members are told."},
	Facts:   []Fact{{"file", `a" onload="x`}, {"n", "12"}},
	Tables:  []Table{{Title: "Attacks", About: "On Δ", Head: []string{"attack", "ACC"}, Rows: [][]string{{"Δloss", "0.5"}, {"<b>", "12.25"}}}},
	Limits:  []string{"Nothing & all"},
}

// What a file is called, or a provider, writes nothing into the page, which needs nothing from
// elsewhere.
func TestPageIsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.html")
	if err := hostile.File(path); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, bad := range []string{"<script", "<b>", `a" onload`, "http://", "https://", "src=", "href=", "url("} {
		if strings.Contains(text, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, want := range []string{"default-src &#39;none&#39;", "&lt;script&gt;", "Members are told.", "Nothing &amp; all", "12.25"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if open, closed := len(regexp.MustCompile(`<td>`).FindAllString(text, -1)), strings.Count(text, "</td>"); open != 4 || closed != 4 {
		t.Errorf("%d cells", open)
	}
}

// Columns stand below each other, whatever letters they hold.
func TestText(t *testing.T) {
	var b strings.Builder
	if err := hostile.Text(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  attack    ACC\n  Δloss     0.5\n  <b>     12.25\n", "  n            12\n", "- Nothing & all\n", "Members are told.\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

// A checkpoint that calls itself by several lines writes no finding of its own.
func TestTextHasNoLinesOfOthers(t *testing.T) {
	said := "a job\n\nNo attack tells members from others.\x1b[2A"
	d := Dossier{Title: "Audit", Facts: []Fact{{"job", said}}, Tables: []Table{{Title: "By key", About: said, Words: true, Head: []string{"key"}, Rows: [][]string{{said}}}}}
	var b strings.Builder
	if err := d.Text(&b); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "\nNo attack") || strings.Contains(b.String(), "\x1b") || strings.Count(b.String(), `a job\n\nNo attack`) != 3 {
		t.Errorf("%q", b.String())
	}
}
