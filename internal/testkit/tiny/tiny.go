// Package tiny makes a base that tests train in milliseconds.
package tiny

import (
	"slices"
	"testing"

	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/model"
)

// Base is an encoder of one layer with a real tokenizer and weights that differ. It
// takes hidden values a token over so many positions.
func Base(t testing.TB, hidden, heads, positions int) *model.Base {
	t.Helper()
	tok, err := tokenizer.Train(slices.Values([]string{"the quick brown fox", "jumps over the lazy dog"}), 64)
	if err != nil {
		t.Fatal(err)
	}
	text, err := tok.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return Filled(t, model.BERT(tok.VocabSize(), hidden, 1, heads, positions), 20, text)
}

// Filled is a base of any shape whose weights differ from place to place, 11 values within
// 5/over of zero, with a tokenizer (its tokenizer.json).
func Filled(t testing.TB, c model.Config, over float32, text []byte) *model.Base {
	t.Helper()
	var tensors []model.Tensor
	for i, s := range c.BaseTensors() {
		data := make([]float32, model.Elements(s.Shape))
		for k := range data {
			data[k] = float32((k*7+i*13)%11-5) / over
		}
		tensors = append(tensors, model.Tensor{Name: s.Name, Shape: s.Shape, Data: data})
	}
	base, err := model.NewBase(c, tensors, text, model.F32)
	if err != nil {
		t.Fatal(err)
	}
	return base
}
