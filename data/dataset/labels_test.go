package dataset

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestLabels(t *testing.T) {
	text := `{"text":"oil and corn","labels":["oil","corn"],"user":7}
{"text":"nothing","labels":[]}
{"text":"gold","labels":["gold"],"provider":"p"}`
	set, err := Read(strings.NewReader(text), "a.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(set.Labels, []string{"corn", "gold", "oil"}) || !slices.Equal(set.Examples[0].Labels, []int{0, 2}) ||
		set.Examples[1].Labels == nil || len(set.Examples[1].Labels) != 0 || set.Examples[0].User != "7" || set.Form() != FormLists {
		t.Errorf("%+v", set)
	}
	again, err := set.Relabel([]string{"oil", "gold", "corn"})
	if err != nil || !slices.Equal(again.Examples[0].Labels, []int{0, 2}) || !slices.Equal(again.Examples[2].Labels, []int{1}) ||
		!slices.Equal(set.Examples[2].Labels, []int{1}) {
		t.Errorf("%+v, %v", again, err)
	}
	if again, err = set.Relabel([]string{"x", "oil", "corn", "gold"}); err != nil || !slices.Equal(again.Examples[0].Labels, []int{1, 2}) {
		t.Errorf("%+v, %v", again, err)
	}
	if of, err := (Columns{Label: "topic"}).Read(strings.NewReader(`{"text":"a","topic":["b",3]}`), "a.jsonl"); err != nil || len(of.Examples[0].Labels) != 2 {
		t.Errorf("%+v, %v", of, err)
	}
	for _, bad := range []string{
		`{"text":"a","labels":[""]}`, `{"text":"a","labels":["b","b"]}`, `{"text":"a","labels":[["b"]]}`, `{"text":" ","labels":["b"]}`,
		`{"text":"a","labels":"b"}`, `{"text":"a","labels":["` + strings.Repeat("b", MaxLabel+1) + `"]}`,
	} {
		line := new(LineError)
		if _, err := Read(strings.NewReader(text+"\n"+bad), "a.jsonl"); !errors.As(err, &line) && !errors.As(err, new(*ColumnError)) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := Read(strings.NewReader(text+"\n"+`{"text":"a","label":"b"}`), "a.jsonl"); err == nil {
		t.Error("lists and labels in one file")
	}
	if _, err := set.Relabel([]string{"oil"}); err == nil {
		t.Error("a label that the job does not have")
	}
}
