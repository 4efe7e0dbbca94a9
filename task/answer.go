package task

import (
	"fmt"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/tokenizer"
)

// Columns that only an answer has.
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

func answerColumns(l *model.Layout, sequence int) []Column {
	c, t := l.Config, l.LoRA.AnswerTokens()
	columns := []Column{{Name: Tokens, Type: I32, Shape: []int{sequence}, Limit: c.VocabSize}}
	if c.T5.Boxes > 0 {
		columns = append(columns, Column{Name: Boxes, Type: I32, Shape: []int{sequence, 4}, Limit: c.T5.Boxes})
	}
	if c.T5.Patch > 0 {
		columns = append(columns, Column{Name: Patches, Type: F32, Shape: []int{c.T5.Patches, c.T5.Patch}})
	}
	return append(columns,
		Column{Name: DecoderTokens, Type: I32, Shape: []int{t}, Limit: c.VocabSize},
		Column{Name: Labels, Type: I32, Shape: []int{t}, Limit: c.VocabSize},
		Column{Name: Weights, Type: F32, Shape: []int{t}})
}

func newAnswer(columns []Column, tok tokenizer.Tokenizer, l *model.Layout, sequence int) *answer {
	return &answer{columns, tok, l.Config, sequence, l.LoRA.AnswerTokens()}
}

func (a *answer) Columns() []Column { return a.columns }

// page is the side of a document in its boxes' units.
const page = 1000

// Encode writes the example's question, words and first answer. Words beyond the
// sequence are cut, and so is an answer.
func (a *answer) Encode(e *dataset.Example, b Batch, row int) error {
	if len(e.Answers) == 0 || e.Answers[0] == "" {
		return fmt.Errorf("task: an example has no answer")
	}
	if err := a.encodeSource(e, b, row); err != nil {
		return err
	}
	end := int32(a.config.T5.End)
	written := a.tok.Encode(e.Answers[0])
	written = append(written[:min(len(written), a.tokens-1)], end)
	decoder, _ := b.Column(DecoderTokens)
	labels, _ := b.Column(Labels)
	weights, _ := b.Column(Weights)
	at := row * a.tokens
	for i := range a.tokens {
		decoder.I32[at+i], labels.I32[at+i], weights.F32[at+i] = int32(a.config.PadTokenID), int32(a.config.PadTokenID), 0
		if i < len(written) {
			labels.I32[at+i], weights.F32[at+i] = written[i], 1
		}
		if i > 0 && i <= len(written) {
			decoder.I32[at+i] = written[i-1]
		}
	}
	decoder.I32[at] = int32(a.config.T5.Start)
	return nil
}

// encodeSource writes what the encoder reads.
func (a *answer) encodeSource(e *dataset.Example, b Batch, row int) error {
	tokens, boxes := make([]int32, 0, a.sequence), make([][4]int32, 0, a.sequence)
	room := a.sequence - 1 // for the end
	add := func(text string, box [4]int32) {
		ids := a.tok.Encode(text)
		for _, id := range ids[:min(len(ids), room-len(tokens))] {
			tokens, boxes = append(tokens, id), append(boxes, box)
		}
	}
	whole := a.scaled([4]uint16{0, 0, page, page})
	add("question: "+e.Question+"  context: ", whole)
	switch {
	case len(e.Boxes) > 0 && len(e.Boxes) != len(e.Words):
		return fmt.Errorf("task: an example has %d boxes for %d words", len(e.Boxes), len(e.Words))
	case len(e.Words) == 0:
		add(e.Text, whole)
	}
	for i, word := range e.Words {
		if len(tokens) == room {
			break
		}
		box := whole
		if len(e.Boxes) > 0 {
			for _, x := range e.Boxes[i] {
				if x > page {
					return fmt.Errorf("task: the box %v of word %d reaches beyond %d", e.Boxes[i], i, page)
				}
			}
			box = a.scaled(e.Boxes[i])
		}
		add(word, box)
	}
	tokens, boxes = append(tokens, int32(a.config.T5.End)), append(boxes, [4]int32{})
	column, _ := b.Column(Tokens)
	places, placed := b.Column(Boxes)
	for i := range a.sequence {
		id, box := int32(a.config.PadTokenID), [4]int32{}
		if i < len(tokens) {
			id, box = tokens[i], boxes[i]
		}
		column.I32[row*a.sequence+i] = id
		if placed {
			copy(places.I32[4*(row*a.sequence+i):], box[:])
		}
	}
	if patches, seen := b.Column(Patches); seen {
		n := patches.Size()
		if len(e.Pixels) != n {
			return fmt.Errorf("task: an example has %d values of its page's patches, the base reads %d patches of %d",
				len(e.Pixels), a.config.T5.Patches, a.config.T5.Patch)
		}
		copy(patches.F32[row*n:], e.Pixels)
	}
	return nil
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
