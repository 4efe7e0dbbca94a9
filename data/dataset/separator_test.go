package dataset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Columns are separated by whatever they are found under, not by what merely is in a
// header first.
func TestSeparator(t *testing.T) {
	for _, c := range []struct {
		content string
		columns Columns
	}{
		{"text;label;note, free\nbuys unit;acq;1,5\n", Columns{}},
		{"note, free;Label;Text\n1,5;acq;buys unit\n", Columns{}},
		{"\"note, free\";\"label\";\"text\"\n;acq;\"buys unit\"\n", Columns{}},
		{"text\tlabel\tnote, free; or not\nbuys unit\tacq\t1,5\n", Columns{}},
		{"text,label,\"a;b;c;d\"\nbuys unit,acq,\n", Columns{}},
		{"text,label,a;b;c;d;e\nbuys unit,acq,\n", Columns{}},
		{"body, long;class\nbuys unit;acq\n", Columns{Text: "body, long", Label: "class"}},
		{"\ufefftext;label;note, free\r\nbuys unit;acq;1,5\r\n", Columns{}},
		{"text;label;\"note, \nfree\"\nbuys unit;acq;1,5\n", Columns{}},
		{"text;label;a,text\nbuys unit;acq;1,5\n", Columns{}},
		{"text;user;a,text\nbuys unit;u;1,5\n", Columns{Unlabelled: true}},
		{"long,er;text\nx;buys unit\n", Columns{Unlabelled: true}},
	} {
		s, err := c.columns.Read(strings.NewReader(c.content), "a.csv")
		if err != nil || s.Examples[0].Text != "buys unit" || !c.columns.Unlabelled && !slices.Equal(s.Labels, []string{"acq"}) {
			t.Errorf("%q: %+v, %v", c.content, s, err)
		}
		var texts []string
		err = c.columns.Texts(strings.NewReader(c.content), "a.csv", func(_ int, text string) error {
			texts = append(texts, text)
			return nil
		})
		if err != nil || !slices.Equal(texts, []string{"buys unit"}) {
			t.Errorf("%q: texts %q, %v", c.content, texts, err)
		}
	}
}

// A table of pixels is found under any of them, and its rows are read under the same.
func TestSeparatorOfPixels(t *testing.T) {
	for _, sep := range []string{",", ";", "\t"} {
		header, row := []string{"label"}, []string{"seven"}
		for i := range 16 {
			name := fmt.Sprint("x", i)
			if sep != "," {
				name = fmt.Sprint("x,", i)
			}
			header, row = append(header, name), append(row, fmt.Sprint(16*i))
		}
		s, err := Read(strings.NewReader(strings.Join(header, sep)+"\n"+strings.Join(row, sep)+"\n"), "a.csv")
		if err != nil || len(s.Examples) != 1 || s.Examples[0].Image == nil || len(s.Examples[0].Image.Pixels) != 16 {
			t.Errorf("%q: %+v, %v", sep, s, err)
		}
	}
}

// Where a column is missing, it says what separated the ones that there are.
func TestSeparatorIsNamed(t *testing.T) {
	for _, c := range []struct {
		name, content string
		columns       Columns
		want          string
	}{
		{"a.csv", "text|label\nx|y\n", Columns{}, `a.csv:1: "text" is missing; there are "text|label": columns are separated by commas, semicolons or tabs`},
		{"a.csv", "body;class;note, free\nx;y;z\n", Columns{}, `there are "body", "class", "note, free", separated by semicolons`},
		{"a.csv", "text,class\nx,y\n", Columns{}, `"label" is missing; there are "text", "class", separated by commas`},
		{"a.tsv", "body,class\nx,y\n", Columns{Text: "body"}, `"body" is missing; there are "body,class", separated by tabs`},
		{"a.csv", "text;label\nx;y\nz;y;1,5\n", Columns{}, "a.csv:3: wrong number of fields: 3, the header has 2, separated by semicolons"},
		{"a.jsonl", `{"body":"x"}`, Columns{}, `"text" is missing; there are "body"`},
	} {
		_, err := c.columns.Read(strings.NewReader(c.content), c.name)
		if line := new(LineError); !errors.As(err, &line) || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %s", c.content, err, c.want)
		}
	}
}

// A header that ends beyond what is looked at is read all the same, and nothing is taken
// for a column that was cut off there.
func TestSeparatorOfALongHeader(t *testing.T) {
	content := "text;label;" + strings.Repeat("x, ", 30_000) + "\nbuys unit;acq;\n"
	if _, err := Read(strings.NewReader(content), "a.csv"); err == nil || !strings.Contains(err.Error(), "separated by commas") {
		t.Errorf("error %v", err)
	}
	content = "text,label," + strings.Repeat("x", 70_000) + "\nbuys unit,acq,\n"
	if s, err := Read(strings.NewReader(content), "a.csv"); err != nil || s.Examples[0].Text != "buys unit" {
		t.Errorf("%+v, %v", s, err)
	}
}
