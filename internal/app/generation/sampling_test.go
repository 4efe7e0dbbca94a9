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
			id := s.next(scores(), nil, 0)
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
	if id := (Sampling{TopP: 1, Repetition: 2}).sampler().next([]float32{1, 0.9}, []int32{0, 0}, 2); id != 1 {
		t.Errorf("%d: a token that stands in the text is penalised once", id)
	}
	for _, bad := range []Sampling{{TopP: 0, Repetition: 1}, {TopP: 1.1, Repetition: 1}, {TopP: 1}, {Temperature: -1, TopP: 1, Repetition: 1},
		{Temperature: math.NaN(), TopP: 1, Repetition: 1}, {TopP: 1, Repetition: 1, Presence: 2.1}, {TopP: 1, Repetition: 1, Frequency: math.NaN()},
		{TopP: 1, Repetition: 1, Bias: map[int32]float64{7: 101}}, {TopK: -1, TopP: 1, Repetition: 1}, {TopP: 1, Repetition: math.Inf(1)}} {
		if bad.Validate() == nil {
			t.Errorf("%+v", bad)
		}
	}
}

// Biases are of any token; presence and frequency are of what is written, and not of what is read.
func TestPenalties(t *testing.T) {
	plain := Sampling{TopP: 1, Repetition: 1}
	for name, c := range map[string]struct {
		s    Sampling
		read int
		want int32
	}{
		"none":                   {plain, 0, 0},
		"a bias":                 {Sampling{TopP: 1, Repetition: 1, Bias: map[int32]float64{2: 3}}, 0, 2},
		"a bias against":         {Sampling{TopP: 1, Repetition: 1, Bias: map[int32]float64{0: -100}}, 0, 1},
		"presence":               {Sampling{TopP: 1, Repetition: 1, Presence: 1}, 0, 2},
		"presence of the prompt": {Sampling{TopP: 1, Repetition: 1, Presence: 1}, 3, 0},
		"frequency":              {Sampling{TopP: 1, Repetition: 1, Frequency: 0.4}, 0, 1}, // 1.2, 1.25 of 0, 1
		"for it":                 {Sampling{TopP: 1, Repetition: 1, Frequency: -2}, 0, 0},
	} {
		if id := c.s.sampler().next([]float32{2, 1.65, 1.2}, []int32{0, 0, 1}, c.read); id != c.want {
			t.Errorf("%s: token %d, want %d", name, id, c.want)
		}
	}
	if err := (Sampling{Bias: map[int32]float64{3: 1}}).within(3); err == nil {
		t.Error("token 3 of 3 has a bias")
	}
}
