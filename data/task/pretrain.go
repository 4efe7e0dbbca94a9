package task

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/internal/leaf/uniform"
	"github.com/starling-fl/starling/model"
)

// Places is a column of texts with masked tokens: i32 [K], the positions that were masked.
const Places = "places"

// maskedShare of a text's tokens are told (Devlin et al. 2019).
const maskedShare = 0.15

// A Drawer is a Task that draws its rows anew for each pass of training.
type Drawer interface {
	// Draw is Encode, except that what Encode draws the same way each time is drawn from rnd.
	Draw(rnd io.Reader, e *dataset.Example, b Batch, row int) error
}

// masked is a text some of whose tokens are masked and to be told (Devlin et al. 2019):
// of those, 80 % are replaced by the tokenizer's mask, 10 % by a random token and 10 %
// left. Encode masks always the same tokens of a text; a device draws others, by its own
// randomness, each time that it learns from it.
type masked struct {
	columns          []Column
	tok              tokenizer.Tokenizer
	mask             tokenizer.MaskToken
	before, after    int // special tokens around a text
	sequence, places int
}

var pretrainKind = kind{columns: maskedColumns, takes: []dataset.Form{dataset.FormBare, dataset.FormTexts, dataset.FormLists, dataset.FormWords}, make: func(p parts) (Task, error) {
	return newMasked(p.columns, p.base, p.tok, p.sequence)
}}

func maskedColumns(l *model.Layout, sequence int) []Column {
	k := int(maskedShare*float64(sequence)) + 1
	return []Column{
		{Name: Tokens, Type: I32, Shape: []int{sequence}, Limit: l.Config.VocabSize},
		{Name: Places, Type: I32, Shape: []int{k}, Limit: sequence},
		{Name: Labels, Type: I32, Shape: []int{k}, Limit: l.Config.VocabSize},
		{Name: Weights, Type: F32, Shape: []int{k}},
	}
}

func newMasked(columns []Column, base *model.Base, tok tokenizer.Tokenizer, sequence int) (*masked, error) {
	m := &masked{columns: columns, tok: tok, sequence: sequence, places: columns[1].Size()}
	before, after := around(tok)
	m.before, m.after = len(before), len(after)
	var found bool
	m.mask, found = tokenizer.FindMask(base.Tokenizer, tok)
	switch {
	case !found:
		return nil, errors.New("task: the base's tokenizer has no [MASK] and no <mask>, which task pretrain writes")
	case sequence < m.before+m.after+1:
		return nil, fmt.Errorf("task: sequences of %d tokens have no room for a text", sequence)
	}
	return m, nil
}

func (m *masked) Columns() []Column { return m.columns }

// textOf is what an example says, whatever its kind.
func textOf(e *dataset.Example) string {
	if e.Text == "" {
		return strings.Join(e.Words, " ")
	}
	return e.Text
}

// Split cuts a text at its spaces into parts that fit; a word that does not is cut off.
func (m *masked) Split(e *dataset.Example) ([]dataset.Example, error) {
	room := m.sequence - m.before - m.after
	if text := textOf(e); len(m.tok.Encode(text)) <= room {
		return []dataset.Example{*e}, nil
	}
	var parts []dataset.Example
	var words []string
	used := 0
	end := func() {
		part := *e
		part.Text, part.Words, part.Tags, part.Boxes = strings.Join(words, " "), nil, nil, nil
		parts, words, used = append(parts, part), nil, 0
	}
	for _, word := range strings.Fields(textOf(e)) {
		n := len(m.tok.Encode(" " + word))
		if used > 0 && used+n > room {
			end()
		}
		words, used = append(words, word), used+n
	}
	if len(words) > 0 {
		end()
	}
	return parts, nil
}

// Encode writes a text and masks it as it always does.
func (m *masked) Encode(e *dataset.Example, b Batch, row int) error {
	return m.Draw(always(m.tok.EncodeFixed(textOf(e), m.sequence)), e, b, row)
}

