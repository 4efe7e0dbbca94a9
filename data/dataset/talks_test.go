package dataset

import (
	"strings"
	"testing"
)

const talk = `[{"role":"user","content":"hi"},{"role":"assistant","content":"ho"}]`

// Conversations are read as TRL, ShareGPT and Alpaca write them, in JSON Lines and in tables.
func TestTalksOfAllKinds(t *testing.T) {
	for name, c := range map[string]struct {
		file, content string
		want          Example
	}{
		"messages":      {"a.jsonl", `{"messages": ` + talk + `, "id": 7, "source": "x"}`, Example{Messages: talk}},
		"tools":         {"a.jsonl", `{"messages": ` + talk + `, "tools": [{"type":"function"}]}`, Example{Messages: talk, Tools: `[{"type":"function"}]`}},
		"tools as text": {"a.jsonl", `{"messages": ` + talk + `, "tools": "[{\"type\":\"function\"}]"}`, Example{Messages: talk, Tools: `[{"type":"function"}]`}},
		"no tools":      {"a.jsonl", `{"messages": ` + talk + `, "tools": null, "system": ""}`, Example{Messages: talk}},
		"switches":      {"a.jsonl", `{"messages": ` + talk + `, "chat_template_kwargs": {"enable_thinking":false}}`, Example{Messages: talk, Switches: `{"enable_thinking":false}`}},
		"ShareGPT":      {"a.jsonl", `{"conversations": [{"from":"human","value":"hi"},{"from":"gpt","value":"ho"}]}`, Example{Messages: talk}},
		"a system": {"a.jsonl", `{"system": "be", "conversations": [{"from":"human","value":"hi"},{"from":"gpt","value":"ho"}]}`,
			Example{Messages: `[{"role":"system","content":"be"},` + talk[1:]}},
		"in two":      {"a.jsonl", `{"prompt": ` + talk[:strings.Index(talk, ",{")] + `], "completion": [` + talk[strings.Index(talk, ",{")+1:] + `}`, Example{Messages: talk, Read: 1}},
		"Alpaca":      {"a.jsonl", `{"instruction": "hi", "input": "", "output": "ho"}`, Example{Messages: talk}},
		"with input":  {"a.jsonl", `{"instruction": "a", "input": "b", "output": "ho"}`, Example{Messages: strings.Replace(talk, "hi", `a\n\nb`, 1)}},
		"CSV, Alpaca": {"a.csv", "instruction,input,output,user\nhi,,ho,ann\n", Example{Messages: talk, User: "ann"}},
		"CSV":         {"a.csv", "prompt;completion\nhi;\"ho; ha\"\n", Example{Prompt: "hi", Completion: "ho; ha"}},
		"CSV, a list": {"a.csv", "messages\n\"" + strings.ReplaceAll(talk, `"`, `""`) + "\"\n", Example{Messages: talk}},
	} {
		set, err := Read(strings.NewReader(c.content), c.file)
		if err != nil || len(set.Examples) != 1 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		e := set.Examples[0]
		if e.Messages != c.want.Messages || e.Tools != c.want.Tools || e.Switches != c.want.Switches || e.Read != c.want.Read || e.User != c.want.User ||
			e.Prompt != c.want.Prompt || e.Completion != c.want.Completion {
			t.Errorf("%s: %+v, want %+v", name, e, c.want)
		}
	}
	for want, bad := range map[string]string{
		`"documents" beside`:          `{"messages": ` + talk + `, "documents": [{"a": 1}]}`,
		`is from "nobody"`:            `{"conversations": [{"from":"nobody","value":"hi"}]}`,
		`"value" must be strings`:     `{"conversations": [{"from":"gpt","value":7}]}`,
		`"tools" must be a list`:      `{"messages": ` + talk + `, "tools": "x"}`,
		`"chat_template_kwargs" must`: `{"messages": ` + talk + `, "chat_template_kwargs": [1]}`,
		`the role "assistant"`:        `{"prompt": ` + talk + `, "completion": [{"role":"user","content":"x"}]}`,
		"output is empty":             `{"instruction": "a", "output": "\u200b"}`,
	} {
		if _, err := Read(strings.NewReader(bad), "a.jsonl"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if set, err := Read(strings.NewReader("instruction,output,text,label\na,b,c,d\n"), "a.csv"); err != nil || set.Form() != FormTexts {
		t.Errorf("a table with texts: %v, %v", set, err)
	}
}
