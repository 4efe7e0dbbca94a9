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
	others := c.others()
	last := ""
	names := map[string]string{}
	for _, part := range strings.Split(list, ",") {
		to, from, ok := strings.Cut(part, "=")
		if to = strings.TrimSpace(to); !ok && last != "" {
			names[last] += "," + part
			continue
		}
		switch {
		case !ok:
			return fmt.Errorf("%q: want NAME=COLUMN, as text=question,label=category", part)
		case !slices.Contains(mapped, to):
			return fmt.Errorf("%q is no name that columns can have: want one of %s", to, strings.Join(mapped, ", "))
		case names[to] != "":
			return fmt.Errorf("%q is given twice", to)
		}
		last, names[to] = to, from
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
	names, last := map[string]string{}, ""
	for _, part := range strings.Split(c.Others, ",") {
		if to, from, ok := strings.Cut(part, "="); ok {
			last, names[to] = to, from
		} else if last != "" {
			names[last] += "," + part
		}
	}
	return names
}

// column is what a file calls the column of a name.
func (c Columns) column(name string) string {
	if c.Others == "" {
		return name
	}
	return cmp.Or(c.others()[name], name)
}

// renamed finds values by the names that columns are given.
func (c Columns) renamed(value func(string) json.RawMessage) func(string) json.RawMessage {
	if c.Others == "" {
		return value
	}
	others := c.others()
	return func(name string) json.RawMessage { return value(cmp.Or(others[name], name)) }
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
