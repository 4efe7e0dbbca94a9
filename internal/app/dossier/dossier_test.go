package dossier

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
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

// FuzzDossier: whatever a checkpoint or a file says of itself, the text has the lines that the dossier
// writes and no other, no byte that a terminal obeys, and the page no element but its own.
func FuzzDossier(f *testing.F) {
	f.Add("a job", "<b>", "Δ")
	f.Add("a\nb\x1b[2A", "</td><td>", "\u202e\x00")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		build := func(a, b, c string) (text, page string) {
			d := Dossier{Title: "Audit", Verdict: []string{c}, Facts: []Fact{{"file", a}, {"job", b}}, Limits: []string{"all"},
				Tables: []Table{{Title: "By key", About: b, Words: true, Head: []string{"key", "of"}, Rows: [][]string{{a, c}, {b, a}}}}}
			var w, p strings.Builder
			if err := d.Text(&w); err != nil {
				t.Fatal(err)
			}
			if err := d.HTML(&p); err != nil {
				t.Fatal(err)
			}
			return w.String(), p.String()
		}
		text, page := build(a, b, c)
		plain, plainPage := build("x", b[:min(1, len(b))], "x")
		if strings.Count(text, "\n") != strings.Count(plain, "\n") {
			t.Errorf("%d lines, not %d: %q", strings.Count(text, "\n"), strings.Count(plain, "\n"), text)
		}
		for _, r := range text {
			if r != '\n' && unicode.IsControl(r) {
				t.Errorf("%q holds %U", text, r)
			}
		}
		if n, want := strings.Count(page, "<"), strings.Count(plainPage, "<"); n != want {
			t.Errorf("%d elements, not %d", n, want)
		}
	})
}
