package leak

import (
	"math"
	"strings"
	"testing"
)

// What single updates show is never said alone of a job: what was tried, and the bound over all of its
// rounds, or that there is none, stand beside it.
func TestLineSaysTheBound(t *testing.T) {
	r := Report{Trials: 1, Examples: 16, Rounds: 25, Attacks: []Attack{{Of: Tokens, All: 123}, {Of: Labels, NotTried: "no labels"}}}
	for bits, want := range map[float64]string{math.Inf(1): "nothing bounds that", 2164: "at most 2.16e+03 bits, as many as 2164 characters"} {
		r.Bits = bounded(bits)
		for _, want := range []string{"shows 0 of 123 tokens", "by 1 attacks", "over the 25 rounds announced", want} {
			if line := r.Line(); !strings.Contains(line, want) {
				t.Errorf("%v bits: %q is not in %q", bits, want, line)
			}
		}
	}
}
