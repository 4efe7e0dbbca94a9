package task

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// spelt is what a path of characters, one a frame, spells.
func spelt(path []int, blank int) []int {
	out := []int{}
	for i, c := range path {
		if c != blank && (i == 0 || c != path[i-1]) {
			out = append(out, c)
		}
	}
	return out
}

// everyText is the probability of each text: the sum over all paths that spell it.
func everyText(s Spelling, scores []float32) map[string]float64 {
	rows := s.logProbs(scores)
	out := map[string]float64{}
	path := make([]int, len(rows))
	var walk func(at int, p float64)
	walk = func(at int, p float64) {
		if at == len(rows) {
			out[textKey(spelt(path, s.Blank))] += math.Exp(p)
			return
		}
		for c := range s.Characters {
			path[at] = c
			walk(at+1, p+rows[at][c])
		}
	}
	walk(0, 0)
	return out
}

func drawnScores(rng *rand.Rand, n int, scale float64) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(scale * rng.NormFloat64())
	}
	return out
}

// The loss of a text, and the likeliest text, are those that all paths together give; a search
// that keeps few beginnings finds a text that is no likelier.
func TestSpellingIsAllPaths(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	better := 0
	for trial := range 200 {
		frames, characters := 1+rng.IntN(6), 2+rng.IntN(3)
		s := Spelling{Characters: characters, Blank: rng.IntN(characters), Beams: 1 << 20}
		scores := drawnScores(rng, frames*characters, 0.2+2*rng.Float64())
		all := everyText(s, scores)
		total, best := 0.0, 0.0
		for _, p := range all {
			total, best = total+p, max(best, p)
		}
		if math.Abs(total-1) > 1e-9 {
			t.Fatalf("the texts' probabilities sum up to %v", total)
		}
		text, p := s.Search(scores)
		if math.Abs(math.Exp(p)-best) > 1e-9 || math.Abs(all[textKey(text)]-best) > 1e-9 {
			t.Fatalf("trial %d: search finds %v with %v, the likeliest has %v", trial, text, math.Exp(p), best)
		}
		if got := s.Loss(scores, text); math.Abs(got+p) > 1e-9 {
			t.Fatalf("trial %d: loss %v of a text whose logarithm is %v", trial, got, p)
		}
		other := make([]int, rng.IntN(frames+1))
		for i := range other {
			other[i] = (s.Blank + 1 + rng.IntN(characters-1)) % characters
		}
		if got, want := math.Exp(-s.Loss(scores, other)), all[textKey(other)]; math.Abs(got-want) > 1e-9 {
			t.Fatalf("trial %d: %v has the probability %v, want %v", trial, other, got, want)
		}
		greedy := s.Greedy(scores)
		if all[textKey(greedy)] > best+1e-12 {
			t.Fatalf("trial %d: greedy is likelier than the likeliest", trial)
		}
		if all[textKey(greedy)] < best-1e-12 {
			better++
		}
		s.Beams = 2
		if few, _ := s.Search(scores); all[textKey(few)] > best+1e-12 {
			t.Fatalf("trial %d: two beams are likelier than all", trial)
		}
		s.Mean = true
		if got, want := s.LogProbability(scores, other), math.Log(all[textKey(other)]); got != want && math.Abs(math.Exp(got)-math.Exp(want)) > 1e-9 {
			t.Fatalf("trial %d: %v has the logarithm %v, want %v", trial, other, got, want)
		}
		if p := all[textKey(s.Predicted(scores))]; p < all[textKey(greedy)]-1e-12 {
			t.Fatalf("trial %d: a search's answer is less likely than each frame's best", trial)
		}
	}
	if better == 0 {
		t.Error("greedy was never less likely: the trials tell nothing of a search")
	}
}

func TestSpellingGreedy(t *testing.T) {
	s := Spelling{Characters: 3, Blank: 1}
	scores := []float32{}
	for _, c := range []int{0, 0, 1, 0, 2, 2, 1, 1, 2, 1} {
		row := []float32{0, 0, 0}
		row[c] = 1
		scores = append(scores, row...)
	}
	if got := s.Predicted(scores); !slices.Equal(got, []int{0, 0, 2, 2}) {
		t.Errorf("spells %v", got)
	}
	if n := s.Frames([]int32{0, 0, 2, 2, 2}); n != 8 {
		t.Errorf("needs %d frames, want 8", n)
	}
	if loss := s.Loss(scores[:6], []int{0, 0}); !math.IsInf(loss, 1) {
		t.Errorf("two frames spell two letters that are the same with the loss %v", loss)
	}
	if loss := (Spelling{Characters: 3, Blank: 1, Mean: true}).Loss(scores, []int{0, 0, 2, 2}); math.Abs(4*loss-s.Loss(scores, []int{0, 0, 2, 2})) > 1e-12 {
		t.Errorf("mean %v", loss)
	}
}
