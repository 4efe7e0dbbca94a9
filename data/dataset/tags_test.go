package dataset

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestTags(t *testing.T) {
	text := `{"words":["Acme","sold","corn"],"tags":["B","O","C"],"user":7}
{"words":["oil"],"tags":["C"],"provider":"p"}`
	set, err := Read(strings.NewReader(text), "a.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(set.Labels, []string{"B", "C", "O"}) || !slices.Equal(set.Examples[0].Tags, []int{0, 2, 1}) ||
		set.Examples[0].User != "7" || set.Examples[1].Provider != "p" {
		t.Errorf("%+v", set)
	}
	again, err := set.Relabel([]string{"O", "C", "B"})
	if err != nil || !slices.Equal(again.Examples[0].Tags, []int{2, 0, 1}) || !slices.Equal(set.Examples[0].Tags, []int{0, 2, 1}) {
		t.Errorf("%+v, %v", again, err)
	}
	for _, bad := range []string{
		`{"words":["a","b"],"tags":["O"]}`, `{"words":["a"]}`, `{"words":["a"],"tags":[""]}`, `{"words":[""],"tags":["O"]}`,
		`{"words":[1],"tags":["O"]}`, `{"words":["a"],"tags":null}`,
	} {
		line := new(LineError)
		if _, err := Read(strings.NewReader(text+"\n"+bad), "a.jsonl"); !errors.As(err, &line) || line.Line != 3 {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := Read(strings.NewReader(text+"\n"+`{"text":"a","label":"b"}`), "a.jsonl"); err == nil {
		t.Error("tags and labels in one file")
	}
	if _, err := set.Relabel([]string{"O"}); err == nil {
		t.Error("a tag that the job does not have")
	}
}
