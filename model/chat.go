package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"unicode/utf8"
)

// ChatTemplateFile is where newer folders keep the template of conversations.
const ChatTemplateFile = "chat_template.jinja"

// maxTemplate bounds the template of conversations, in bytes, and maxMark a special token's text.
const (
	maxTemplate = 256 << 10
	maxMark     = 256
)

// Chat says how conversations are laid out for a decoder, as its tokenizer_config.json has it.
type Chat struct {
	Template string `json:"template"`            // Jinja; "" where the base has none
	Begin    string `json:"bos_token,omitempty"` // as the template calls them
	End      string `json:"eos_token,omitempty"`
}

func (c Chat) check() error {
	switch {
	case len(c.Template) > maxTemplate:
		return fmt.Errorf("%w: chat_template has %d bytes, limit %d", ErrConfig, len(c.Template), maxTemplate)
	case len(c.Begin) > maxMark || len(c.End) > maxMark:
		return fmt.Errorf("%w: bos_token or eos_token has more than %d bytes", ErrConfig, maxMark)
	case !utf8.ValidString(c.Template) || !utf8.ValidString(c.Begin) || !utf8.ValidString(c.End):
		return fmt.Errorf("%w: chat_template is not UTF-8", ErrConfig)
	case c.Template == "" && c != (Chat{}):
		return fmt.Errorf("%w: tokens of conversations without a chat_template", ErrConfig)
	}
	return nil
}

// readChat reads a folder's template of conversations, where it has one.
func readChat(fsys fs.FS) (c Chat, err error) {
	var file struct {
		Template json.RawMessage `json:"chat_template"`
		Begin    mark            `json:"bos_token"`
		End      mark            `json:"eos_token"`
	}
	if err := optionalJSON(fsys, TokenizerConfigFile, &file); err != nil {
		return c, err
	}
	own, err := ReadFile(fsys, ChatTemplateFile, maxTemplate)
	switch {
	case err == nil:
		c.Template = string(own)
	case !errors.Is(err, fs.ErrNotExist):
		return c, err
	case len(file.Template) > 0:
		if c.Template, err = namedTemplate(file.Template); err != nil {
			return c, fmt.Errorf("%w: %s: chat_template: %w", ErrConfig, TokenizerConfigFile, err)
		}
	}
	if c.Template != "" {
		c.Begin, c.End = string(file.Begin), string(file.End)
	}
	return c, c.check()
}

// namedTemplate is a template, or of several the one that is called default.
func namedTemplate(data json.RawMessage) (string, error) {
	var one *string
	if json.Unmarshal(data, &one) == nil {
		if one == nil {
			return "", nil
		}
		return *one, nil
	}
	var several []struct {
		Name     string `json:"name"`
		Template string `json:"template"`
	}
	if json.Unmarshal(data, &several) != nil {
		return "", errors.New("want a text, or a list of objects with name and template")
	}
	for _, t := range several {
		if t.Name == "default" {
			return t.Template, nil
		}
	}
	return "", nil
}

// mark is a special token: its text, or an object with its content.
type mark string

func (m *mark) UnmarshalJSON(data []byte) error {
	var text *string
	if json.Unmarshal(data, &text) == nil {
		if text != nil {
			*m = mark(*text)
		}
		return nil
	}
	var token struct {
		Content string `json:"content"`
	}
	if json.Unmarshal(data, &token) != nil {
		return errors.New("want a special token's text, or an object with its content")
	}
	*m = mark(token.Content)
	return nil
}

// describe adds the template to a tokenizer_config.json, with the tokens that it names.
func (c Chat) describe(to map[string]any) {
	if c.Template == "" {
		return
	}
	to["chat_template"] = c.Template
	for name, text := range map[string]string{"bos_token": c.Begin, "eos_token": c.End} {
		if delete(to, name); text != "" {
			to[name] = text
		}
	}
}
