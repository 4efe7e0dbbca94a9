package generation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
)

// Model is a released adapter over its base, at a rank. It is safe for concurrent use: one
// program runs at a time, and texts take turns.
type Model struct {
	Name       string
	writer     *nn.Writer
	task       task.Prompter
	tok        tokenizer.Tokenizer
	marks      *tokenizer.Marks   // nil if no special tokens are found in the base's texts
	unmarked   error              // and why
	talk       *task.ChatTemplate // nil if the base lays no conversations out
	silent     error              // and why
	vocabulary func() [][]byte    // see spelled
	size       int                // of the vocabulary of scores
	ends       model.Ends
	slice      []float32
	rank       int
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
	m := &Model{Name: ck.Job, writer: w, task: prompter, slice: ck.Adapter.Slice(rank), rank: rank,
		size: ck.Base.Config.VocabSize, ends: ck.Base.Config.Decoder.Ends}
	if m.tok, err = task.TokenizerOf(ck.Base); err != nil {
		return nil, err
	}
	m.marks, m.unmarked = tokenizer.NewMarks(ck.Base.Tokenizer, m.tok)
	m.talk, m.silent = task.NewChatTemplate(ck.Base)
	m.vocabulary = sync.OnceValue(m.spelled)
	return m, nil
}

// Context is the largest number of tokens of a text.
func (m *Model) Context() int { return m.writer.Context() }

// Request is a prompt with the settings of its completion.
type Request struct {
	Prompt string
	Tokens []int32 // in place of Prompt, if there are any: as they are
	Marks  bool    // special tokens that Prompt spells out, as <|im_start|>, are those; else they are text
	Bare   bool    // Prompt gets none of the special tokens that the base's tokenizer puts before a text
	Most   int     // tokens
	Sampling
	Stops    []string // end a text, and are left out of it
	Switches []byte   // of a conversation: a JSON object that its template is told, as enable_thinking
	Echo     bool     // the text begins with the prompt
	Told     bool     // the probability of each token is told
	Likely   int      // with Told: and of so many likeliest tokens at its place
	Object   bool     // the text is a JSON object

	read []int32 // the prompt's tokens; nil until they are read
}

// Size is how many tokens the prompt of a request that Read or Said returned has.
func (r Request) Size() int { return len(r.read) }

// Why a text ended.
const (
	EndStop   = "stop"   // the model ended it, or a stop did, or its JSON object is whole
	EndLength = "length" // it has the most tokens, or fills the context
)

// Text is a completion.
type Text struct {
	Text   string  `json:"text"`
	Ended  string  `json:"ended"`  // "stop" or "length"
	Read   int     `json:"read"`   // tokens of the prompt
	Tokens int     `json:"tokens"` // written, an end left out
	Told   []Token `json:"-"`      // if the request has Told: of the prompt with Echo, and what is written, its end included
}

// Part is what a text has more than before.
type Part struct {
	Text string
	Told []Token
}

// ErrPrompt reports a prompt that the model cannot continue.
var ErrPrompt = errors.New("generation: unusable prompt")

// maxStops and maxStop bound a request's stops.
const (
	maxStops = 16
	maxStop  = 256 // bytes
)

// MaxLikely bounds the alternatives that are told of a token.
const MaxLikely = 20

// Validate refuses a request, but for its prompt's length.
func (r Request) Validate() error {
	if r.Most < 1 && !(r.Most == 0 && r.Echo) {
		return fmt.Errorf("max_tokens is %d, want 1 or more, or 0 with echo", r.Most)
	}
	if r.Likely < 0 || r.Likely > MaxLikely {
		return fmt.Errorf("%d likeliest tokens are to be told, want 0..%d", r.Likely, MaxLikely)
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
func (m *Model) Write(ctx context.Context, r Request, each func(Part) error) (Text, error) {
	if r.read == nil {
		var err error
		if r, err = m.Read(r); err != nil {
			return Text{Read: len(r.read)}, err
		}
	}
	text, err := m.writer.Begin(m.slice, m.rank)
	if err != nil {
		return Text{}, err
	}
	defer text.Close()
	out := Text{Read: len(r.read), Ended: EndLength}
	w := &writing{m: m, r: r, text: text, out: &out, each: each, sampler: r.sampler(), all: slices.Clone(r.read), read: len(r.read)}
	if r.Object {
		w.object = &object{}
	}
	return out, w.run(ctx)
}

// Read is the request with its prompt in tokens, which it refuses where Write would. Most becomes no more than there is
// room for.
func (m *Model) Read(r Request) (Request, error) {
	if err := r.Validate(); err != nil {
		return r, err
	}
	tokens, err := m.prompt(r)
	if err != nil {
		return r, err
	}
	return m.fit(r, tokens)
}

// Said is Read of a conversation, whose messages are a list in JSON, as those of OpenAI's /v1/chat/completions are; so are
// tools, which may be empty. r has no prompt, and may have switches.
func (m *Model) Said(ctx context.Context, messages, tools []byte, r Request) (Request, error) {
	if err := r.Validate(); err != nil {
		return r, err
	}
	if m.talk == nil {
		return r, fmt.Errorf("%w: %w", ErrPrompt, m.silent)
	}
	text, err := m.talk.Text(ctx, messages, tools, r.Switches, true, time.Now())
	if err != nil {
		return r, fmt.Errorf("%w: %w", ErrPrompt, err)
	}
	return m.fit(r, m.talk.Tokens(text))
}

// Chat writes what comes next in a conversation: see Said.
func (m *Model) Chat(ctx context.Context, messages, tools []byte, r Request, each func(Part) error) (Text, error) {
	r, err := m.Said(ctx, messages, tools, r)
	if err != nil {
		return Text{}, err
	}
	return m.Write(ctx, r, each)
}

// fit gives a request its prompt's tokens.
func (m *Model) fit(r Request, tokens []int32) (Request, error) {
	r.read = tokens
	if err := r.Sampling.within(m.size); err != nil {
		return r, fmt.Errorf("%w: %w", ErrPrompt, err)
	}
	switch room := m.writer.Context() - len(tokens); {
	case len(tokens) == 0:
		return r, fmt.Errorf("%w: it has no tokens", ErrPrompt)
	case room < min(1, r.Most):
		return r, fmt.Errorf("%w: it has %d tokens, and a text with what is written %d at most", ErrPrompt, len(tokens), m.writer.Context())
	default:
		r.Most = min(r.Most, room)
	}
	return r, nil
}

// prompt is a request's prompt in tokens.
func (m *Model) prompt(r Request) ([]int32, error) {
	if len(r.Tokens) > 0 {
		for i, id := range r.Tokens {
			if id < 0 || int(id) >= m.size {
				return nil, fmt.Errorf("%w: its token %d is %d, want 0..%d", ErrPrompt, i, id, m.size-1)
			}
		}
		return r.Tokens, nil
	}
	switch {
	case r.Marks && m.marks == nil:
		return nil, fmt.Errorf("%w: special tokens are not found in it: %w", ErrPrompt, m.unmarked)
	case r.Marks && r.Bare:
		return m.marks.Encode(r.Prompt), nil
	case r.Marks:
		return append(m.task.Prompt(""), m.marks.Encode(r.Prompt)...), nil
	case r.Bare:
		return m.tok.Encode(r.Prompt), nil
	}
	return m.task.Prompt(r.Prompt), nil
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
