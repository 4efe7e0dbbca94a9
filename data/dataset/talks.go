//go:build !js || full

package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// talks reports whether a record is a conversation or an instruction, and has no text of the name that is looked for.
func talks(value func(string) json.RawMessage, text string) bool {
	for _, key := range []string{"messages", "conversations"} {
		if len(value(key)) > 0 && (text == key || len(value(text)) == 0) {
			return true
		}
	}
	return len(value("instruction")) > 0 && len(value("output")) > 0 && len(value(text)) == 0
}

// Keys of a conversation's record: those that are read, and those that say where it is from and change nothing of it.
var (
	talkKeys = []string{"messages", "conversations", "prompt", "completion", "instruction", "input", "output", "system", "tools",
		"chat_template_kwargs", "user", "provider"}
	idleKeys = []string{"id", "idx", "index", "uuid", "prompt_id", "conversation_id", "source", "dataset", "origin", "category", "subset",
		"split", "lang", "language", "license", "model", "score", "date", "timestamp", "hash", "text", "turns", "num_turns", "n_turns"}
)

// mostSwitches bounds a record's chat_template_kwargs, in bytes.
const mostSwitches = 4 << 10

// parseTalk reads a conversation as TRL's SFTTrainer takes it: {"messages": [{"role", "content"}, ...]}, or "prompt" and
// "completion" as lists of messages, of which the completion alone is learnt; as ShareGPT has it:
// {"conversations": [{"from", "value"}, ...]}; or as Alpaca has it: "instruction", "input" and "output". "tools" is a list
// or a text that holds one, "chat_template_kwargs" an object of names that the template is given (enable_thinking), "system" what
// the system says first. What a message has beside role and content is for the template of the base. Other keys are refused.
func parseTalk(keys []string, value func(string) json.RawMessage) (l labelled, err error) {
	for _, key := range keys {
		raw := value(key)
		if !slices.Contains(talkKeys, strings.ToLower(key)) && !slices.Contains(idleKeys, strings.ToLower(key)) && !empty(raw) {
			return l, fmt.Errorf("%.60q beside a conversation is not laid out, so a model would learn prompts that it never sees in use: leave it out; "+
				"known are %s", key, strings.Join(talkKeys, ", "))
		}
	}
	var list []json.RawMessage
	switch {
	case len(value("messages")) > 0:
		list, err = messages("messages", value("messages"))
	case len(value("conversations")) > 0:
		list, err = messages("conversations", value("conversations"))
	case listOf(value("completion")):
		var more []json.RawMessage
		if list, err = messages("prompt", value("prompt")); err == nil {
			l.Read = len(list)
			more, err = messages("completion", value("completion"))
			list = append(list, more...)
		}
	default:
		list, err = instruction(value)
	}
	if err != nil {
		return l, err
	}
	if raw := value("system"); !empty(raw) {
		var said string
		if json.Unmarshal(raw, &said) != nil {
			return l, errors.New(`"system" must be a string`)
		}
		if list = slices.Insert(list, 0, message("system", said)); l.Read > 0 {
			l.Read++
		}
	}
	if err := checkTalk(list[l.Read:]); err != nil {
		return l, err
	}
	if l.Tools, err = tools(value("tools")); err != nil {
		return l, err
	}
	if raw := value("chat_template_kwargs"); !empty(raw) {
		var names map[string]json.RawMessage
		if json.Unmarshal(raw, &names) != nil || len(raw) > mostSwitches {
			return l, fmt.Errorf(`"chat_template_kwargs" must be an object of at most %d bytes`, mostSwitches)
		}
		l.Switches = string(raw)
	}
	all, err := json.Marshal(list)
	if l.Messages = string(all); err != nil {
		return l, err
	}
	return l, l.whose(value)
}

// empty reports whether a key has no value.
func empty(raw json.RawMessage) bool {
	return slices.Contains([]string{"", "null", "[]", `""`, "{}"}, string(bytes.TrimSpace(raw)))
}

