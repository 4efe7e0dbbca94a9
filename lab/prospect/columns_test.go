package prospect

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
)

// rows are 40 records of a table with other columns than text and label.
func rows(head, format string) string {
	var b strings.Builder
	b.WriteString(head)
	for i := range 40 {
		fmt.Fprintf(&b, format, i, []string{"hotel", "train"}[i%2])
	}
	return b.String()
}

// Columns are found by their names or by what they hold, whatever separates them.
func TestColumnsAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want dataset.Columns
	}{
		"named.csv":  {rows("id,text,category\n", "%[1]d,I need number %[1]d soon,%[2]s\n"), dataset.Columns{Text: "text", Label: "category"}},
		"german.csv": {rows("Nr;Anliegen;Art\n", "%[1]d;Ich brauche Nummer %[1]d bald;%[2]s\n"), dataset.Columns{Text: "Anliegen", Label: "Art"}},
		"bom.csv":    {rows("\xef\xbb\xbfArt,Anliegen\n", "%[2]s,\"Ich, der %[1]d., brauche ihn\"\n"), dataset.Columns{Text: "Anliegen", Label: "Art"}},
		"tab.tsv":    {rows("kind\twords of it\n", "%[2]s\tI need number %[1]d soon\n"), dataset.Columns{Text: "words of it", Label: "kind"}},
		"keys.jsonl": {rows("", `{"body":"I need number %[1]d soon","n":3,"intent":"%[2]s"}`+"\n"), dataset.Columns{Text: "body", Label: "intent"}},
		"usual.csv":  {rows("text,label\n", "I need number %[1]d soon,%[2]s\n"), dataset.Columns{}},
		"usual.tsv":  {rows("", "%[2]s\tI need number %[1]d soon\n"), dataset.Columns{}},
		// The usual names, but swapped: what they hold is looked at.
		"swapped.csv": {rows("label,text\n", "I need number %[1]d soon,%[2]s\n"), dataset.Columns{Text: "label", Label: "text"}},
	} {
		for _, packed := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), name)
			data := []byte(c.text)
			if packed {
				path += ".gz"
				var b bytes.Buffer
				z := gzip.NewWriter(&b)
				_, _ = z.Write(data) // into memory
				_ = z.Close()
				data = b.Bytes()
			}
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			set, columns, err := Load(path, dataset.Columns{})
			if err != nil || columns != c.want || len(set.Examples) != 40 || len(set.Labels) != 2 {
				t.Errorf("%s: %+v, %v, %v", filepath.Base(path), columns, set, err)
			}
		}
	}
}

// A file that cannot be used is refused as elsewhere, also where its columns have other names.
func TestFilesThatCannotBe(t *testing.T) {
	for name, c := range map[string][2]string{
		"latin.csv":  {rows("text,label\n", "Ich br\xe4uchte Nummer %[1]d,%[2]s\n"), "latin.csv:2: not valid UTF-8: if it is text in Windows-1252"},
		"named.csv":  {rows("body,topic\n", "Ich br\xe4uchte Nummer %[1]d,%[2]s\n"), "named.csv:2: not valid UTF-8"},
		"one.csv":    {"text,label\na,b\nc,b\n", `every example has the label "b"`},
		"none.csv":   {"a\nb\nc\n", `"text" is missing`},
		"broken.csv": {"a,b\n\"c,d\n", "broken.csv"},
		"empty.csv":  {"", "empty.csv"},
		"wide.csv":   {"a,b\nc,d,e\n", "wide.csv"},
		"bad.jsonl":  {"{\n", "bad.jsonl"},
		"bad.gz":     {"no gzip", "bad.gz"},
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(c[0]), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Load(path, dataset.Columns{}); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v, want %s", name, err, c[1])
		}
	}
}
