package generation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
)

// Model is a released adapter over its base, at a rank. It is safe for concurrent use: one
// program runs at a time.
type Model struct {
	Name   string
	writer *nn.Writer
	task   task.Prompter
	talk   *task.ChatTemplate // nil if the base lays no conversations out
	silent error              // and why
	slice  []float32
	rank   int
}

// Open prepares a checkpoint for texts of at most context tokens, on a backend.
func Open(be compute.Backend, ck *model.Checkpoint, rank, context int) (*Model, error) {
	l := ck.Adapter.Layout()
	if l.Method.Task.Reads() != model.ReadsNext {
		return nil, fmt.Errorf("the checkpoint's task is %s: texts are written by one of task %s", l.Method.Task, model.TaskCausal)
	}
	t, err := task.New(ck.Base, l, ck.Seq)
	if err != nil {
		return nil, fmt.Errorf("the checkpoint: %w", err)
	}
	prompter, ok := t.(task.Prompter)
	if !ok {
		return nil, fmt.Errorf("task %s takes no prompts", l.Method.Task)
	}
	w, err := nn.NewWriter(l, ck.Base, context, be)
	if err != nil {
		return nil, err
	}
	talk, silent := task.NewChatTemplate(ck.Base)
	return &Model{talk: talk, silent: silent, Name: ck.Job, writer: w, task: prompter, slice: ck.Adapter.Slice(rank), rank: rank}, nil
}

// Request is a prompt with the settings of its completion.
type Request struct {
	Prompt string
	Most   int // tokens
	Sampling
	Stops    []string // end a text, and are left out of it
	Switches []byte   // of a conversation: a JSON object that its template is told, as enable_thinking
}

// Why a text ended.
const (
	EndStop   = "stop"   // the model ended it, or a stop did
	EndLength = "length" // it has the most tokens, or fills the context
)

// Text is a completion.
type Text struct {
	Text   string `json:"text"`
	Ended  string `json:"ended"`  // "stop" or "length"
	Read   int    `json:"read"`   // tokens of the prompt
	Tokens int    `json:"tokens"` // written, an end left out
}

// ErrPrompt reports a prompt that the model cannot continue.
var ErrPrompt = errors.New("generation: unusable prompt")

// maxStops and maxStop bound a request's stops.
const (
	maxStops = 16
	maxStop  = 256 // bytes
)

// Validate refuses a request, but for its prompt's length.
func (r Request) Validate() error {
	if r.Most < 1 {
		return fmt.Errorf("max_tokens is %d, want 1 or more", r.Most)
	}
	if len(r.Stops) > maxStops {
		return fmt.Errorf("%d stops, the limit is %d", len(r.Stops), maxStops)
	}
	for _, s := range r.Stops {
		if s == "" || len(s) > maxStop {
			return fmt.Errorf("a stop has %d bytes, want 1..%d", len(s), maxStop)
		}
	}
	return r.Sampling.Validate()
}

// Write writes behind a prompt. each, which may be nil, is given the text as it grows, whole
// characters at a time and nothing that a stop may take back; an error of its ends the text.
func (m *Model) Write(ctx context.Context, r Request, each func(part string) error) (Text, error) {
	return m.write(ctx, m.task.Prompt(r.Prompt), r, each)
}

// Chat writes what comes next in a conversation, whose messages are a list in JSON, as those of
// OpenAI's /v1/chat/completions are; so are tools, which may be empty. r has no prompt, and may have switches.
func (m *Model) Chat(ctx context.Context, messages, tools []byte, r Request, each func(part string) error) (Text, error) {
	if m.talk == nil {
		return Text{}, fmt.Errorf("%w: %w", ErrPrompt, m.silent)
	}
	text, err := m.talk.Text(ctx, messages, tools, r.Switches, true, time.Now())
	if err != nil {
		return Text{}, fmt.Errorf("%w: %w", ErrPrompt, err)
	}
	return m.write(ctx, m.talk.Tokens(text), r, each)
}

func (m *Model) write(ctx context.Context, tokens []int32, r Request, each func(part string) error) (Text, error) {
	if err := r.Validate(); err != nil {
		return Text{}, err
	}
	out := Text{Read: len(tokens), Ended: EndLength}
	switch room := m.writer.Context() - len(tokens); {
	case len(tokens) == 0:
		return out, fmt.Errorf("%w: it has no tokens", ErrPrompt)
	case room < 1:
		return out, fmt.Errorf("%w: it has %d tokens, and a text with what is written %d at most", ErrPrompt, len(tokens), m.writer.Context())
	default:
		r.Most = min(r.Most, room)
	}
	text, err := m.writer.Begin(m.slice, m.rank)
	if err != nil {
		return out, err
	}
	defer text.Close()
	sampler, all := r.sampler(), slices.Clone(tokens)
	stopped := false
	ended, err := text.Write(ctx, tokens, r.Most, func(scores []float32) int32 { return sampler.next(scores, all) }, func(id int32) (bool, error) {
		all, out.Tokens = append(all, id), out.Tokens+1
		now := m.task.Text(all[len(tokens):])
		if at := firstOf(now, r.Stops); at >= 0 {
			stopped = true
			return false, grow(&out, now[:at], each)
		}
		return true, grow(&out, now[:settled(now, r.Stops)], each)
	})
	if ended || stopped {
		out.Ended = EndStop
	}
	if err != nil || stopped {
		return out, err
	}
	return out, grow(&out, strings.ToValidUTF8(m.task.Text(all[len(tokens):]), "\uFFFD"), each)
}

// grow gives each what a text has more than out.
func grow(out *Text, text string, each func(string) error) error {
	if len(text) <= len(out.Text) || !strings.HasPrefix(text, out.Text) {
		return nil
	}
	part := text[len(out.Text):]
	out.Text = text
	if each == nil {
		return nil
	}
	return each(part)
}

// firstOf is where the first of the stops begins in a text; -1 if none is.
func firstOf(text string, stops []string) int {
	first := -1
	for _, s := range stops {
		if at := strings.Index(text, s); at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	return first
}

// settled is how much of a text is whole characters that no stop has begun with.
func settled(text string, stops []string) int {
	n := len(text)
	for i := 1; i <= min(utf8.UTFMax, n); i++ {
		if b := text[n-i]; utf8.RuneStart(b) {
			if !utf8.FullRuneInString(text[n-i:]) {
				n -= i
			}
			break
		}
	}
	for _, s := range stops {
		for k := min(len(s)-1, n); k > 0; k-- {
			if strings.HasSuffix(text[:n], s[:k]) {
				n -= k
				break
			}
		}
	}
	return n
}
