package task

import (
	"fmt"
	"slices"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/model"
)

// A Task writes examples into columns. It is immutable and safe for concurrent
// use.
type Task interface {
	// Columns lists the inputs of a step except its learning rate and number.
	Columns() []Column
	// Encode writes an example as a row of a batch of the task's columns.
	Encode(e *dataset.Example, b Batch, row int) error
}

// A Reader is a Task whose examples are questions.
type Reader interface {
	Task
	// Read writes what an answer depends on, without the answer: Answers may be missing.
	Read(e *dataset.Example, b Batch, row int) error
}

// A Finder is a Reader whose answers are parts of the document.
type Finder interface {
	Reader
	// Best returns the likeliest answer in a row's example ("" for none) and its probability;
	// scores are the model's for the row.
	Best(e *dataset.Example, scores []float32) (text string, probability float64, err error)
	// Loss is the cross-entropy of the positions of the right answer, in nats: the mean of
	// beginnings and ends, each over all that are right together. stands is false if the row's
	// example holds none of them.
	Loss(e *dataset.Example, scores []float32) (loss float64, stands bool, err error)
}

// A Splitter is a Task whose examples may be longer than a row.
type Splitter interface {
	// Split cuts an example into examples that fit a row each.
	Split(e *dataset.Example) ([]dataset.Example, error)
}

// A Merger is a Task in which neighbouring examples may be the same, and then become one row.
type Merger interface {
	Same(a, b *dataset.Example) bool
}

// Rows turns examples into the task's rows: each example once or, if it is too long, its parts one
// after another. of gives, for each row, the index of its example.
func Rows(t Task, examples []dataset.Example) (rows []dataset.Example, of []int, err error) {
	s, splits := t.(Splitter)
	m, merges := t.(Merger)
	for i := range examples {
		if merges && i > 0 && m.Same(&examples[i-1], &examples[i]) {
			continue
		}
		parts := examples[i : i+1]
		if splits {
			if parts, err = s.Split(&examples[i]); err != nil {
				return nil, nil, &dataset.LineError{File: "", Line: examples[i].Line, Err: err}
			}
		}
		for range parts {
			of = append(of, i)
		}
		rows = append(rows, parts...)
	}
	return rows, of, nil
}

// ReadAll reads examples into rows of their own.
func ReadAll(t Reader, examples []dataset.Example) (Batch, error) {
	return all(t, examples, t.Read)
}

// EncodeAll writes examples into rows of their own.
func EncodeAll(t Task, examples []dataset.Example) (Batch, error) {
	return all(t, examples, t.Encode)
}

func all(t Task, examples []dataset.Example, write func(*dataset.Example, Batch, int) error) (Batch, error) {
	b := NewBatch(t.Columns(), len(examples))
	for i := range examples {
		if err := write(&examples[i], b, i); err != nil {
			return nil, &dataset.LineError{File: "", Line: examples[i].Line, Err: err}
		}
	}
	return b, nil
}

// A Writer is a Task whose base writes a text token by token, with one pass over all that is
// written so far for each.
type Writer interface {
	Task
	// Begin writes an example's question into the one row of a batch of Tried's columns; room is
	// the number of tokens that fit behind it.
	Begin(e *dataset.Example, b Batch) (room int, err error)
	// Append writes the n-th token (from 0) behind what is there.
	Append(b Batch, n int, id int32)
	// End reports whether a token ends a text.
	End(id int32) bool
	// Text decodes tokens.
	Text(ids []int32) string
}

// leastSequence has room for the special tokens around a text, and for one token.
const leastSequence = 3

// A kind makes a task: each has one, in its own file.
type kind struct {
	columns  func(l *model.Layout, sequence int) []Column
	make     func(p parts) (Task, error)
	textless bool // it reads no text, and needs no tokenizer
	takes    []dataset.Form
}

// parts are what a task is made of.
type parts struct {
	columns  []Column
	base     *model.Base
	layout   *model.Layout
	tok      tokenizer.Tokenizer // nil if no text is read
	sequence int
}

// kinds are the tasks by what model calls them; a page's light build has no others,
// as model has no bases for them.
var kinds = map[model.TaskKind]kind{
	model.TaskClassify:   classifyKind,
	model.TaskMultiLabel: multiLabelKind,
	model.TaskTag:        tagKind,
	model.TaskSpan:       spanKind,
	model.TaskImage:      imageKind,
	model.TaskPretrain:   pretrainKind,
}

// Accepts reports whether a task learns from examples of the form.
func Accepts(t model.TaskKind, f dataset.Form) bool { return slices.Contains(kinds[t].takes, f) }

// For returns the first of the tasks that accept examples of the form; classify if there is none.
func For(f dataset.Form) model.TaskKind {
	for _, name := range model.TaskNames() {
		if t, err := model.ParseTask(name); err == nil && Accepts(t, f) {
			return t
		}
	}
	return model.TaskClassify
}

func kindOf(l *model.Layout) (kind, error) {
	k, known := kinds[l.Method.Task]
	if !known {
		return k, fmt.Errorf("task: %.40q is not known", l.Method.Task)
	}
	return k, nil
}

// Columns lists the columns of a layout's task, for examples of at most sequence tokens.
func Columns(l *model.Layout, sequence int) ([]Column, error) {
	k, err := kindOf(l)
	if err != nil {
		return nil, err
	}
	return k.columns(l, sequence), nil
}

// New returns a layout's task over a base, with the base's tokenizer if the task has texts. An
// example has at most sequence tokens, for which the base must have room.
func New(base *model.Base, l *model.Layout, sequence int) (Task, error) {
	k, err := kindOf(l)
	if err != nil {
		return nil, err
	}
	p := parts{columns: k.columns(l, sequence), base: base, layout: l, sequence: sequence}
	if k.textless {
		return k.make(p)
	}
	if most := base.Config.MaxTokens(); sequence < leastSequence || sequence > most {
		return nil, fmt.Errorf("task: sequences of %d tokens, want %d..%d, the positions of the base", sequence, leastSequence, most)
	}
	if p.tok, err = TokenizerOf(base); err != nil {
		return nil, err
	}
	return k.make(p)
}

// TokenizerOf returns a base's tokenizer. That of a causal model needs no padding token, since no
// token sees later ones.
func TokenizerOf(base *model.Base) (tokenizer.Tokenizer, error) {
	c := base.Config
	if c.Causal() {
		return tokenizer.ParseWithin(base.Tokenizer, c.VocabSize)
	}
	return tokenizer.ParseFor(base.Tokenizer, c.VocabSize, c.PadTokenID)
}

// A Transcriber is a Labeller of recordings, whose labels are characters: the scores of a recording
// are those of all of its frames, and the prediction is a text.
type Transcriber interface {
	Labeller
	// Text returns what labels spell.
	Text(labels []int) string
	// Probability returns that of what labels spell, over all ways to spell it: 0..1, and smaller
	// the longer it is.
	Probability(scores []float32, labels []int) float64
	// Any returns a text of a few characters drawn by below, which returns a number in 0..n-1.
	Any(below func(n int) int) string
	// Beams returns a Transcriber that searches for the likeliest text with n prefixes (see
	// Spelling); 1 takes each frame's best character.
	Beams(n int) (Transcriber, error)
}
