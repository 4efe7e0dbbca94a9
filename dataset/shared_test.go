package dataset

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// Questions about one document are written on one line and come back as they were, with
// whose they are and where they are from.
func TestQuestionsOfOneDocumentShareALine(t *testing.T) {
	words, boxes := []string{"TOTAL", "9.00"}, [][4]uint16{{0, 0, 500, 10}, {500, 0, 1000, 10}}
	of := func(user, question string, answers ...string) Example {
		return Example{Source: "receipts", User: user, Provider: "BOOKS", Words: words, Boxes: boxes, Question: question, Answers: answers}
	}
	set := &Set{Examples: []Example{of("a", "total?", "9.00", "9"), of("a", "date?"), of("b", "total?", "9.00")}}
	path := filepath.Join(t.TempDir(), "questions.jsonl")
	if err := WriteJSONLines(path, set); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(b, []byte("\n")); n != 2 {
		t.Errorf("%d lines, want one for each user", n)
	}
	var back []Example
	if err := Questions(bytes.NewReader(b), "questions.jsonl", func(e Example) error { back = append(back, e); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(back) != len(set.Examples) {
		t.Fatalf("%d questions came back of %d", len(back), len(set.Examples))
	}
	for i, e := range back {
		e.Text, e.Line = "", 0
		if !reflect.DeepEqual(e, set.Examples[i]) {
			t.Errorf("%+v\nwant %+v", e, set.Examples[i])
		}
	}
}
