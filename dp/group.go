package dp

import (
	"errors"
	"fmt"
	"math"
)

// ErrVisible reports amplification claimed for a coin that the adversary sees.
var ErrVisible = errors.New("participation is visible: its coin does not amplify")

// ErrNorm reports a vector above its integer norm bound.
var ErrNorm = errors.New("norm above the bound")

// GroupSampling describes privacy of groups (providers) that live inside
// clients as virtual clients: a client takes part by a coin of its own, and inside it
// each provider by another. All providers of a client share the client's coin. Two
// adjacent worlds differ in one provider.
//
// The product of the two rates may be used only against adversaries who do not see
// which clients took part. Whoever sees that, knows the outcome of the first coin;
// only the second, flipped inside the client, still hides a provider. The published
// competition baseline with noise multiplier 0.7715 reaches epsilon 14.46 instead of 8
// that way.
type GroupSampling struct {
	ClientRate   float64 // in (0, 1]
	ProviderRate float64 // in (0, 1]
	// Hidden claims that nobody whom the guarantee is about sees which clients took
	// part in which round.
	Hidden bool
}

func (g GroupSampling) check() error {
	if !(g.ClientRate > 0 && g.ClientRate <= 1) || !(g.ProviderRate > 0 && g.ProviderRate <= 1) {
		return fmt.Errorf("dp: client rate %v and provider rate %v, want both in (0, 1]", g.ClientRate, g.ProviderRate)
	}
	return nil
}

// ProductRate returns ClientRate*ProviderRate, or ErrVisible where the clients'
// participation is not claimed to be hidden.
func (g GroupSampling) ProductRate() (float64, error) {
	if err := g.check(); err != nil {
		return 0, err
	}
	if !g.Hidden && g.ClientRate < 1 {
		return 0, fmt.Errorf("dp: rate %v*%v: %w", g.ClientRate, g.ProviderRate, ErrVisible)
	}
	return g.ClientRate * g.ProviderRate, nil
}

// AccountedRate is the sampling rate for a ledger event: the product where
// participation is hidden, else the provider's rate alone (every round counted as one
// in which the client took part, which is an upper bound).
func (g GroupSampling) AccountedRate() (float64, error) {
	if g.Hidden {
		return g.ProductRate()
	}
	return g.ProviderRate, g.check()
}

// Epsilon returns the guarantee of one provider over a number of rounds with
// noise multiplier z. With visible participation the number of rounds in which the
// client took part is averaged over exactly: it is part of what the adversary sees.
func (g GroupSampling) Epsilon(z float64, rounds int, delta float64, acct Accountant) (Guarantee, error) {
	if err := g.check(); err != nil {
		return Guarantee{}, err
	}
	if !(z > 0) || math.IsInf(z, 1) || rounds < 1 {
		return Guarantee{}, fmt.Errorf("dp: noise multiplier %v over %d rounds, want finite, positive and at least 1", z, rounds)
	}
	if _, err := CheckDelta(delta, 0); err != nil {
		return Guarantee{}, err
	}
	acct, err := ParseAccountant(string(acct))
	if err != nil {
		return Guarantee{}, err
	}
	p := part{q: g.ProviderRate, z: z, rounds: rounds, seen: g.ClientRate}
	var want query
	if g.Hidden {
		p.q, p.seen = g.ClientRate*g.ProviderRate, 1
	} else if g.ClientRate < 1 {
		want.visible = true
	}
	c := composition{sampled: p.q < 1 || p.seen < 1}
	c.add(p)
	out, err := c.account(delta, acct, want)
	out.Adjacency = AdjacencyProvider
	return out, err
}

// AddProvider adds one provider's symbols to its client's vector after checking
// the provider's own integer norm: sum of squares at most b2. That bound, per
// provider, is the sensitivity; the client's vector as a whole has none.
func AddProvider(sum []int32, symbols []int32, b2 int64) error {
	if len(sum) != len(symbols) {
		return fmt.Errorf("dp: provider's vector has %d symbols, the client's %d", len(symbols), len(sum))
	}
	norm2 := int64(0)
	for i, s := range symbols {
		v := int64(s)
		if norm2 += v * v; norm2 > b2 || norm2 < 0 {
			return fmt.Errorf("dp: provider's squared norm passes %d at symbol %d: %w", b2, i, ErrNorm)
		}
		if x := int64(sum[i]) + v; x != int64(int32(x)) {
			return fmt.Errorf("dp: client's sum overflows at symbol %d: %w", i, ErrNorm)
		}
	}
	for i, s := range symbols {
		sum[i] += s
	}
	return nil
}
