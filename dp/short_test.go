package dp

import (
	"math"
	"testing"
)

// Too few for a cohort: only honest devices count, and of them those who are drawn and
// stay. By the definition, term by term.
func TestShortByDefinition(t *testing.T) {
	for _, a := range []Attendance{
		{Ready: 60, Hostile: 0, Rate: 0.2, Groups: 1, Dropout: 0},
		{Ready: 60, Hostile: 12, Rate: 0.2, Groups: 1, Dropout: 0.3},
		{Ready: 300, Hostile: 15, Rate: 0.1, Groups: 3, Dropout: 0.1},
	} {
		for _, floor := range []int{1, 5, 12} {
			honest, p, want := a.Ready-1-a.Hostile, a.Rate*(1-a.Dropout), 0.0
			choose := 1.0
			for k := range floor {
				want += choose * math.Pow(p, float64(k)) * math.Pow(1-p, float64(honest-k))
				choose *= float64(honest-k) / float64(k+1)
			}
			if got := a.Short(floor); !(got >= want && got < want*(1+1e-5)) {
				t.Errorf("%+v, floor %d: %v, want %v", a, floor, got, want)
			}
		}
	}
	if got := (Attendance{Ready: 10, Hostile: 6, Rate: 0.5}).Short(4); got != 1 {
		t.Errorf("three honest others of four: %v", got)
	}
}

// Rounds that are hit with another probability are other rounds.
func TestComposedHits(t *testing.T) {
	a := Rounds(Mechanism{SamplingRate: 0.1, NoiseMultiplier: 1}, 3)
	b := a
	a.Hit, b.Hit = 0.01, 0.2
	c, err := Compose([]Event{a, b, a}, View{})
	if err != nil || len(c.Parts) != 2 || c.Parts[0].Rounds != 6 || c.Parts[0].Hit.Prob != 0.01 || c.Parts[1].Rounds != 3 || c.Parts[1].Hit.Prob != 0.2 {
		t.Errorf("%+v, %v", c.Parts, err)
	}
}
