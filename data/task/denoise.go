package task

import (
	"errors"
	"io"
	"slices"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/internal/leaf/uniform"
	"github.com/starling-fl/starling/model"
)

// denoise is a document of which something is hidden, which a base with a decoder writes:
// federated self-pretraining (Wang et al. 2023, section 3.3, after UDOP, Tang et al. 2023).
// Each time that a document is learnt from one of the objectives is drawn, and tokens of
// it, each by its own coin: texts from where they stand, places from texts, and both.
// Encode draws always alike, from the document.
type denoise struct {
	form       *answer
	objectives []objective
}

// An objective hides up to most tokens, of twenty share; each makes the document longer by
// grows tokens, and takes writes of what is written.
type objective struct {
	share, most   int
	grows, writes int
	hide          func(l int, id int32, box [4]int32) (in []int32, at [][4]int32, out []int32)
}

var denoiseKind = kind{columns: answerColumns, takes: []dataset.Form{dataset.FormBare, dataset.FormQuestions}, make: func(p parts) (Task, error) {
	return newDenoise(p.columns, p.tok, p.layout, p.sequence)
}}

func newDenoise(columns []Column, tok tokenizer.Tokenizer, l *model.Layout, sequence int) (*denoise, error) {
	s, err := newSentinels(tok, l.Config)
	if err != nil {
		return nil, err
	}
	d := &denoise{form: newAnswer(columns, tok, l, sequence)}
	for _, name := range l.Method.ObjectiveNames() {
		d.objectives = append(d.objectives, map[string]objective{
			"TM": {10, len(s.text), 4, 2, s.hideText}, "LM": {15, len(s.layout), 2, 5, s.hidePlace}, "TLM": {3, len(s.both), 0, 6, s.hideBoth},
		}[name])
	}
	return d, nil
}

func (d *denoise) Columns() []Column { return d.form.columns }

// Same reports whether two examples are questions about one document, which is learnt from
// once.
func (d *denoise) Same(a, b *dataset.Example) bool {
	return a.User == b.User && a.Text == b.Text && slices.Equal(a.Words, b.Words) && slices.Equal(a.Boxes, b.Boxes)
}

// Encode hides the same parts of a document each time.
func (d *denoise) Encode(e *dataset.Example, b Batch, row int) error {
	ids, boxes, err := d.document(e)
	if err != nil {
		return err
	}
	return d.draw(always(ids), e, ids, boxes, b, row)
}

// Draw hides something by rnd.
func (d *denoise) Draw(rnd io.Reader, e *dataset.Example, b Batch, row int) error {
	ids, boxes, err := d.document(e)
	if err != nil {
		return err
	}
	return d.draw(rnd, e, ids, boxes, b, row)
}

// document is what fits a row if nothing is hidden.
func (d *denoise) document(e *dataset.Example) (ids []int32, boxes [][4]int32, err error) {
	if len(e.Boxes) == 0 {
		return nil, nil, errors.New("a document has no boxes of its words, which the task learns")
	}
	ids, boxes, err = d.form.read(e)
	if err == nil && len(ids) == 0 {
		err = errors.New("a document has no tokens")
	}
	n := min(len(ids), d.form.sequence-1)
	return ids[:n], boxes[:n], err
}

func (d *denoise) draw(rnd io.Reader, e *dataset.Example, ids []int32, boxes [][4]int32, b Batch, row int) error {
	k, err := uniform.Below(rnd, len(d.objectives))
	if err != nil {
		return err
	}
	o := d.objectives[k]
	picked, err := o.pick(rnd, len(ids), (d.form.tokens-1)/o.writes)
	if err != nil {
		return err
	}
	in, at, out := o.rewrite(ids, boxes, picked, d.form.sequence-1)
	d.form.source(b, row, nil, in, at)
	d.form.target(b, row, out)
	return d.form.pixels(e, b, row)
}

// pick draws which of n tokens are hidden, rising: each with the objective's probability,
// and where those are more than room, or than there are sentinels, so many of them.
func (o objective) pick(rnd io.Reader, n, room int) (picked []int, err error) {
	for i := range n {
		coin, err := uniform.Below(rnd, 20)
		if err != nil {
			return nil, err
		}
		if coin < o.share {
			picked = append(picked, i)
		}
	}
	if len(picked) == 0 { // a short document teaches something all the same
		i, err := uniform.Below(rnd, n)
		if err != nil {
			return nil, err
		}
		picked = []int{i}
	}
	if most := min(o.most, max(1, room)); len(picked) > most {
		if err := uniform.Shuffle(rnd, picked); err != nil {
			return nil, err
		}
		picked = picked[:most]
		slices.Sort(picked)
	}
	return picked, nil
}

// rewrite hides the picked tokens, which rise: what is read of them, where that stands, and
// what is written. Hiding makes a document longer: what is then beyond room is cut, and what
// of it was to be written.
func (o objective) rewrite(ids []int32, boxes [][4]int32, picked []int, room int) (in []int32, at [][4]int32, out []int32) {
	l := 0
	for i, id := range ids {
		if l == len(picked) || picked[l] != i {
			if len(in) == room {
				break
			}
			in, at = append(in, id), append(at, boxes[i])
			continue
		}
		if len(in)+1+o.grows > room {
			break
		}
		x, y, z := o.hide(l, id, boxes[i])
		in, at, out = append(in, x...), append(at, y...), append(out, z...)
		l++
	}
	return in, at, out
}

// Places are the positions of the written tokens.
func (d *denoise) Places(b Batch, row int) []int { at, _ := MaskedPlaces(b, row); return at }

// Truths are the tokens that are written.
func (d *denoise) Truths(_ *dataset.Example, b Batch, row int) [][]int { return truths(b, row) }

func (d *denoise) Choice() Choice                         { return OneOf }
func (d *denoise) Open(e dataset.Example) dataset.Example { return e }

func (d *denoise) Figures(s *Score, _, _ [][]int, _ []string) { s.perplexity("written") }
