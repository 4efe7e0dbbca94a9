package leak

import (
	"cmp"
	"context"
	"slices"
)

// What an attack looks for.
const (
	Tokens = "tokens"
	Labels = "labels"
)

// attack is one way to read an update, and what it has found so far.
type attack struct {
	name, of string
	why      string // it cannot be tried; "": it can
	slow     bool   // because a training takes too long
	// prepared, where it is not nil, is what the attacker does once, before it has an update;
	// it may find that the attack cannot be tried.
	prepared func(ctx context.Context) (why string, err error)
	// tokens scores every token: the more, the likelier that it is there. It may find that
	// there is nothing more to look for.
	tokens func(ctx context.Context, u *update) ([]float64, error)
	// labels guesses how often each label is there.
	labels func(u *update) []int

	in, out tally
}

// attacks are those that the settings have room for, and why not of the others.
func (p *probe) attacks() []*attack {
	rows, inputs, labels := p.tokenRows(), p.layerInputs(), p.labelCounts()
	return []*attack{&rows, &inputs, p.matching(&labels, &rows, &inputs), &labels}
}

func (a *attack) prepare(ctx context.Context) (err error) {
	if a.why == "" && a.prepared != nil {
		a.why, err = a.prepared(ctx)
	}
	return err
}

// play reads an update and counts what it got right, of what is in the update and of what
// is not.
func (a *attack) play(ctx context.Context, u *update) error {
	switch {
	case a.why != "":
	case a.of == Labels:
		guess := a.labels(u)
		a.in.add(overlap(guess, u.in.labels), total(u.in.labels))
		a.out.add(overlap(guess, u.out.labels), total(u.out.labels))
	default:
		score, err := a.tokens(ctx, u)
		if err != nil || a.why != "" {
			return err
		}
		// The attacker is told how many there are. What both texts have tells nothing: any
		// text has it.
		guess := best(score, len(u.in.tokens))
		a.in.addTokens(guess, u.in.tokens, u.out.tokens)
		a.out.addTokens(guess, u.out.tokens, u.in.tokens)
	}
	return nil
}

// best are the n tokens with the highest scores, none whose score is 0.
func best(score []float64, n int) map[int32]bool {
	ids := make([]int32, 0, len(score))
	for id, s := range score {
		if s > 0 {
			ids = append(ids, int32(id))
		}
	}
	slices.SortStableFunc(ids, func(a, b int32) int { return cmp.Compare(score[b], score[a]) })
	guess := map[int32]bool{}
	for _, id := range ids[:min(n, len(ids))] {
		guess[id] = true
	}
	return guess
}

func (t *tally) addTokens(guess, there, elsewhere map[int32]bool) {
	right, all := 0, 0
	for id := range there {
		if elsewhere[id] {
			continue
		}
		if all++; guess[id] {
			right++
		}
	}
	t.add(right, all)
}

// overlap is how many labels two counts have in common.
func overlap(a, b []int) (n int) {
	for i := range a {
		n += min(a[i], b[i])
	}
	return n
}

func total(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

func (a *attack) result() Attack {
	r := Attack{Name: a.name, Of: a.of, NotTried: a.why}
	if a.why != "" {
		return r
	}
	r.Found, r.All, r.OtherFound, r.OtherAll = a.in.right, a.in.all, a.out.right, a.out.all
	r.Share, r.Low, r.High = beyond(&a.in, &a.out)
	return r
}
