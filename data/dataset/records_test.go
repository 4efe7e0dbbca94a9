package dataset

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Editors and spreadsheets put a byte order mark first: it is no part of a label.
func TestByteOrderMark(t *testing.T) {
	for name, content := range map[string]string{
		"a.tsv": "acq\tbuys unit\n", "a.jsonl": `{"text":"buys unit","label":"acq"}`, "a.csv": "label,text\nacq,buys unit\n",
	} {
		s, err := Read(strings.NewReader("\ufeff"+content), name)
		if err != nil || !slices.Equal(s.Labels, []string{"acq"}) || s.Examples[0].Text != "buys unit" {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		for _, utf16 := range []string{"\xff\xfea\x00", "\xfe\xff\x00a"} {
			if _, err := Read(strings.NewReader(utf16), name); err == nil || !strings.Contains(err.Error(), "UTF-16") {
				t.Errorf("%s in UTF-16: %v", name, err)
			}
		}
	}
}

func TestCSV(t *testing.T) {
	want := []Example{{Text: "net, \"profit\"\nrose", Label: 1, Line: 2}, {Text: "buys unit", Label: 0, Line: 4, User: "u7", Provider: "p"}}
	for _, c := range []struct {
		name, content string
		columns       Columns
	}{
		{"a.csv", "text,label,user,provider\n\"net, \"\"profit\"\"\nrose\",earn,,\nbuys unit,acq,u7,p\n", Columns{}},
		{"a.csv", "Provider;USER;Label;Text\r\n;;earn;\"net, \"\"profit\"\"\nrose\"\r\np;u7;acq;buys unit\r\n", Columns{}},
		{"a.csv", "id,body,class,text,user,provider\n1,\"net, \"\"profit\"\"\nrose\",earn,x,,\n2,buys unit,acq,y,u7,p\n", Columns{Text: "body", Label: "class"}},
		{"a.tsv", "class\tbody\tuser\tprovider\nearn\t\"net, \"\"profit\"\"\nrose\"\t\t\nacq\tbuys unit\tu7\tp\n", Columns{Text: "body", Label: "class"}},
	} {
		got, err := c.columns.Read(strings.NewReader(c.content), c.name)
		if err != nil || !reflect.DeepEqual(got.Examples, want) || !slices.Equal(got.Labels, []string{"acq", "earn"}) {
			t.Errorf("%q: %+v, %v", c.content, got, err)
		}
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	fmt.Fprint(z, "text,label\nbuys unit,acq\n")
	z.Close()
	if s, err := Read(&zipped, "a.csv.gz"); err != nil || len(s.Examples) != 1 {
		t.Errorf("gzipped: %+v, %v", s, err)
	}
	keys, err := Columns{Text: "body", Label: "class"}.Read(strings.NewReader(`{"body":"a","class":3,"text":"no","label":"no"}`), "a.jsonl")
	if err != nil || keys.Examples[0].Text != "a" || keys.Labels[0] != "3" {
		t.Errorf("keys of JSON Lines: %+v, %v", keys, err)
	}
}

func TestCSVNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ content, want string }{
		{"body,class\nx,y\n", `a.csv:1: "text" is missing; there are "body", "class"`},
		{"text,class\nx,y\n", `a.csv:1: "label" is missing; there are "text", "class"`},
		{"text,label\nx,y\nz\n", "a.csv:3: wrong number of fields"},
		{"text,label\nx,\n", "a.csv:2: label is empty"},
		{"text,label\nx,y\n \"x\",y\n", "a.csv:3: bare"},
		{"text,label\nx,y\n\"x", "a.csv:3: "},
		{strings.Repeat("c,", 100) + "x\n", "..."},
	} {
		_, err := Read(strings.NewReader(c.content), "a.csv")
		line := new(LineError)
		if !errors.As(err, &line) || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 300 {
			t.Errorf("%.30q: error %v, want %q", c.content, err, c.want)
		}
	}
	missing := new(ColumnError)
	if _, err := Read(strings.NewReader("text,class\nx,y\n"), "a.csv"); !errors.As(err, &missing) || !missing.Label || missing.Column != "label" {
		t.Errorf("%+v", missing)
	}
}

// endless yields one byte for ever.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.read += len(p)
	return len(p), nil
}

// A quote that never closes does not take the whole file, or more than there is
// memory, for one record.
func TestCSVBoundsARecord(t *testing.T) {
	rest := &endless{}
	_, err := Read(io.MultiReader(strings.NewReader("text,label\n\""), rest), "a.csv")
	if err == nil || !strings.Contains(err.Error(), "is a quote not closed?") || rest.read > 4*MaxLine {
		t.Errorf("read %d bytes: %v", rest.read, err)
	}
}

