package dataset

import (
	"strings"
	"testing"
)

func TestPrompts(t *testing.T) {
	const file = `{"prompt": "turn on the light", "completion": "light(on=true)", "user": "ann"}
{"prompt": "", "completion": "x", "provider": 7}
`
	for _, columns := range []Columns{{}, {Unlabelled: true}, {Text: "prompt", Unlabelled: true}} {
		set, err := columns.Read(strings.NewReader(file), "a.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		e := set.Examples
		if len(e) != 2 || e[0].Prompt != "turn on the light" || e[0].Completion != "light(on=true)" || e[0].User != "ann" || e[1].Provider != "7" || e[1].Line != 2 {
			t.Errorf("%+v", e)
		}
		if set.Form() != FormPrompts || set.Labels != nil {
			t.Errorf("form is %s with labels %q", set.Form(), set.Labels)
		}
	}
	for want, bad := range map[string]string{
		`"prompt" is missing`:      `{"completion": "a"}`,
		"must be a string":         `{"prompt": 1, "completion": "a"}`,
		"completion is empty":      `{"prompt": "a", "completion": " "}`,
		"others are none":          `{"prompt": "a", "completion": "b"}` + "\n" + `{"text": "a", "label": "b"}`,
		`"completion" must be a s`: `{"prompt": "a", "completion": ["b"]}`,
	} {
		if _, err := Read(strings.NewReader(bad), "a.jsonl"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	talk := `{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}], "user": "ann"}`
	for _, columns := range []Columns{{}, {Unlabelled: true}} {
		set, err := columns.Read(strings.NewReader(talk), "a.jsonl")
		if err != nil || set.Form() != FormTalks || set.Examples[0].User != "ann" || !strings.Contains(set.Examples[0].Messages, `"ho"`) {
			t.Errorf("%+v, %v", set, err)
		}
	}
	for want, bad := range map[string]string{
		`"functions" beside a c`: `{"messages": [{"role": "assistant", "content": "a"}], "functions": [{"type": "function"}]}`,
		"a list of at least one": `{"messages": []}`, `must be a list`: `{"messages": "hi"}`, "message 1 has no role": `{"messages": [{"content": "a"}]}`,
		`the role "assistant"`: `{"messages": [{"role": "user", "content": "a"}]}`, "others are none": talk + "\n" + `{"text": "a", "label": "b"}`,
	} {
		if _, err := Read(strings.NewReader(bad), "a.jsonl"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	// A text with a label that has a column of that name is what it was.
	set, err := Read(strings.NewReader(`{"text": "a", "label": "b", "completion": "c"}`), "a.jsonl")
	if err != nil || set.Form() != FormTexts {
		t.Errorf("%v %v", set, err)
	}
}
