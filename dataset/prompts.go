package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// prompts says whether a record has a prompt and what is written behind it, and no text of
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

// checkPrompt refuses what is no text.
func (l labelled) checkPrompt() error {
	if !utf8.ValidString(l.Prompt) || !utf8.ValidString(l.Completion) || !utf8.ValidString(l.User) || !utf8.ValidString(l.Provider) {
		return errors.New("not valid UTF-8")
	}
	return nil
}
