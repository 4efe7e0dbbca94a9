//go:build !js || full

package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/starling-fl/starling/data/dataset"
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
	tok      tokenizer.Tokenizer
	header   string // what begins an assistant's turn, of a template that does not write it itself
}

// errRewritten is a conversation whose earlier turns the template lays out otherwise once others follow.
var errRewritten = errors.New("an earlier turn is laid out otherwise once others follow")

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
	t.tok = tok
	if t.marks, err = tokenizer.NewMarks(base.Tokenizer, tok); err != nil {
		return nil, err
	}
	t.header = t.missing()
	return t, nil
}

// missing is what a template writes before an assistant's words, and not where a reply is to begin: it has no branch for
// add_generation_prompt. Without it a model would write the beginning of turns in place of a reply.
func (t *ChatTemplate) missing() string {
	const asked, answered = "Qv7 asked", "Qv7 answered"
	lay := func(open bool, turns ...[2]string) string {
		var list []any
		for _, m := range turns {
			d := &jinja.Dict{}
			d.Set("role", m[0])
			d.Set("content", m[1])
			list = append(list, d)
		}
		text, err := t.text(context.Background(), list, map[string]any{}, open, without, jinja.Limits{Steps: learntSteps, Bytes: learntBytes})
		if err != nil { // it is told where a conversation is laid out
			return ""
		}
		return text
	}
	user := [2]string{"user", asked}
	closed := lay(false, user)
	rest, ok := strings.CutPrefix(lay(false, user, [2]string{"assistant", answered}), closed)
	header, _, said := strings.Cut(rest, answered)
	if !ok || !said || closed != lay(true, user) || strings.TrimSpace(header) == "" {
		return ""
	}
	return header
}

// Text lays a conversation out. messages and tools are JSON lists, beside is a JSON object of what the template is told
// beside (enable_thinking); tools and beside may be empty. open adds
// the beginning of the next reply. now is the date for templates that ask for it. The
// end of ctx ends the template.
func (t *ChatTemplate) Text(ctx context.Context, messages, tools, beside []byte, open bool, now time.Time) (string, error) {
	list, err := turns(messages)
	if err != nil {
		return "", err
	}
	reasoned(list)
	vars, err := switches(string(beside))
	if err != nil {
		return "", err
	}
	if len(tools) > 0 && string(tools) != "null" {
		if vars["tools"], err = jinja.FromJSON(tools); err != nil {
			return "", fmt.Errorf("%w: tools: %w", ErrConversation, err)
		}
	}
	return t.text(ctx, list, vars, open, now, jinja.Limits{})
}

func (t *ChatTemplate) text(ctx context.Context, list []any, vars map[string]any, open bool, now time.Time, most jinja.Limits) (string, error) {
	text, _, err := t.spans(ctx, list, vars, open, now, most)
	return text, err
}

// spans is text, with where the template marks what an assistant says.
func (t *ChatTemplate) spans(ctx context.Context, list []any, vars map[string]any, open bool, now time.Time, most jinja.Limits) (string, [][2]int, error) {
	vars["messages"], vars["add_generation_prompt"] = jinja.List(list...), open
	vars["bos_token"], vars["eos_token"] = t.chat.Begin, t.chat.End
	for _, name := range []string{"tools", "documents"} {
		if _, given := vars[name]; !given {
			vars[name] = nil
		}
	}
	text, spans, err := t.template.Spans(ctx, vars, now, most)
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrConversation, err)
	}
	if open {
		text += t.header
	}
	return text, spans, nil
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

// switches are what a conversation's template is told beside, of names that are no others'.
func switches(data string) (map[string]any, error) {
	vars := map[string]any{}
	if data == "" || data == "null" {
		return vars, nil
	}
	v, err := jinja.FromJSON([]byte(data))
	if err != nil {
		return nil, fmt.Errorf("%w: chat_template_kwargs: %w", ErrConversation, err)
	}
	for name, v := range jinja.All(v) {
		if slices.Contains([]string{"messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token"}, name) {
			return nil, fmt.Errorf("%w: chat_template_kwargs has %q, which is given otherwise", ErrConversation, name)
		}
		vars[name] = v
	}
	return vars, nil
}

