package memorization

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// outcomes are of so many providers a side, each with a level of its own that its questions
// share, members' higher by so much.
func outcomes(seed uint64, providers int, shift float64) (out []Outcome) {
	rng := rand.New(rand.NewPCG(seed, 9))
	for p := range 2 * providers {
		member := p%2 == 0
		level := 0.4 + 0.2*rng.NormFloat64()
		if member {
			level += shift
		}
		for range 10 {
			o := Outcome{Provider: fmt.Sprint(p), Member: member, Confidence: rng.Float64(), Similarity: level}
			if rng.Float64() < level {
				o.Right = 1
			}
			out = append(out, o)
		}
	}
	return out
}

func TestCompare(t *testing.T) {
	c := Compare([]Outcome{
		{"a", true, "", 1, 1, 0.95}, {"a", true, "", 0, 0.5, 0.9}, {"b", true, "", 0, 0, 0.1},
		{"c", false, "", 0, 0.25, 0.89}, {"d", false, "", 0, 0.75, 0.99},
	}, 1)
	want := Line{Questions: 3, Providers: 2, ACC: 1. / 3, ANLS: 0.5, Sure: 2, SureACC: 0.5, SureANLS: 0.75}
	if c.Members != want || c.Others.Sure != 1 || c.Others.SureANLS != 0.75 || c.Others.ANLS != 0.5 || c.ANLS.Mean != 0 {
		t.Errorf("%+v", c)
	}
	if one := Compare([]Outcome{{"a", true, "", 1, 1, 1}}, 1); one.Others.Questions != 0 || one.Remembers() {
		t.Errorf("members alone: %+v", one)
	}
}

// Where members are no better, an interval of 95 % says so about as often: of 200 sets more than
// 20 exclude 0 less often than once in 500. What members remember is found.
func TestDifferenceHolds(t *testing.T) {
	wrong, found := 0, 0
	for seed := range uint64(200) {
		if c := Compare(outcomes(seed, 40, 0), seed); c.ANLS.Low > 0 || c.ANLS.High < 0 {
			wrong++
		}
	}
	for seed := range uint64(20) {
		c := Compare(outcomes(seed, 40, 0.2), seed)
		if c.Remembers() {
			found++
		}
		if math.Abs(c.ANLS.Mean-0.2) > 0.2 {
			t.Errorf("seed %d: %+v", seed, c.ANLS)
		}
	}
	if wrong > 20 || found < 18 {
		t.Errorf("%d of 200 differences that are none, %d of 20 that are", wrong, found)
	}
}
