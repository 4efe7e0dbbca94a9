package audit

import (
	"cmp"
	"slices"
)

// Guesses are the result of one way of scoring the run: how many of the highest scores were guessed
// in, how many of the lowest out, and how many were right.
type Guesses struct {
	Score   string  `json:"score"` // the way of looking, see Scores
	In      int     `json:"in"`
	Out     int     `json:"out"`
	Right   int     `json:"right"`
	Epsilon float64 `json:"epsilon_lower"` // at its share of the level
}

// share is how many are guessed, as parts of the canaries.
type share struct{ in, out float64 }

// shares is tried for each score. Every entry costs a part of the level, so that they
// are few: everybody; those at either end, for a job that shows something of each;
// the highest alone, for one that shows much of few (those who were drawn).
var shares = []share{{0.5, 0.5}, {0.125, 0.125}, {0.03125, 0.03125}, {0.0625, 0}}

// leastGuesses is the number below which guesses prove nothing worth having.
const leastGuesses = 8

// guesses takes the highest scores for in and the lowest for out; in says who was.
func guesses(score string, scores []float64, in []bool, delta, level float64) ([]Guesses, error) {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[a], scores[b]) })
	var out []Guesses
	for _, s := range shares {
		g := s.of(len(order))
		if g.In+g.Out < leastGuesses {
			continue
		}
		for _, i := range order[:g.Out] {
			if !in[i] {
				g.Right++
			}
		}
		for _, i := range order[len(order)-g.In:] {
			if in[i] {
				g.Right++
			}
		}
		var err error
		if g.Epsilon, err = LowerBound(len(order), g.In+g.Out, g.Right, delta, level); err != nil {
			return nil, err
		}
		g.Score = score
		out = append(out, g)
	}
	return out, nil
}

// of is how many of n canaries are guessed.
func (s share) of(n int) Guesses {
	return Guesses{In: int(s.in * float64(n)), Out: int(s.out * float64(n))}
}

// usable is how many shares of n canaries are guesses enough.
func usable(n int) int {
	count := 0
	for _, s := range shares {
		if g := s.of(n); g.In+g.Out >= leastGuesses {
			count++
		}
	}
	return count
}