func TestTexts(t *testing.T) {
	for _, c := range []struct {
		name, content string
		want          []string
	}{
		{"", "\ufeffone\n\ntwo\tthree\r\n", []string{"1 one", "2 ", "3 two\tthree"}},
		{"a.txt", "one\n\ntwo\tthree", []string{"1 one", "2 ", "3 two\tthree"}},
		{"a.tsv", "earn\tone\ntwo", []string{"1 one", "2 two"}},
		{"a.jsonl", "{\"text\":\"one\"}\n\n{\"text\":\"two\",\"label\":\"x\"}", []string{"1 one", "3 two"}},
		{"a.csv", "id,text\n1,one\n2,\"two\nlines\"\n3,\n", []string{"2 one", "3 two\nlines", "5 "}},
	} {
		var got []string
		err := Columns{}.Texts(strings.NewReader(c.content), c.name, func(line int, text string) error {
			got = append(got, fmt.Sprint(line, " ", text))
			return nil
		})
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
	for _, c := range []struct{ name, content, want string }{
		{"", "\x1f\x8b\x08", "is compressed: its name must end in .gz"},
		{"a.bin", "ok\na\x00b", "a.bin:2: not text"},
		{"a", "\xff\xd8\xff\xe0", "a:1: not text"},
		{"a.gz", "no", "a.gz: "},
		{"a.jsonl", `{"body":"x"}`, `a.jsonl:1: "text" is missing; there are "body"`},
		{"a.jsonl", `null`, "a.jsonl:1: not a JSON object"},
		{"a.csv", "one\ntwo\n", `a.csv:1: "text" is missing; there are "one"`},
	} {
		err := Columns{}.Texts(strings.NewReader(c.content), c.name, func(int, string) error { return nil })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.content, err, c.want)
		}
	}
}

// Texts without labels are read from every format, blank lines and labels left out; a
// job that has labels takes none of them.
func TestUnlabelled(t *testing.T) {
	c := Columns{Unlabelled: true}
	for _, text := range []string{`{"words": ["a", "b"], "boxes": [[0, 0, 1, 1], [2, 2, 3, 3]], "user": "ann"}`,
		`{"lines": [{"text": "a b", "box": [0, 0, 3, 3]}], "questions": [{"question": "x?", "answers": "a"}, {"question": "y?"}], "user": "ann"}`} {
		set, err := c.Read(strings.NewReader(text), "a.jsonl")
		if err != nil || len(set.Examples) != 1 || set.Form() != FormBare {
			t.Fatalf("%+v, %v", set, err)
		}
		if e := set.Examples[0]; e.Text != "a b" || len(e.Boxes) != 2 || e.User != "ann" || e.Question != "" || e.Answers != nil || e.Line != 1 {
			t.Errorf("a document alone is %+v", e)
		}
	}
	for name, text := range map[string]string{
		"a.txt":   "one\n\n two\n",
		"a.log":   "one\n two\n",
		"a.tsv":   "x\tone\ny\t two\n",
		"a.csv":   "label,text\nx,one\n,\" two\"\n",
		"b.csv":   "user,text\n,one\n, two\n",
		"a.jsonl": `{"text":"one"}` + "\n" + `{"text":" two","label":"x"}` + "\n",
	} {
		set, err := c.Read(strings.NewReader(text), name)
		if err != nil || len(set.Examples) != 2 || set.Labels != nil || set.Examples[0].Text != "one" || set.Examples[1].Text != " two" {
			t.Errorf("%s: %+v, %v", name, set, err)
			continue
		}
		if _, err := set.Relabel([]string{"x", "y"}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if all, err := set.Relabel(nil); err != nil || len(all.Examples) != 2 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if set, err := (Columns{Text: "body", Unlabelled: true}).Read(strings.NewReader("body\tkind\none\tx\n"), "a.tsv"); err != nil || set.Examples[0].Text != "one" {
		t.Errorf("%+v, %v", set, err)
	}
	for name, text := range map[string]string{"a.txt": "\n\n", "a.csv": "label,words\nx,one\n", "a.jsonl": "{}\n", "b.txt": "\xff\n"} {
		if _, err := c.Read(strings.NewReader(text), name); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestHostileGzip: a compressed file of some kilobytes that unpacks to more examples than
// fit is refused with what to do; the same plain, and one that fits, are read.
func TestHostileGzip(t *testing.T) {
	const lines, most = 100_000, 1 << 20
	text := strings.Repeat("a\tx\n", lines)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if bomb.Len() > 4096 {
		t.Fatalf("the bomb has %d bytes", bomb.Len())
	}
	packed := bomb.Bytes()
	for name, c := range map[string]Columns{"labelled": {}, "texts": {Unlabelled: true}} {
		line := new(LineError)
		if _, err := c.read(bytes.NewReader(packed), "bomb.tsv.gz", most); !errors.As(err, &line) || line.Line > most/256+1 || !strings.Contains(err.Error(), "without .gz") {
			t.Errorf("%s: %v", name, err)
		}
		if s, err := c.read(strings.NewReader(text), "bomb.tsv", most); err != nil || len(s.Examples) != lines {
			t.Errorf("%s, plain: %v", name, err)
		}
		if s, err := c.Read(bytes.NewReader(packed), "bomb.tsv.gz"); err != nil || len(s.Examples) != lines {
			t.Errorf("%s, with room: %v", name, err)
		}
	}
}
