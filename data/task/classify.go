package task

import (
	"errors"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/model"
)

// classify is one label for a text.
type classify struct {
	whole
	columns  []Column
	tok      tokenizer.Tokenizer
	sequence int
}

var classifyKind = kind{columns: classifyColumns, takes: []dataset.Form{dataset.FormTexts}, make: func(p parts) (Task, error) {
	return &classify{columns: p.columns, tok: p.tok, sequence: p.sequence}, nil
}}

func classifyColumns(l *model.Layout, sequence int) []Column {
	return []Column{
		{Name: Tokens, Type: I32, Shape: []int{sequence}, Limit: l.Config.VocabSize},
		{Name: Labels, Type: I32, Limit: l.Classes},
		{Name: Weights, Type: F32},
	}
}

func (c *classify) Columns() []Column { return c.columns }

func (c *classify) Encode(e *dataset.Example, b Batch, row int) error {
	if e.Image != nil || e.Recording != nil || e.Tags != nil || e.Labels != nil {
		return errors.New("it is an image, a recording, tagged words, or has a list of labels, and the job gives a text one label")
	}
	copy(b[0].I32[row*c.sequence:], c.tok.EncodeFixed(e.Text, c.sequence))
	b[1].I32[row], b[2].F32[row] = int32(e.Label), 1
	return nil
}
