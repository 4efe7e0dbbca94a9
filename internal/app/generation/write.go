package generation

import (
	"context"
	"errors"
	"math"
	"strings"

	"github.com/starling-fl/starling/model/nn"
)

// writing is a text that is being written.
type writing struct {
	m       *Model
	r       Request
	text    *nn.Writing
	out     *Text
	each    func(Part) error
	sampler *sampler
	object  *object // what the text may go on with; nil: with anything
	all     []int32 // tokens of the prompt, and of what is written
	read    int     // of these are the prompt's
	echoed  string  // what the text begins with
	runes   int     // characters of the tokens that are told
	sent    int     // of the tokens that are told, how many each was given
}

// errNoJSON is a vocabulary that cannot spell JSON out.
var errNoJSON = errors.New("no token of the vocabulary goes on with the JSON object")

func (w *writing) run(ctx context.Context) error {
	scores, err := w.begin(ctx)
	if err != nil {
		return err
	}
	for range w.r.Most {
		if scores == nil {
			if scores, err = w.text.Read(ctx, w.all[len(w.all)-1:]); err != nil {
				return err
			}
		}
		var told *likelihoods
		if w.r.Told {
			if told, err = w.m.likelihoods(scores, w.r.Likely); err != nil {
				return err
			}
		}
		if w.object != nil && !w.object.mask(scores, w.m.vocabulary()) {
			return errNoJSON
		}
		id := w.sampler.next(scores, w.all, w.read)
		scores = nil
		if told != nil {
			w.tell(told, id)
		}
		if w.m.ends.Has(id) {
			w.out.Ended = EndStop
			break
		}
		w.all, w.out.Tokens = append(w.all, id), w.out.Tokens+1
		now := w.echoed + w.m.task.Text(w.all[w.read:])
		if at := firstOf(now[len(w.echoed):], w.r.Stops); at >= 0 {
			w.out.Ended = EndStop
			return w.grow(now[:len(w.echoed)+at])
		}
		if w.object != nil {
			if w.object.take(w.m.vocabulary()[id]); w.object.whole() {
				w.out.Ended = EndStop
				break
			}
		}
		if err := w.grow(now[:len(w.echoed)+settled(now[len(w.echoed):], w.r.Stops)]); err != nil {
			return err
		}
	}
	return w.grow(w.echoed + strings.ToValidUTF8(w.m.task.Text(w.all[w.read:]), "\uFFFD"))
}

// begin reads the prompt, of which it tells what is asked for, and returns the scores behind it.
func (w *writing) begin(ctx context.Context) (scores []float32, err error) {
	if w.r.Echo {
		if w.echoed = w.r.Prompt; len(w.r.Tokens) > 0 {
			w.echoed = strings.ToValidUTF8(w.m.task.Text(w.all), "\uFFFD")
		}
	}
	if !w.r.Echo || !w.r.Told {
		if w.r.Most == 0 {
			return nil, w.grow(w.echoed)
		}
		if scores, err = w.text.Read(ctx, w.all); err == nil && w.echoed != "" {
			err = w.grow(w.echoed)
		}
		return scores, err
	}
	w.tell(nil, w.all[0]) // nothing comes before it
	if err := w.text.Score(ctx, w.all, func(i int, row []float32) error {
		if i == len(w.all)-1 {
			scores = row
			return nil
		}
		told, err := w.m.likelihoods(row, w.r.Likely)
		if err == nil {
			w.tell(told, w.all[i+1])
		}
		return err
	}); err != nil {
		return nil, err
	}
	return scores, w.grow(w.echoed)
}

// tell notes a token with its probability, and those of others at its place.
func (w *writing) tell(at *likelihoods, id int32) {
	t := Token{Likely: w.m.likely(id, math.NaN()), At: w.runes}
	if at != nil {
		t.Logprob, t.Top = at.of(id), at.top
	}
	w.out.Told = append(w.out.Told, t)
	w.runes += len([]rune(t.Text))
}

// grow gives each what the text has more than before.
func (w *writing) grow(text string) error {
	if len(text) < len(w.out.Text) || !strings.HasPrefix(text, w.out.Text) {
		return nil
	}
	part := Part{text[len(w.out.Text):], w.out.Told[w.sent:]}
	w.out.Text, w.sent = text, len(w.out.Told)
	if w.each == nil || part.Text == "" && len(part.Told) == 0 {
		return nil
	}
	return w.each(part)
}
