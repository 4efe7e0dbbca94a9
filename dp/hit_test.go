package dp

import (
	"math"
	"testing"
)

// A group's hits by their definition: over who is drawn into it and who of those stays,
// the hostile and anyone who leaves not counted on.
func TestHitByEnumeration(t *testing.T) {
	threshold := func(n int) int { return n*3/4 + 1 }
	for _, a := range []Attendance{
		{Ready: 60, Hostile: 3, Rate: 0.5, Groups: 2, Dropout: 0.1, Floor: 3, Most: 24, Threshold: threshold},
		{Ready: 200, Hostile: 20, Rate: 0.3, Groups: 3, Dropout: 0.02, Floor: 5, Most: 30, Threshold: threshold},
		// Its floor is above most thresholds.
		{Ready: 40, Hostile: 2, Rate: 0.3, Groups: 1, Dropout: 0.2, Floor: 11, Most: 30, Threshold: func(n int) int { return n/2 + 1 }},
		{Ready: 30, Hostile: 0, Rate: 0.9, Groups: 1, Dropout: 0.3, Floor: 2, Most: 64, Threshold: threshold},
	} {
		want := 0.0
		honest := a.Ready - 1 - a.Hostile
		choose := func(n, k int, p float64) float64 {
			return math.Exp(lchoose(n, k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
		}
		// Honest others in the group and staying, honest and leaving, hostile.
		in := a.Rate / float64(a.Groups)
		for h := 0; h <= honest; h++ {
			for x := 0; x <= a.Hostile; x++ {
				p := choose(honest, h, in)
				if a.Hostile > 0 {
					p *= choose(a.Hostile, x, in)
				}
				for s := 0; s <= h; s++ {
					n := h + x + 1
					if n < a.Floor || n > a.Most || s < max(a.Threshold(n), a.Floor) {
						want += p * choose(h, s, 1-a.Dropout)
					}
				}
			}
		}
		if got := a.Hit(); got < want*(1-1e-9) || got > want*1.1+1e-12 {
			t.Errorf("%+v: %v, by enumeration %v", a, got, want)
		}
	}
}
