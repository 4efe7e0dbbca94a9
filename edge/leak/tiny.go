package leak

import (
	"context"
	"slices"
	"time"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/model"
)

// TinySequence is the number of tokens of an example on a tiny base.
const TinySequence = 8

// TinyBase returns an untrained encoder of two narrow layers, whose training steps take less than a
// millisecond.
func TinyBase() (*model.Base, error) {
	set, err := dataset.Invoices(dataset.InvoiceConfig{Seed: 1, Split: "train", Clients: 4, PerClient: 20})
	if err != nil {
		return nil, err
	}
	texts := func(yield func(string) bool) {
		for i := range set.Examples {
			if !yield(set.Examples[i].Text) {
				return
			}
		}
	}
	tok, err := tokenizer.Train(texts, 500)
	if err != nil {
		return nil, err
	}
	text, err := tok.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return model.RandomBase(model.BERT(tok.VocabSize(), 32, 2, 2, TinySequence), 1, text)
}

// onTiny is gradient matching at the same settings on a tiny base and short texts, where
// the job's own takes too long for it: whether rounding and noise leave the direction of a
// text's gradient to be seen. What it finds is of that base, and not of the job's.
func onTiny(ctx context.Context, o Options, left time.Duration) (*Attack, error) {
	o.Data, o.Lasts = nil, max(left, o.Lasts/4, time.Second)
	found, err := tryTiny(ctx, o)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil { // a method that it does not have, say: the job's own base was tried
		found = &Attack{Of: Tokens, NotTried: err.Error()}
	}
	found.Name, found.Tiny = nameMatching+" on a tiny base", true
	return found, nil
}

func tryTiny(ctx context.Context, o Options) (*Attack, error) {
	s, err := o.Tiny(ctx)
	if err != nil {
		return nil, err
	}
	p, err := newProbe(s, o)
	if err != nil {
		return nil, err
	}
	if err := p.chooseRate(ctx); err != nil {
		return nil, err
	}
	attacks := p.attacks()
	for _, a := range attacks {
		if err := a.prepare(ctx); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	for trial := 0; trial < o.Trials && (trial < 2 || time.Since(began) < o.Lasts); trial++ {
		if err := p.try(ctx, trial, attacks); err != nil {
			return nil, err
		}
	}
	at := slices.IndexFunc(attacks, func(a *attack) bool { return a.name == nameMatching })
	found := attacks[at].result()
	return &found, nil
}
