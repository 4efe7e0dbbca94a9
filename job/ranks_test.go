package job

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func parsed(t *testing.T, more string) Job {
	t.Helper()
	j, err := Parse(strings.NewReader("name: x\nlabels: [a, b]\n" + more))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// Ranks are drawn as distributed: a chi-square of 9 classes over 45,000 draws, which errs
// once in a million (the seed is fixed: in every run or in none).
func TestRanksAreDrawnAsDistributed(t *testing.T) {
	weights := []float64{3, 0, 1, 5, 2, 0, 1, 1, 7}
	for name, c := range map[string]struct {
		yaml string
		p    func(i int) float64
	}{
		"uniform":   {"adapter: {rank_min: 2, rank_max: 10}", func(int) float64 { return 1 }},
		"geometric": {"adapter: {rank_min: 2, rank_max: 10, rank_distribution: geometric}", func(i int) float64 { return math.Pow(0.85, float64(i)) }},
		"weights": {"adapter: {rank_min: 2, rank_max: 10, rank_distribution: weights, rank_weights: [3, 0, 1, 5, 2, 0, 1, 1, 7]}",
			func(i int) float64 { return weights[i] }},
	} {
		j := parsed(t, c.yaml)
		allowed := map[int]bool{}
		for _, b := range j.Ranks() {
			allowed[b] = true
		}
		rnd := rand.NewChaCha8([32]byte{9})
		const n = 45_000
		seen, sum := make([]float64, 9), 0.0
		for i := range seen {
			sum += c.p(i)
		}
		for range n {
			b, err := j.Adapter.DrawRank(rnd)
			if err != nil {
				t.Fatal(err)
			}
			if !allowed[b] {
				t.Fatalf("%s: rank %d was drawn, the job's are %v", name, b, j.Ranks())
			}
			seen[b-2]++
		}
		chi := 0.0
		for i, k := range seen {
			if want := n * c.p(i) / sum; want > 0 {
				chi += (k - want) * (k - want) / want
			}
		}
		if chi > 42.7 { // 8 degrees of freedom, 1e-6
			t.Errorf("%s: chi-square %.1f of %v", name, chi, seen)
		}
	}
}

// A job that does not name the new keys, or names their defaults, is the job of before:
// stores know it by its JSON, and devices remake programs from it.
func TestDefaultsOfRanksLeaveNoTrace(t *testing.T) {
	plain, err := json.Marshal(parsed(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	named, err := json.Marshal(parsed(t, "adapter: {scale: rank, rank_distribution: uniform}\nprivacy: {clip_by_rank: false}"))
	if err != nil {
		t.Fatal(err)
	}
	if string(plain) != string(named) {
		t.Errorf("%s\n%s", plain, named)
	}
	for _, key := range []string{"Scale", "RankDistribution", "RankWeights", "ClipByRank"} {
		if strings.Contains(string(plain), `"`+key+`"`) {
			t.Errorf("a job of before has the key %s", key)
		}
	}
	if s := parsed(t, "").Method().Scale(2); s != 0 { // alpha follows from the base
		t.Errorf("scale %v", s)
	}
	old, now := parsed(t, "adapter: {alpha: 4}").Method(), parsed(t, "adapter: {alpha: 4, scale: constant}").Method()
	if old.Scale(2) != 2 || now.Scale(2) != 0.5 || old.Scale(8) != now.Scale(8) {
		t.Errorf("scales %v and %v at rank 2, %v and %v at 8", old.Scale(2), now.Scale(2), old.Scale(8), now.Scale(8))
	}
}

func TestRefusalsOfRanks(t *testing.T) {
	for _, c := range []struct{ yaml, names string }{
		{"adapter: {scale: sqrt}", "adapter.scale"},
		{"adapter: {rank_distribution: zipf}", "adapter.rank_distribution"},
		{"adapter: {rank_distribution: weights}", "adapter.rank_weights"},
		{"adapter: {rank_weights: [1, 1, 1, 1, 1, 1, 1, 1]}", "adapter.rank_distribution"},
		{"adapter: {rank_distribution: weights, rank_weights: [1, 1]}", "adapter.rank_weights has 2"},
		{"adapter: {rank_max: 2, rank_distribution: weights, rank_weights: [0, 0]}", "all 0"},
		{"adapter: {rank_max: 2, rank_distribution: weights, rank_weights: [1, -1]}", "rank_weights[1]"},
		{"adapter: {rank_max: 2, rank_distribution: weights, rank_weights: [1, 262145]}", "rank_weights[1]"},
		{"adapter: {method: bitfit, scale: constant}", "adapter.scale"},
		{"adapter: {method: full, rank_distribution: geometric}", "adapter.rank_distribution"},
		{"adapter: {head_only: true}\nprivacy: {clip_by_rank: true}", "privacy.clip_by_rank"},
	} {
		_, err := Parse(strings.NewReader("name: x\nlabels: [a, b]\n" + c.yaml))
		if err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: %v", c.yaml, err)
		}
	}
}
