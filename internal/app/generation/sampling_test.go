package generation

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
)

// What may be drawn, and how likely it is, is what transformers' processors make of scores.
func TestProbabilitiesMatchTransformers(t *testing.T) {
	data, err := os.ReadFile("testdata/sampling.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Cases []struct {
			Sampling
			Scores        []float32
			Text          []int32
			Probabilities []float64
		}
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Cases) != 8 {
		t.Fatalf("%d cases", len(golden.Cases))
	}
	for i, c := range golden.Cases {
		s := c.Sampling.sampler()
		s.repeat(c.Scores, c.Text)
		ids, p := s.probabilities(c.Scores)
		got := make([]float64, len(c.Scores))
		for k, id := range ids {
			got[id] = p[k]
		}
		for k := range got {
			if d := math.Abs(got[k] - c.Probabilities[k]); !(d < 1e-6) {
				t.Errorf("case %d: token %d has %v, want %v", i, k, got[k], c.Probabilities[k])
			}
		}
	}
}

// Draws follow the probabilities, one seed always draws the same, and without temperature
// the likeliest comes. Of 4,000 draws of a token of 0.6 fewer than 2,250 or more than 2,550
// would come by chance once in a million times.
func TestDraws(t *testing.T) {
	scores := func() []float32 { return []float32{float32(math.Log(0.6)), float32(math.Log(0.4)), -100} }
	draw := func(seed uint64) (n int, all []int32) {
		s := Sampling{Temperature: 1, TopP: 1, Repetition: 1, Seed: seed}.sampler()
		for range 4000 {
			id := s.next(scores(), nil)
			if all = append(all, id); id == 0 {
				n++
			}
		}
		return n, all
	}
	n, one := draw(5)
	if _, again := draw(5); n < 2250 || n > 2550 || !slices.Equal(one, again) {
		t.Errorf("%d of 4,000 draws", n)
	}
	if _, other := draw(6); slices.Equal(one, other) {
		t.Error("another seed draws the same")
	}
	if id := (Sampling{TopP: 1, Repetition: 2}).sampler().next([]float32{1, 0.9}, []int32{0, 0}); id != 1 {
		t.Errorf("%d: a token that stands in the text is penalised once", id)
	}
	for _, bad := range []Sampling{{TopP: 0, Repetition: 1}, {TopP: 1.1, Repetition: 1}, {TopP: 1}, {Temperature: -1, TopP: 1, Repetition: 1},
		{Temperature: math.NaN(), TopP: 1, Repetition: 1}, {TopK: -1, TopP: 1, Repetition: 1}, {TopP: 1, Repetition: math.Inf(1)}} {
		if bad.Validate() == nil {
			t.Errorf("%+v", bad)
		}
	}
}
