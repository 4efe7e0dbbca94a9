package dp

import (
	"strings"
	"testing"
)

// Two bounds of one job that protects nobody differ by factors: words name no figure that could be taken for a promise.
func TestSenselessEpsilonsAreOneWord(t *testing.T) {
	for epsilon, want := range map[float64]string{
		2: "epsilon 2 (lower bound 1) against", 999: "epsilon 999 (lower bound 1) against",
		5.4e7: "epsilon above 1000 against", 1.08e8: "epsilon above 1000 against",
	} {
		g := Guarantee{Epsilon: epsilon, EpsilonLower: 1, Delta: 1e-6, Rounds: 3}
		if got := g.String(); !strings.HasPrefix(got, want) {
			t.Errorf("%v: %s", epsilon, got)
		}
	}
}
