package task

import (
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/tokenizer"
)

// A Filler is a Task that predicts what stands where a text itself has its mask token.
type Filler interface {
	Task
	// Mask is how a text spells the mask.
	Mask() tokenizer.MaskToken
	// Blanks writes texts into rows and returns where the masks of each text are, in order. A text
	// without a mask has no row.
	Blanks(examples []dataset.Example) (b Batch, rows int, of [][]Blank)
}

// Blank locates the scores of a masked token: its row, and its place among the row's masked tokens.
type Blank struct{ Row, Place int }

// Mask is the base's.
func (m *masked) Mask() tokenizer.MaskToken { return m.mask }

// Blanks puts a text into one row where it fits. Of one that does not, or that has more
// masks than a row has places, each mask has a row of its own and is in its middle, as
// far as the text goes on to both sides.
func (m *masked) Blanks(examples []dataset.Example) (b Batch, rows int, of [][]Blank) {
	type row struct {
		tokens []int32 // of a text, without those around it
		at     []int   // masks among them
	}
	var all []row
	of = make([][]Blank, len(examples))
	room := m.sequence - m.before - m.after
	for i := range examples {
		var tokens []int32
		var at []int
		for k, part := range m.mask.Cut(textOf(&examples[i])) {
			if k > 0 {
				at, tokens = append(at, len(tokens)), append(tokens, m.mask.ID)
			}
			tokens = append(tokens, m.tok.Encode(part)...)
		}
		switch {
		case len(at) == 0:
		case len(tokens) <= room && len(at) <= m.places:
			for k := range at {
				of[i] = append(of[i], Blank{len(all), k})
			}
			all = append(all, row{tokens, at})
		default:
			for _, place := range at {
				from := max(0, min(place-room/2, len(tokens)-room))
				of[i] = append(of[i], Blank{len(all), 0})
				all = append(all, row{tokens[from:min(from+room, len(tokens))], []int{place - from}})
			}
		}
	}
	b = NewBatch(m.columns, len(all))
	for r, row := range all {
		tokens := b.Int32(Tokens)[r*m.sequence:][:m.sequence]
		frame := m.tok.EncodeFixed("", m.sequence)
		copy(tokens, frame)
		copy(tokens[m.before+len(row.tokens):], frame[m.before:][:m.after])
		copy(tokens[m.before:], row.tokens)
		for k, at := range row.at {
			b.Int32(Places)[r*m.places+k] = int32(m.before + at)
		}
	}
	return b, len(all), of
}
