package files

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
)

// Questions about one document are written on one line and come back as they were, with
// whose they are and where they are from.
func TestQuestionsOfOneDocumentShareALine(t *testing.T) {
	words, boxes := []string{"TOTAL", "9.00"}, [][4]uint16{{0, 0, 500, 10}, {500, 0, 1000, 10}}
	of := func(user, question string, answers ...string) dataset.Example {
		return dataset.Example{Source: "receipts", User: user, Provider: "BOOKS", Words: words, Boxes: boxes, Question: question, Answers: answers}
	}
	set := &dataset.Set{Examples: []dataset.Example{of("a", "total?", "9.00", "9"), of("a", "date?"), of("b", "total?", "9.00")}}
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
	var back []dataset.Example
	if err := dataset.Questions(bytes.NewReader(b), "questions.jsonl", func(e dataset.Example) error { back = append(back, e); return nil }); err != nil {
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

// Prompts and conversations are written as they are read.
func TestPromptsAndConversationsAreWritten(t *testing.T) {
	for name, e := range map[string]dataset.Example{
		"prompt":       {Prompt: "on", Completion: "{}", User: "ann"},
		"conversation": {Messages: `[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`, Tools: `[{"a":1}]`, Switches: `{"x":true}`, User: "ann"},
	} {
		path := filepath.Join(t.TempDir(), "talks.jsonl")
		if err := WriteJSONLines(path, &dataset.Set{Examples: []dataset.Example{e}}); err != nil {
			t.Fatal(err)
		}
		set, err := dataset.Columns{}.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		e.Line = 1
		if !reflect.DeepEqual(set.Examples, []dataset.Example{e}) {
			t.Errorf("%s: %+v, want %+v", name, set.Examples, e)
		}
	}
	part := &dataset.Set{Examples: []dataset.Example{{Messages: "[]", Read: 1}}}
	if err := WriteJSONLines(filepath.Join(t.TempDir(), "part.jsonl"), part); err == nil {
		t.Error("a part of a conversation is written as a whole one")
	}
}

// A question's key goes through a file, beside one question or several, and is the name of a
// field.
func TestKeysInFiles(t *testing.T) {
	set, err := dataset.Documents(dataset.DocumentConfig{Seed: 4, Split: "train", Clients: 1, PerClient: 3})
	if err != nil {
		t.Fatal(err)
	}
	second := set.Examples[0]
	second.Question, second.Key = "and the due date?", "due"
	set.Examples = slices.Insert(set.Examples, 1, second)
	path := filepath.Join(t.TempDir(), "d.jsonl")
	if err := WriteJSONLines(path, set); err != nil {
		t.Fatal(err)
	}
	read, err := dataset.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range read.Examples {
		if e.Key != set.Examples[i].Key || e.Key == "" || e.Question != set.Examples[i].Question {
			t.Errorf("example %d: key %q of %q, was %q", i, e.Key, e.Question, set.Examples[i].Key)
		}
	}
	if len(read.Examples) != 4 {
		t.Errorf("%d examples", len(read.Examples))
	}
}

// A line's page is the file that it names; what cannot be one is refused with line and key.
func TestPagesBesideDocuments(t *testing.T) {
	dir := t.TempDir()
	m := &dataset.Image{Width: 5, Height: 4, Channels: 3, Pixels: make([]float32, 5*4*3)}
	m.Pixels[7] = 1
	if err := os.Mkdir(filepath.Join(dir, "pages"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := WritePNG(filepath.Join(dir, "pages", "a.png"), m); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"no.png": "no picture", "wide.pgm": "P5 70000 70000 255\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "x.jsonl")
	load := func(image string) (*dataset.Set, error) {
		line := fmt.Sprintf(`{"words":["a"],"image":%s,"questions":[{"question":"q","answers":"a"},{"question":"r","answers":"b"}]}`, image)
		if err := os.WriteFile(path, []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return dataset.Load(path)
	}
	set, err := load(`"pages/a.png"`)
	if err != nil || set.Form() != dataset.FormQuestions || set.Examples[0].Image == nil || set.Examples[0].Image != set.Examples[1].Image {
		t.Fatalf("%+v, %v", set, err)
	}
	got, err := set.Examples[1].Image.Decoded()
	if err != nil || !slices.Equal(got.Pixels, m.Pixels) {
		t.Errorf("the page is %+v, %v", got, err)
	}
	if err := WriteJSONLines(filepath.Join(dir, "again.jsonl"), set); err != nil {
		t.Fatal(err)
	}
	again, err := dataset.Load(filepath.Join(dir, "again.jsonl"))
	if err != nil || again.Examples[0].Image == nil || !bytes.Equal(again.Examples[0].Image.Identity(), set.Examples[0].Image.Identity()) {
		t.Errorf("written and read: %+v, %v", again, err)
	}
	if err := WriteJSONLines(filepath.Join(t.TempDir(), "far.jsonl"), set); err == nil {
		t.Error("a page outside of its file's folder is written")
	}
	for image, why := range map[string]string{
		`"../a.png"`: "within the folder", `"/etc/passwd.png"`: "within the folder", `"b.png"`: "b.png", `[1]`: "path of a .png", `"a.gif"`: "path of a .png",
		`"no.png"`: "neither PNG", `"wide.pgm"`: "70000 x 70000",
	} {
		var at *dataset.LineError
		if _, err := load(image); !errors.As(err, &at) || at.Line != 1 || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "image") {
			t.Errorf("%s: %v", image, err)
		}
	}
	if set, err = load("null"); err != nil || set.Examples[0].Image != nil {
		t.Errorf("no page: %v", err)
	}
}
