package dataset

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Columns names the columns of a table, or the keys of JSON Lines, that hold
// the texts and the labels; "" means "text" and "label". Where any is given
// a .tsv or .txt file is a table too, whose first line names its columns.
// Names are matched exactly or, where none is so, without regard to case.
type Columns struct {
	Text, Label string

	// Others renames further columns: "completion=output,prompt=instruction", rising (Map).
	Others string

	// Unlabelled lets labels be missing, and leaves out those that are there: a file of
	// another name than .tsv, .csv and .jsonl holds one text a line. Documents keep the
	// places of their words, and are asked nothing.
	Unlabelled bool
}

// mapped are the names that columns may be given.
var mapped = []string{"text", "label", "labels", "user", "provider", "prompt", "completion", "messages", "tools", "words", "tags", "question", "answers", "key", "audio", "image"}

// Map reads what columns are called, as text=question,label=category: a name of mapped, then the file's. A column's name
// may have commas, but no "=" behind one.
func (c *Columns) Map(list string) error {
	given, err := assignments(list)
	if err != nil {
		return err
	}
	others, names := c.others(), map[string]string{}
	for _, p := range given {
		to, from := p[0], p[1]
		switch {
		case !slices.Contains(mapped, to):
			return fmt.Errorf("%q is no name that columns can have: want one of %s", to, strings.Join(mapped, ", "))
		case names[to] != "":
			return fmt.Errorf("%q is given twice", to)
		}
		names[to] = from
	}
	for to, from := range names {
		switch {
		case from == "":
			return fmt.Errorf("%q names no column", to+"=")
		case to == "text":
			c.Text = from
		case to == "label":
			c.Label = from
		default:
			others[to] = from
		}
	}
	var all []string
	for to, from := range others {
		all = append(all, to+"="+from)
	}
	slices.Sort(all)
	c.Others = strings.Join(all, ",")
	return nil
}

// String is what Map reads; "" if no name is given.
func (c Columns) String() string {
	var all []string
	for _, p := range [][2]string{{"text", c.Text}, {"label", c.Label}} {
		if p[1] != "" {
			all = append(all, p[0]+"="+p[1])
		}
	}
	if c.Others != "" {
		all = append(all, c.Others)
	}
	return strings.Join(all, ",")
}

// others are the columns that Others gives other names.
func (c Columns) others() map[string]string {
	given, _ := assignments(c.Others) // as Map wrote them; none of ""
	names := map[string]string{}
	for _, p := range given {
		names[p[0]] = p[1]
	}
	return names
}

// assignments reads NAME=COLUMN,NAME=COLUMN: a part without "=" belongs to the column before it.
func assignments(list string) (all [][2]string, err error) {
	for _, part := range strings.Split(list, ",") {
		to, from, ok := strings.Cut(part, "=")
		switch {
		case ok:
			all = append(all, [2]string{strings.TrimSpace(to), from})
		case len(all) == 0:
			return nil, fmt.Errorf("%q: want NAME=COLUMN, as text=question,label=category", part)
		default:
			all[len(all)-1][1] += "," + part
		}
	}
	return all, nil
}

// column is what a file calls the column of a name.
func (c Columns) column(name string) string {
	if c.Others == "" {
		return name
	}
	return cmp.Or(c.others()[name], name)
}

// renamed finds a record's values by the names that columns are given.
func (s *scanner) renamed(value func(string) json.RawMessage) func(string) json.RawMessage {
	if s.columns.Others == "" {
		return value
	}
	if s.others == nil { // once for all records
		s.others = s.columns.others()
	}
	return func(name string) json.RawMessage { return value(cmp.Or(s.others[name], name)) }
}

// rename gives a table's columns the names that they are given.
func (c Columns) rename(header []string) []string {
	for to, from := range c.others() {
		if at := find(header, from); at >= 0 {
			header[at] = to
		}
	}
	return header
}

// named reports whether texts' or labels' column is given.
func (c Columns) named() bool { return c.Text != "" || c.Label != "" }

func (c Columns) text() string  { return cmp.Or(c.Text, "text") }
func (c Columns) label() string { return cmp.Or(c.Label, "label") }