// checkTalk refuses messages of which nothing is learnt.
func checkTalk(list []json.RawMessage) error {
	said := false
	for i, raw := range list {
		var m struct {
			Role    *string         `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		if json.Unmarshal(raw, &m) != nil || m.Role == nil || *m.Role == "" {
			return fmt.Errorf("message %d has no role", i+1)
		}
		said = said || *m.Role == "assistant"
	}
	if !said {
		return errors.New(`no message has the role "assistant": nothing is learnt from it`)
	}
	return nil
}

// speakers are who ShareGPT's messages are from, and their roles.
var speakers = map[string]string{"human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "chatgpt": "assistant",
	"bing": "assistant", "bard": "assistant", "model": "assistant", "system": "system", "tool": "tool", "observation": "tool"}

// messages are a list's, those of ShareGPT ({"from", "value"}) with role and content.
func messages(key string, raw json.RawMessage) ([]json.RawMessage, error) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return nil, fmt.Errorf(`%q must be a list of at least one object with "role" and "content"`, key)
	}
	for i, m := range list {
		var said struct{ Role, From, Value json.RawMessage }
		if json.Unmarshal(m, &said) != nil {
			return nil, fmt.Errorf(`message %d of %q must be an object with "role" and "content"`, i+1, key)
		}
		if len(said.From) == 0 || len(said.Role) > 0 {
			continue
		}
		var from, text string
		if json.Unmarshal(said.From, &from) != nil || json.Unmarshal(said.Value, &text) != nil {
			return nil, fmt.Errorf(`message %d of %q: "from" and "value" must be strings`, i+1, key)
		}
		role, known := speakers[from]
		if !known {
			return nil, fmt.Errorf(`message %d of %q is from %.40q: want human, gpt, system or tool, or messages with "role" and "content"`, i+1, key, from)
		}
		list[i] = message(role, text)
	}
	return list, nil
}

func message(role, content string) json.RawMessage {
	data, err := json.Marshal(struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}{role, content})
	if err != nil { // of two texts
		panic(err)
	}
	return data
}

// instruction are the messages of Alpaca's record: what is asked, with its input below it, and what is answered.
func instruction(value func(string) json.RawMessage) ([]json.RawMessage, error) {
	var asked, input, answer string
	for _, f := range []struct {
		key string
		to  *string
	}{{"instruction", &asked}, {"input", &input}, {"output", &answer}} {
		if raw := value(f.key); len(raw) > 0 && json.Unmarshal(raw, f.to) != nil {
			return nil, fmt.Errorf("%q must be a string", f.key)
		}
	}
	if blank(asked) || blank(answer) {
		return nil, errors.New("instruction or output is empty")
	}
	if !blank(input) {
		asked += "\n\n" + input
	}
	return []json.RawMessage{message("user", asked), message("assistant", answer)}, nil
}

// tools is the list of them, which a text may hold, as in TRL's rows.
func tools(raw json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	var list []json.RawMessage
	switch {
	case empty(raw):
		return "", nil
	case json.Unmarshal(raw, &list) != nil:
		return "", errors.New(`"tools" must be a list of objects, or a text that holds one`)
	}
	return string(raw), nil
}

// written reports whether a table's columns are those of prompts or conversations, and no texts.
func (c Columns) written(header []string) bool {
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(n string) bool { return find(header, n) < 0 })
	}
	if c.named() || find(header, "text") >= 0 {
		return false
	}
	return has("prompt", "completion") || has("instruction", "output") || has("messages") || has("conversations")
}

// writtenRow is a table's row of such columns. A cell that holds a JSON list or object is one.
func writtenRow(header, row []string) (labelled, error) {
	value := func(key string) json.RawMessage {
		at := find(header, key)
		if at < 0 || at >= len(row) || row[at] == "" {
			return nil
		}
		cell := []byte(row[at])
		if slices.Contains([]string{"messages", "conversations", "tools", "chat_template_kwargs"}, key) && json.Valid(cell) {
			return cell
		}
		quoted, err := json.Marshal(row[at])
		if err != nil {
			return nil
		}
		return quoted
	}
	if find(header, "completion") >= 0 {
		return parsePrompt(header, value)
	}
	return parseTalk(header, value)
}
