package task

import (
	"fmt"
	"slices"
	"strings"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/model"
)

// tags is a label for each word. A word's first token carries it; the others weigh
// nothing, as transformers' examples of token classification have it.
type tags struct {
	columns       []Column
	tok           tokenizer.Tokenizer
	before, after []int32 // special tokens around a text
	sequence      int
}

var tagKind = kind{columns: tagColumns, takes: []dataset.Form{dataset.FormWords}, make: func(p parts) (Task, error) { return newTags(p.columns, p.tok, p.sequence), nil }}

func tagColumns(l *model.Layout, sequence int) []Column {
	return []Column{
		{Name: Tokens, Type: I32, Shape: []int{sequence}, Limit: l.Config.VocabSize},
		{Name: Labels, Type: I32, Shape: []int{sequence}, Limit: l.Classes},
		{Name: Weights, Type: F32, Shape: []int{sequence}},
	}
}

func newTags(columns []Column, tok tokenizer.Tokenizer, sequence int) *tags {
	t := &tags{columns: columns, tok: tok, sequence: sequence}
	t.before, t.after = around(tok)
	return t
}

// around finds the special tokens that a tokenizer puts before and behind a text.
func around(tok tokenizer.Tokenizer) (before, after []int32) {
	text := tok.Encode("a")
	row := tok.EncodeFixed("a", len(text)+4)
	for len(row) > 0 && row[len(row)-1] == tok.PadID() {
		row = row[:len(row)-1]
	}
	for at := range row {
		if at+len(text) <= len(row) && slices.Equal(row[at:at+len(text)], text) {
			return row[:at], row[at+len(text):]
		}
	}
	return nil, nil
}

func (t *tags) Columns() []Column { return t.columns }

// Encode writes the words that there is room for whole; the others are left out.
func (t *tags) Encode(e *dataset.Example, b Batch, row int) error {
	if len(e.Words) == 0 || len(e.Tags) != len(e.Words) {
		return fmt.Errorf("%d words with %d tags, want a tag for each of at least one word", len(e.Words), len(e.Tags))
	}
	at := row * t.sequence
	tokens, labels, weights := b[0].I32[at:at+t.sequence], b[1].I32[at:at+t.sequence], b[2].F32[at:at+t.sequence]
	n := copy(tokens, t.before)
	for i, word := range e.Words {
		if i > 0 {
			word = " " + word // which byte-level vocabularies mind
		}
		ids := t.tok.Encode(word)
		if len(ids) == 0 { // control characters, say
			if ids = []int32{t.tok.UnknownID()}; ids[0] < 0 {
				return fmt.Errorf("word %d is %.40q, which has no tokens", i+1, word)
			}
		}
		if n+len(ids)+len(t.after) > t.sequence {
			break
		}
		labels[n], weights[n] = int32(e.Tags[i]), 1
		n += copy(tokens[n:], ids)
	}
	n += copy(tokens[n:], t.after)
	for ; n < t.sequence; n++ {
		tokens[n] = t.tok.PadID()
	}
	return nil
}

// Places are the positions of the words' first tokens, as far as they fit.
func (t *tags) Places(b Batch, row int) []int {
	weights, n := b[2].F32, b[2].Size()
	var at []int
	for i, w := range weights[row*n : (row+1)*n] {
		if w != 0 {
			at = append(at, i)
		}
	}
	return at
}

func (t *tags) Truths(e *dataset.Example, b Batch, row int) [][]int {
	out := make([][]int, len(t.Places(b, row)))
	for i := range out {
		out[i] = e.Tags[i : i+1]
	}
	return out
}

func (t *tags) Choice() Choice { return OneOf }

// Open splits a text at its spaces.
func (t *tags) Open(e dataset.Example) dataset.Example {
	if len(e.Words) == 0 {
		e.Words = strings.Fields(e.Text)
	}
	e.Tags = make([]int, len(e.Words))
	return e
}

// background is the label of words that are nothing in particular.
const background = "O"

func (t *tags) Figures(s *Score, said, right [][]int, names []string) {
	f1 := tagF1(said, right, slices.Index(names, background))
	s.TokenF1 = &f1
	s.Notes = append(s.Notes, fmt.Sprintf("token F1 %.1f %% of words whose label is not %s", 100*f1, background))
}

// tagF1 is the harmonic mean of precision and recall over all words that have a label,
// or are said to have one, other than background (token F1, micro-averaged); background
// -1: every label counts. It is 1 if there is none to find and none is said.
func tagF1(said, right [][]int, background int) float64 {
	var all Counts
	for i, s := range said {
		p, truth := s[0], right[i][0]
		if p != background {
			all.Predicted++
		}
		if truth != background {
			all.Actual++
		}
		if p == truth && p != background {
			all.Hits++
		}
	}
	if all.Predicted+all.Actual == 0 {
		return 1
	}
	return all.F1()
}
