// Package dossier writes an audit's findings for people: in a terminal, and as one page that needs
// nothing else and can be filed.
package dossier

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/starling-fl/starling/internal/leaf/durable"
	"github.com/starling-fl/starling/internal/leaf/terminal"
)

// A Dossier holds an audit's findings, methods and limits.
type Dossier struct {
	Title   string
	Verdict []string // sentences
	Facts   []Fact   // what was attacked, with what, by which program
	Tables  []Table
	Limits  []string // what it does not show, a sentence or two each
}

// Fact is a name and a value.
type Fact struct{ Name, Value string }

// Table has a row of heads and any number of others; the first column is text, the others are
// figures, or with Words text, too.
type Table struct {
	Title, About string
	Words        bool
	Head         []string
	Rows         [][]string
}

// Text writes it for a terminal. What a checkpoint or a file says of itself begins no line of
// its own.
func (d Dossier) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", d.Title)
	for _, f := range d.Facts {
		fmt.Fprintf(&b, "  %-12s %s\n", f.Name, terminal.Visible(f.Value, ""))
	}
	for _, t := range d.Tables {
		fmt.Fprintf(&b, "\n%s\n", t.Title)
		if t.About != "" {
			fmt.Fprintf(&b, "%s\n", terminal.Visible(t.About, "")) // it may name keys of a file
		}
		t.text(&b)
	}
	b.WriteString("\n")
	for _, v := range d.Verdict {
		fmt.Fprintf(&b, "%s\n", terminal.Visible(v, ""))
	}
	if len(d.Limits) > 0 {
		b.WriteString("\nWhat it does not show:\n")
	}
	for _, l := range d.Limits {
		fmt.Fprintf(&b, "- %s\n", l)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t Table) text(b *strings.Builder) {
	if len(t.Head) == 0 {
		return
	}
	width := make([]int, len(t.Head))
	rows := [][]string{t.Head}
	for _, row := range t.Rows {
		shown := make([]string, len(row))
		for k, cell := range row {
			shown[k] = terminal.Visible(cell, "")
		}
		rows = append(rows, shown)
	}
	for _, row := range rows {
		for k, cell := range row {
			width[k] = max(width[k], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		line := " "
		for k, cell := range row {
			pad := strings.Repeat(" ", width[k]-utf8.RuneCountInString(cell))
			if k > 0 {
				line += " "
			}
			if k == 0 || t.Words {
				line += " " + cell + pad
			} else {
				line += " " + pad + cell
			}
		}
		fmt.Fprintln(b, strings.TrimRight(line, " "))
	}
}

// File writes the page as a whole.
func (d Dossier) File(path string) error {
	var b strings.Builder
	if err := d.HTML(&b); err != nil {
		return err
	}
	return durable.Replace(path, []byte(b.String()), os.FileMode(0o644))
}
