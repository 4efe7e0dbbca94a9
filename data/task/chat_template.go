//go:build !js || full

package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/internal/leaf/jinja"
	"github.com/starling-fl/starling/model"
)

// ChatTemplate lays conversations out by the base's chat template. The template is a program by the base's
// maker and runs within the bounds of package jinja. A ChatTemplate is safe for concurrent use.
type ChatTemplate struct {
	template *jinja.Template
	chat     model.Chat
	marks    *tokenizer.Marks
}

// ErrConversation is a conversation that the base's template refuses, or that cannot be laid out.
var ErrConversation = errors.New("task: unusable conversation")

// learntSteps and learntBytes are what a template may take of a conversation that is learnt from,
// beside a part for each message: those that are known take some 40 steps a message.
const (
	learntSteps = 8000
	learntBytes = 256 << 10
)

// maxTurns bounds a conversation that is learnt from: it is laid out once for each turn.
const maxTurns = 256

// NewChatTemplate returns the ChatTemplate of a base. It is an error if the base has no template, or one that
// cannot be run.
func NewChatTemplate(base *model.Base) (*ChatTemplate, error) {
	chat := base.Config.Decoder.Chat
	if chat.Template == "" {
		return nil, fmt.Errorf("task: the base has no template of conversations: neither chat_template in its %s nor a %s", model.TokenizerConfigFile, model.ChatTemplateFile)
	}
	t := &ChatTemplate{chat: chat}
	var err error
	if t.template, err = jinja.Parse(chat.Template); err != nil {
		return nil, fmt.Errorf("task: the base's template of conversations: %w", err)
	}
	tok, err := TokenizerOf(base)
	if err != nil {
		return nil, err
	}
	t.marks, err = tokenizer.NewMarks(base.Tokenizer, tok)
	return t, err
}

// Text lays a conversation out. messages and tools are JSON lists; tools may be empty. open adds
// the beginning of the next reply. now is the date for templates that ask for it. The
// end of ctx ends the template.
func (t *ChatTemplate) Text(ctx context.Context, messages, tools []byte, open bool, now time.Time) (string, error) {
	list, err := turns(messages)
	if err != nil {
		return "", err
	}
	vars := map[string]any{}
	if len(tools) > 0 && string(tools) != "null" {
		if vars["tools"], err = jinja.FromJSON(tools); err != nil {
			return "", fmt.Errorf("%w: tools: %w", ErrConversation, err)
		}
	}
	return t.text(ctx, list, vars, open, now, jinja.Limits{})
}

func (t *ChatTemplate) text(ctx context.Context, list []any, vars map[string]any, open bool, now time.Time, most jinja.Limits) (string, error) {
	vars["messages"], vars["add_generation_prompt"] = jinja.List(list...), open
	vars["bos_token"], vars["eos_token"] = t.chat.Begin, t.chat.End
	if _, given := vars["tools"]; !given {
		vars["tools"] = nil
	}
	text, err := t.template.Run(ctx, vars, now, most)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrConversation, err)
	}
	return text, nil
}

// Tokens encodes a text that a template wrote, special tokens included.
func (t *ChatTemplate) Tokens(text string) []int32 { return t.marks.Encode(text) }

// turns are a conversation's messages.
func turns(messages []byte) ([]any, error) {
	v, err := jinja.FromJSON(messages)
	if err != nil {
		return nil, fmt.Errorf("%w: messages: %w", ErrConversation, err)
	}
	list, ok := jinja.Items(v)
	if !ok || len(list) == 0 {
		return nil, fmt.Errorf("%w: messages are a list of at least one object with role and content", ErrConversation)
	}
	for i, m := range list {
		if role, ok := jinja.Text(m, "role"); !ok || role == "" {
			return nil, fmt.Errorf("%w: message %d has no role: want an object with role and content", ErrConversation, i+1)
		}
	}
	return list, nil
}

// without is the date that templates are told while texts are learnt from, so that a job
// learns the same whenever it runs: the day that Llama 3's template names where it has no clock.
var without = time.Date(2024, time.July, 26, 0, 0, 0, 0, time.UTC)

// learnt are a conversation's tokens, and for each whether it is told: those that an assistant
// says, with what ends its turn.
func (t *ChatTemplate) learnt(messages []byte) (ids []int32, told []bool, err error) {
	list, err := turns(messages)
	if err != nil {
		return nil, nil, err
	}
	if len(list) > maxTurns {
		return nil, nil, fmt.Errorf("%w: %d messages, the limit is %d", ErrConversation, len(list), maxTurns)
	}
	// Each turn is laid out by itself: a template that takes the most each time would take hours.
	most := jinja.Limits{Steps: learntSteps + learntSteps/16*len(list), Bytes: learntBytes + 64*len(messages)}
	tokens := func(n int, open bool) ([]int32, error) {
		text, err := t.text(context.Background(), list[:n], map[string]any{}, open, without, most)
		return t.Tokens(text), err
	}
	if ids, err = tokens(len(list), false); err != nil {
		return nil, nil, err
	}
	told = make([]bool, len(ids))
	for i, m := range list {
		if role, _ := jinja.Text(m, "role"); role != "assistant" {
			continue
		}
		before, err := tokens(i, true)
		if err != nil {
			return nil, nil, err
		}
		behind, err := tokens(i+1, false)
		if err != nil {
			return nil, nil, err
		}
		if len(before) >= len(behind) || len(behind) > len(ids) || !slices.Equal(behind[:len(before)], before) || !slices.Equal(ids[:len(behind)], behind) {
			return nil, nil, fmt.Errorf("%w: the base's template lays message %d out otherwise once others follow: only its last turn could be learnt from; "+
				"give prompt and completion", ErrConversation, i+1)
		}
		for k := len(before); k < len(behind); k++ {
			told[k] = true
		}
	}
	if !slices.Contains(told, true) {
		return nil, nil, fmt.Errorf("%w: no message is an assistant's, so nothing is learnt from it", ErrConversation)
	}
	return ids, told, nil
}
