package task

import (
	"errors"
	"fmt"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/model"
)

// Columns that only tasks with answers have.
const (
	Boxes         = "boxes"          // i32 [S,4]: left, top, right, bottom of each token
	Patches       = "patches"        // f32 [P,values]: parts of the page's image
	DecoderTokens = "decoder_tokens" // i32 [T]: the answer's, one place later
)

// answer is a text that a base with a decoder writes: the answer to a question about a
// document. The encoder reads "question: q  context: words" (Tito et al. 2023).
type answer struct {
	columns          []Column
	tok              tokenizer.Tokenizer
	config           model.Config
	sequence, tokens int // of the document with its question; of the answer
}

var answerKind = kind{columns: answerColumns, takes: []dataset.Form{dataset.FormQuestions}, make: func(p parts) (Task, error) {
	return newAnswer(p.columns, p.tok, p.layout, p.sequence), nil
}}

func answerColumns(l *model.Layout, sequence int) []Column {
	c, t := l.Config, l.Method.AnswerTokens()
	columns := []Column{{Name: Tokens, Type: I32, Shape: []int{sequence}, Limit: c.VocabSize}}
	if c.T5.Boxes > 0 {
		columns = append(columns, Column{Name: Boxes, Type: I32, Shape: []int{sequence, 4}, Limit: c.T5.Boxes})
	}
	if page, looks := c.T5.Page(); looks {
		columns = append(columns, Column{Name: Patches, Type: F32, Shape: []int{page.Patches(), page.PatchValues()}})
	}
	return append(columns,
		Column{Name: DecoderTokens, Type: I32, Shape: []int{t}, Limit: c.VocabSize},
		Column{Name: Labels, Type: I32, Shape: []int{t}, Limit: c.VocabSize},
		Column{Name: Weights, Type: F32, Shape: []int{t}})
}

func newAnswer(columns []Column, tok tokenizer.Tokenizer, l *model.Layout, sequence int) *answer {
	return &answer{columns, tok, l.Config, sequence, l.Method.AnswerTokens()}
}

func (a *answer) Columns() []Column { return a.columns }

// page is the side of a document in its boxes' units. What reads boxes and what learns
// from them do not know each other: this does not compile where they differ.
const page = dataset.PageSide

var _ = [0]struct{}([model.PageSide - page]struct{}{})

// Encode writes the example's question, words and first answer. Words beyond the
// sequence are cut, and so is an answer.
func (a *answer) Encode(e *dataset.Example, b Batch, row int) error {
	if len(e.Answers) == 0 || e.Answers[0] == "" {
		return fmt.Errorf("task: an example has no answer")
	}
	a.target(b, row, a.tok.Encode(e.Answers[0]))
	return a.Read(e, b, row)
}

// Read writes the example's question, words and page.
func (a *answer) Read(e *dataset.Example, b Batch, row int) error {
	ids, boxes, err := a.read(e)
	if err != nil {
		return err
	}
	a.source(b, row, a.tok.Encode("question: "+e.Question+"  context: "), ids, boxes)
	return a.pixels(e, b, row)
}

// Begin is Read, with nothing of an answer.
func (a *answer) Begin(e *dataset.Example, b Batch) (room int, err error) {
	written, at := b.Int32(DecoderTokens), b.Int32(Places)
	for i := range written {
		written[i] = int32(a.config.PadTokenID)
	}
	written[0], at[0] = int32(a.config.T5.Start), 0
	return a.tokens, a.Read(e, b, 0)
}

func (a *answer) Append(b Batch, n int, id int32) {
	if n+1 < a.tokens {
		b.Int32(DecoderTokens)[n+1], b.Int32(Places)[0] = id, int32(n+1)
	}
}

func (a *answer) End(id int32) bool       { return int(id) == a.config.T5.End }
func (a *answer) Text(ids []int32) string { return a.tok.Decode(ids) }