// names refuses what a template would drop in silence: a key of a message that it never names.
func (t *ChatTemplate) names(list []any, tools string) error {
	if tools != "" && !strings.Contains(t.chat.Template, "tools") {
		return fmt.Errorf("%w: the base's template lays no tools out: leave them out, or write prompt and completion", ErrConversation)
	}
	for i, m := range list {
		for key, v := range jinja.All(m) {
			known := slices.Contains([]string{"role", "content", "name", "id", "tool_call_id"}, key) || jinja.Empty(v)
			switch {
			case slices.Contains(reasonings, key):
				known = known || slices.ContainsFunc(reasonings, func(k string) bool { return strings.Contains(t.chat.Template, k) })
			default:
				known = known || strings.Contains(t.chat.Template, key)
			}
			if !known {
				return fmt.Errorf("%w: message %d has %.60q, which the base's template does not know: leave it out", ErrConversation, i+1, key)
			}
		}
	}
	return nil
}

// reasonings are the keys that hold what a model thought before it answered. Templates read either of the first two:
// transformers gives them both.
var reasonings = []string{"reasoning_content", "thinking", "reasoning"}

// reasoned gives each message's reasoning the names that templates read.
func reasoned(list []any) {
	for _, m := range list {
		d, ok := m.(*jinja.Dict)
		if !ok {
			continue
		}
		for _, key := range reasonings {
			if v, has := d.Get(key); has && v != nil {
				if _, has := d.Get("thinking"); !has {
					d.Set("thinking", v)
				}
				d.Set("reasoning_content", v)
				break
			}
		}
	}
}

// learnt are a conversation's tokens, and for each whether it is told: what the template's generation blocks hold where
// it has some, else what an assistant says, with what ends its turn. Of a conversation that is read up to a message all
// that is behind it is told. The error wraps errRewritten if the template allows only the last turn to be learnt.
func (t *ChatTemplate) learnt(e *dataset.Example) (ids []int32, told []bool, err error) {
	list, err := turns([]byte(e.Messages))
	if err != nil {
		return nil, nil, err
	}
	if len(list) > maxTurns {
		return nil, nil, fmt.Errorf("%w: %d messages, the limit is %d", ErrConversation, len(list), maxTurns)
	}
	if err := t.names(list, e.Tools); err != nil {
		return nil, nil, err
	}
	reasoned(list)
	// Each turn is laid out by itself: a template that takes the most each time would take hours.
	most := jinja.Limits{Steps: learntSteps + learntSteps/16*len(list), Bytes: learntBytes + 64*(len(e.Messages)+len(e.Tools))}
	lay := func(n int, open bool) (text string, spans [][2]int, err error) {
		vars, err := switches(e.Switches)
		if err != nil {
			return "", nil, err
		}
		if e.Tools != "" {
			if vars["tools"], err = jinja.FromJSON([]byte(e.Tools)); err != nil {
				return "", nil, fmt.Errorf("%w: tools: %w", ErrConversation, err)
			}
		}
		return t.spans(context.Background(), list[:n], vars, open, without, most)
	}
	tokens := func(n int, open bool) ([]int32, error) {
		text, _, err := lay(n, open)
		return t.Tokens(text), err
	}
	text, spans, err := lay(len(list), false)
	if err != nil {
		return nil, nil, err
	}
	ids = t.Tokens(text)
	told = make([]bool, len(ids))
	switch {
	case e.Read > 0:
		err = t.behind(ids, told, e.Read, tokens)
	case t.template.Generates():
		t.marked(ids, told, text, spans)
	default:
		err = t.said(ids, told, list, tokens)
	}
	if err != nil {
		return nil, nil, err
	}
	if !slices.Contains(told, true) {
		return nil, nil, fmt.Errorf("%w: no message is an assistant's, so nothing is learnt from it", ErrConversation)
	}
	return ids, told, nil
}

