package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// prompts reports whether a record has a prompt and what is written behind it, and no text of
// the name that is looked for.
func prompts(value func(string) json.RawMessage, text string) bool {
	return len(value("completion")) > 0 && (text == "prompt" || text == "completion" || len(value(text)) == 0)
}

// parsePrompt reads {"prompt": ..., "completion": ...}, as TRL's SFTTrainer takes them, with
// optional "user" and "provider".
func parsePrompt(value func(string) json.RawMessage) (l labelled, err error) {
	for _, f := range []struct {
		column string
		to     *string
	}{{"prompt", &l.Prompt}, {"completion", &l.Completion}} {
		raw := value(f.column)
		if len(raw) == 0 || string(raw) == "null" {
			return l, fmt.Errorf("%q is missing: a prompt and its completion stand together", f.column)
		}
		if json.Unmarshal(raw, f.to) != nil {
			return l, fmt.Errorf("%q must be a string", f.column)
		}
	}
	if strings.TrimSpace(l.Completion) == "" {
		return l, errors.New("completion is empty")
	}
	if l.User, err = scalar("user", value("user")); err != nil {
		return l, err
	}
	l.Provider, err = scalar("provider", value("provider"))
	return l, err
}

// talks reports whether a record is a conversation, and has no text of the name that is looked for.
func talks(value func(string) json.RawMessage, text string) bool {
	return len(value("messages")) > 0 && (text == "messages" || len(value(text)) == 0)
}

// parseTalk reads {"messages": [{"role": ..., "content": ...}, ...]}, as TRL's SFTTrainer takes
// them, with optional "user" and "provider". What a message has beside its role is for the
// template of the base, which may know tool_calls and more.
func parseTalk(value func(string) json.RawMessage) (l labelled, err error) {
	var list []struct {
		Role    *string         `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(value("messages"), &list) != nil || len(list) == 0 {
		return l, errors.New(`"messages" must be a list of at least one object with "role" and "content"`)
	}
	said := false
	for i, m := range list {
		if m.Role == nil || *m.Role == "" {
			return l, fmt.Errorf("message %d has no role", i+1)
		}
		said = said || *m.Role == "assistant"
	}
	if !said {
		return l, errors.New(`no message has the role "assistant": nothing is learnt from it`)
	}
	for _, name := range []string{"tools", "functions", "documents"} {
		if raw := string(value(name)); raw != "" && raw != "null" && raw != "[]" {
			return l, fmt.Errorf("%q beside messages is not laid out yet, so a model would learn prompts that it never sees in use: leave it out, "+
				"or write prompt and completion with the tools in the prompt", name)
		}
	}
	l.Messages = string(value("messages"))
	if l.User, err = scalar("user", value("user")); err != nil {
		return l, err
	}
	l.Provider, err = scalar("provider", value("provider"))
	return l, err
}

// checkPrompt refuses what is no text.
func (l labelled) checkPrompt() error {
	if !utf8.ValidString(l.Prompt) || !utf8.ValidString(l.Completion) || !utf8.ValidString(l.Messages) || !utf8.ValidString(l.User) || !utf8.ValidString(l.Provider) {
		return errors.New("not valid UTF-8")
	}
	return nil
}
