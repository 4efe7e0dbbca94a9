package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// prompts reports whether a record has a prompt and what is written behind it, and no text of
// the name that is looked for.
func prompts(value func(string) json.RawMessage, text string) bool {
	return len(value("completion")) > 0 && (text == "prompt" || text == "completion" || len(value(text)) == 0)
}

// parsePrompt reads {"prompt": ..., "completion": ...}, as TRL's SFTTrainer takes them, texts or lists of messages, with
// optional "user" and "provider".
func parsePrompt(keys []string, value func(string) json.RawMessage) (l labelled, err error) {
	if listOf(value("prompt")) && listOf(value("completion")) {
		return parseTalk(keys, value)
	}
	for _, f := range []struct {
		column string
		to     *string
	}{{"prompt", &l.Prompt}, {"completion", &l.Completion}} {
		raw := value(f.column)
		if len(raw) == 0 || string(raw) == "null" {
			return l, fmt.Errorf("%q is missing: a prompt needs its completion", f.column)
		}
		if json.Unmarshal(raw, f.to) != nil {
			return l, fmt.Errorf("%q must be a string, or both prompt and completion lists of messages", f.column)
		}
	}
	if blank(l.Completion) {
		return l, errors.New("completion is empty")
	}
	return l, l.whose(value)
}

// whose reads who a record belongs to.
func (l *labelled) whose(value func(string) json.RawMessage) (err error) {
	if l.User, err = scalar("user", value("user")); err == nil {
		l.Provider, err = scalar("provider", value("provider"))
	}
	return err
}

// checkPrompt refuses what is no text.
func (l labelled) checkPrompt() error {
	if !utf8.ValidString(l.Prompt) || !utf8.ValidString(l.Completion) || !utf8.ValidString(l.Messages) || !utf8.ValidString(l.Tools) || !utf8.ValidString(l.Switches) ||
		!utf8.ValidString(l.User) || !utf8.ValidString(l.Provider) {
		return errNotUTF8
	}
	return nil
}

// listOf reports whether a value is a list.
func listOf(raw json.RawMessage) bool { return bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) }