// behind tells what follows the messages that are only read. Where the template writes more at the beginning of a reply
// than it leaves in the conversation (a thought's beginning), what both have is read.
func (t *ChatTemplate) behind(ids []int32, told []bool, read int, tokens func(n int, open bool) ([]int32, error)) error {
	before, err := tokens(read, true)
	if err != nil {
		return err
	}
	least, err := tokens(read, false)
	if err != nil {
		return err
	}
	n := common(before, ids)
	if n < common(least, before) || n == len(ids) {
		return fmt.Errorf("%w: the base's template lays what is read out otherwise once a reply follows: give prompt and completion as texts", ErrConversation)
	}
	for k := n; k < len(ids); k++ {
		told[k] = true
	}
	return nil
}

// common is how many tokens two texts begin with alike.
func common(a, b []int32) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// marked tells the tokens that hold letters of spans of the text.
func (t *ChatTemplate) marked(ids []int32, told []bool, text string, spans [][2]int) {
	for _, s := range spans {
		if s[0] >= s[1] || s[1] > len(text) {
			continue // of a macro, whose text is elsewhere
		}
		from, _ := t.place(ids, text[:s[0]])
		last, inside := t.place(ids, text[:s[1]])
		if inside { // a token holds the end and what follows
			last++
		}
		for k := from; k < min(last, len(told)); k++ {
			told[k] = true
		}
	}
}

// place is the token of a text that begins where a beginning of it ends, or else that holds what is there. Tokens at the
// end of a beginning may be others than the text's own.
func (t *ChatTemplate) place(ids []int32, beginning string) (at int, inside bool) {
	cut := t.Tokens(beginning)
	n := common(cut, ids)
	before := max(0, n-1) // some tokens are written otherwise where a text begins
	long := len(t.tok.Decode(cut[before:]))
	for at = n; at < len(ids); at++ {
		switch end := len(t.tok.Decode(ids[before : at+1])); {
		case len(t.tok.Decode(ids[before:at])) >= long:
			return at, false
		case end > long:
			return at, true
		}
	}
	return at, false
}

// said tells the assistants' turns, each of which is what follows where its reply begins.
func (t *ChatTemplate) said(ids []int32, told []bool, list []any, tokens func(n int, open bool) ([]int32, error)) error {
	for i, m := range list {
		if role, _ := jinja.Text(m, "role"); role != "assistant" {
			continue
		}
		before, err := tokens(i, true)
		if err != nil {
			return err
		}
		behind, err := tokens(i+1, false)
		if err != nil {
			return err
		}
		if len(before) >= len(behind) || common(behind, before) < len(before) || common(ids, behind) < len(behind) {
			return fmt.Errorf("%w: message %d: %w", ErrConversation, i+1, errRewritten)
		}
		for k := len(before); k < len(behind); k++ {
			told[k] = true
		}
	}
	return nil
}

// rows are a conversation, or one of each of an assistant's turns, as it is laid out when that is written, where the
// template rewrites earlier turns.
func (t *ChatTemplate) rows(e *dataset.Example) ([]dataset.Example, error) {
	if e.Read > 0 {
		return []dataset.Example{*e}, nil
	}
	if _, _, err := t.learnt(e); !errors.Is(err, errRewritten) {
		return []dataset.Example{*e}, err
	}
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(e.Messages), &list); err != nil {
		return nil, fmt.Errorf("%w: messages: %w", ErrConversation, err)
	}
	var rows []dataset.Example
	for i, m := range list {
		var turn struct{ Role string }
		if json.Unmarshal(m, &turn) != nil || turn.Role != "assistant" || i == 0 {
			continue
		}
		part, err := json.Marshal(list[:i+1])
		if err != nil {
			return nil, err
		}
		row := *e
		row.Messages, row.Read, row.Continued = string(part), i, i+1 < len(list)
		if _, _, err := t.learnt(&row); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}