// always is randomness that follows from a document's tokens alone.
func always(ids []int32) io.Reader {
	text := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		text = binary.LittleEndian.AppendUint32(text, uint32(id))
	}
	return rand.NewChaCha8(sha256.Sum256(text))
}

// Draw writes a text and masks tokens of it by rnd.
func (m *masked) Draw(rnd io.Reader, e *dataset.Example, b Batch, row int) error {
	if e.Form().Textless() {
		return errors.New("it is an image or a recording, and the job reads texts")
	}
	tokens := b.Int32(Tokens)[row*m.sequence:][:m.sequence]
	copy(tokens, m.tok.EncodeFixed(textOf(e), m.sequence))
	if m.length(tokens) == 0 {
		return errors.New("a text has no tokens")
	}
	return m.draw(rnd, b, row)
}

// length counts the tokens that may be masked, which are behind those before.
func (m *masked) length(tokens []int32) int {
	n := len(tokens)
	for n > 0 && tokens[n-1] == m.tok.PadID() {
		n--
	}
	return max(0, n-m.before-m.after)
}

// draw masks some of a row's tokens.
func (m *masked) draw(rnd io.Reader, b Batch, row int) error {
	tokens := b.Int32(Tokens)[row*m.sequence:][:m.sequence]
	at := row * m.places
	places, labels, weights := b.Int32(Places)[at:at+m.places], b.Int32(Labels)[at:at+m.places], b.Float32(Weights)[at:at+m.places]
	open := make([]int32, m.length(tokens))
	for i := range open {
		open[i] = int32(m.before + i)
	}
	clear(places)
	clear(labels)
	clear(weights)
	for i := range min(m.places, max(1, int(maskedShare*float64(len(open)))), len(open)) {
		j, err := uniform.Below(rnd, len(open)-i)
		if err != nil {
			return err
		}
		open[i], open[i+j] = open[i+j], open[i]
		place := open[i]
		places[i], labels[i], weights[i] = place, tokens[place], 1
		dice, err := uniform.Below(rnd, 10)
		if err != nil {
			return err
		}
		switch dice {
		case 9: // left as it is
		case 8:
			id, err := uniform.Below(rnd, m.tok.VocabSize())
			if err != nil {
				return err
			}
			if tokens[place] = int32(id); tokens[place] == m.tok.PadID() { // which would be no token
				tokens[place] = m.mask.ID
			}
		default:
			tokens[place] = m.mask.ID
		}
	}
	return nil
}

// Places are the masked positions that are predicted.
func (m *masked) Places(b Batch, row int) []int { at, _ := MaskedPlaces(b, row); return at }

// Truths are the tokens that were masked.
func (m *masked) Truths(_ *dataset.Example, b Batch, row int) [][]int { return truths(b, row) }

func truths(b Batch, row int) (out [][]int) {
	_, was := MaskedPlaces(b, row)
	for _, id := range was {
		out = append(out, []int{int(id)})
	}
	return out
}

// MaskedPlaces returns the rows of a masked text's columns that the model has to predict, and the tokens
// there.
func MaskedPlaces(b Batch, row int) (at []int, was []int32) {
	weights, _ := b.Column(Weights)
	n := weights.Size()
	for i, w := range weights.F32[row*n : (row+1)*n] {
		if w > 0 {
			at, was = append(at, i), append(was, b.Int32(Labels)[row*n+i])
		}
	}
	return at, was
}

func (m *masked) Choice() Choice                         { return OneOf }
func (m *masked) Open(e dataset.Example) dataset.Example { return e }

func (m *masked) Figures(s *Score, _, _ [][]int, _ []string) { s.perplexity("masked") }

func (s *Score) perplexity(of string) {
	p := math.Exp(s.Loss)
	s.Perplexity = &p
	s.Notes = append(s.Notes, fmt.Sprintf("perplexity %.2f, loss %.3f nats, of %s tokens, of which the accuracy is", p, s.Loss, of))
}
