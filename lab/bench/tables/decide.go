package main

import (
	_ "embed" // the questions
	"fmt"
	"strings"
)

// group is some of the questions that a reader decides by.
type group struct {
	Title     string     `yaml:"title"`
	Questions []question `yaml:"questions"`
}

// A question has an answer of words with a %s for each figure, which is read from the tables. So the page cannot give a
// figure that no table has, unless its words say where it is from.
type question struct {
	Asked   string     `yaml:"asked"`
	Answer  string     `yaml:"answer"`
	Figures []figureOf `yaml:"figures"`
	Section string     `yaml:"section"` // where the rest is
}

// A figureOf is one cell of a section's tables: the section, the text above the table, how its row begins, the first that
// does, and the column's heading. Without a column it is what follows the row's beginning on a line of plain text.
type figureOf [4]string

//go:embed decisions.yaml
var decisionsFile []byte

var decisions = read[[]group](decisionsFile)

// notMeasured stands where no table has the figure.
const notMeasured = "**not measured**"

//go:embed page.txt
var pageText string

// page is the document to decide by: the questions, and what is compared with what.
func page(results map[string]result) string {
	return strings.Replace(pageText, "QUESTIONS\n", questions(results), 1)
}

// questions are the tables of questions and answers.
func questions(results map[string]result) string {
	var b strings.Builder
	for _, group := range decisions {
		fmt.Fprintf(&b, "\n| %s | | table |\n| --- | --- | --- |\n", group.Title)
		for _, q := range group.Questions {
			cells := make([]any, len(q.Figures))
			for i, f := range q.Figures {
				cells[i] = notMeasured
				if v, ok := f.find(results[f[0]].table); ok {
					cells[i] = v
				}
			}
			title := titleOf(q.Section)
			fmt.Fprintf(&b, "| %s | %s | [%s](%s#%s) |\n", q.Asked, fmt.Sprintf(q.Answer, cells...), title, tablesName, anchor(title))
		}
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// find reads the figure from a section's tables.
func (f figureOf) find(tables string) (string, bool) {
	after, row, column := f[1], f[2], f[3]
	_, below, ok := strings.Cut(tables, after)
	if !ok {
		return "", false
	}
	var heading []string
	for line := range strings.Lines(below) {
		line = strings.TrimSpace(line)
		if column == "" {
			if rest, ok := strings.CutPrefix(line, row); ok {
				return rest, true
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			heading = nil
		case heading == nil:
			heading = cells
		case strings.HasPrefix(cells[0], "---"): // the line below a heading
		case begins(cells, row):
			for i, h := range heading {
				if h == column && i < len(cells) {
					return cells[i], true
				}
			}
		}
	}
	return "", false
}

// begins reports whether a row's first cells are those of prefix. The last of them may be longer where it says more than
// prefix, after a comma or a space; a bar at the end asks for the whole cell.
func begins(cells []string, prefix string) bool {
	want := strings.Split(prefix, "|")
	for i, w := range want {
		w = strings.TrimSpace(w)
		if w == "" && i == len(want)-1 {
			return true
		}
		if i >= len(cells) || cells[i] != w && (i < len(want)-1 || !strings.HasPrefix(cells[i], w)) {
			return false
		}
	}
	return true
}

func titleOf(section string) string {
	for _, s := range sections {
		if s.Name == section {
			return s.Title
		}
	}
	return ""
}

// anchor is how a heading is linked to.
func anchor(title string) string {
	return strings.ReplaceAll(strings.ToLower(strings.NewReplacer(",", "", ".", "").Replace(title)), " ", "-")
}
