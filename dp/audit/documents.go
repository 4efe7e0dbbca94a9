package audit

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Bound is the result of guessing about canaries that are somebody's documents.
type Bound struct {
	Canaries   int       `json:"canaries"`
	Confidence float64   `json:"confidence"`
	Epsilon    float64   `json:"epsilon_lower"`
	Most       float64   `json:"epsilon_most"` // if every guess were right
	Best       Guesses   `json:"best"`
	Guesses    []Guesses `json:"guesses"`
}

// Documents bounds the epsilon of one training run from below by real members. Each of them was in
// by a fair coin of its own, flipped before the run (Steinke, Nasr, Jagielski 2023), and has a
// score, computed without the coins, of how likely it was in. Equal scores are taken in a random
// order. The bound exceeds the truth with probability at most level.
func Documents(name string, scores []float64, in []bool, delta, level float64, seed uint64) (b Bound, err error) {
	n := usable(len(scores))
	if n == 0 || len(in) != len(scores) {
		return b, fmt.Errorf("%w: %d scores of %d canaries, want at least %d", ErrConfig, len(scores), len(in), leastGuesses)
	}
	order := rand.New(rand.NewPCG(seed, 0x646f)).Perm(len(scores))
	mixed, coins := make([]float64, len(scores)), make([]bool, len(scores))
	for to, from := range order {
		mixed[to], coins[to] = scores[from], in[from]
		if math.IsNaN(scores[from]) {
			return b, fmt.Errorf("%w: canary %d has no score", ErrConfig, from)
		}
	}
	b.Canaries, b.Confidence = len(scores), 1-level
	if b.Guesses, err = guesses(name, mixed, coins, delta, level/float64(n)); err != nil {
		return b, err
	}
	for _, g := range b.Guesses {
		if g.Epsilon >= b.Epsilon {
			b.Epsilon, b.Best = g.Epsilon, g
		}
		most, err := LowerBound(len(scores), g.In+g.Out, g.In+g.Out, delta, level/float64(n))
		if err != nil {
			return b, err
		}
		b.Most = max(b.Most, most)
	}
	return b, nil
}