// read gives the tokens of an example's words, with the box of each one's word; of its
// text, and the whole page, if it has none.
func (a *answer) read(e *dataset.Example) (ids []int32, boxes [][4]int32, err error) {
	add := func(text string, box [4]int32) {
		for _, id := range a.tok.Encode(text) {
			ids, boxes = append(ids, id), append(boxes, box)
		}
	}
	if len(e.Boxes) > 0 && len(e.Boxes) != len(e.Words) {
		return nil, nil, fmt.Errorf("task: an example has %d boxes for %d words", len(e.Boxes), len(e.Words))
	}
	if len(e.Words) == 0 {
		add(e.Text, a.whole())
	}
	for i, word := range e.Words {
		if len(ids) >= a.sequence {
			break // it is cut there at the latest
		}
		box := a.whole()
		if len(e.Boxes) > 0 {
			for _, x := range e.Boxes[i] {
				if x > page {
					return nil, nil, fmt.Errorf("task: the box %v of word %d reaches beyond %d", e.Boxes[i], i, page)
				}
			}
			box = a.scaled(e.Boxes[i])
		}
		add(word, box)
	}
	return ids, boxes, nil
}

// whole is the box of what stands nowhere: the prompt's.
func (a *answer) whole() [4]int32 { return a.scaled([4]uint16{0, 0, page, page}) }

// source writes what the encoder reads: the prompt, the document as far as there is
// room, the end, padding.
func (a *answer) source(b Batch, row int, prompt, ids []int32, boxes [][4]int32) {
	tokens, _ := b.Column(Tokens)
	places, placed := b.Column(Boxes)
	room := a.sequence - 1 // for the end
	prompt = prompt[:min(len(prompt), room)]
	ids = ids[:min(len(ids), room-len(prompt))]
	for i := range a.sequence {
		id, box, at := int32(a.config.PadTokenID), [4]int32{}, i-len(prompt)
		switch {
		case at < 0:
			id, box = prompt[i], a.whole()
		case at < len(ids):
			id, box = ids[at], boxes[at]
		case at == len(ids):
			id = int32(a.config.T5.End)
		}
		tokens.I32[row*a.sequence+i] = id
		if placed {
			copy(places.I32[4*(row*a.sequence+i):], box[:])
		}
	}
}

// target writes what the decoder is to write, and reads: the same a place later.
func (a *answer) target(b Batch, row int, out []int32) {
	out = append(out[:min(len(out), a.tokens-1):min(len(out), a.tokens-1)], int32(a.config.T5.End))
	decoder, labels, weights := b.Int32(DecoderTokens), b.Int32(Labels), b.Float32(Weights)
	for i := range a.tokens {
		at := row*a.tokens + i
		decoder[at], labels[at], weights[at] = int32(a.config.PadTokenID), int32(a.config.PadTokenID), 0
		if i < len(out) {
			labels[at], weights[at] = out[i], 1
		}
		if i > 0 && i <= len(out) {
			decoder[at] = out[i-1]
		}
	}
	decoder[row*a.tokens] = int32(a.config.T5.Start)
}

func (a *answer) pixels(e *dataset.Example, b Batch, row int) error {
	page, looks := a.config.T5.Page()
	if !looks {
		return nil
	}
	if e.Image == nil {
		return errors.New(`a document has no "image", the picture of its page, which the base reads`)
	}
	patches, _ := b.Column(Patches)
	n := patches.Size()
	return Pixels(e.Image, page, patches.F32[row*n:(row+1)*n])
}

// scaled brings a box to the rows that the base has: 0..1000 as they are where it has
// as many.
func (a *answer) scaled(box [4]uint16) (out [4]int32) {
	for i, x := range box {
		out[i] = int32(x)
		if most := a.config.T5.Boxes - 1; most < page && most >= 0 {
			out[i] = int32(x) * int32(most) / page
		}
	}
	return out
}
