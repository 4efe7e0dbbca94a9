package tokenizer

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Every character that Go's tables know, by itself and beside others, as x/text has it:
// in a browser what the browser has.
func TestDecomposed(t *testing.T) {
	var known []rune
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		if unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z) {
			known = append(known, r)
		}
	}
	var text strings.Builder
	rng := rand.New(rand.NewPCG(1, 2))
	for i, r := range known {
		text.WriteRune(r)
		text.WriteByte(' ')
		for range 3 { // marks are put in order
			text.WriteRune(known[rng.IntN(len(known))])
		}
		text.WriteByte('x')
		if text.Len() < 1<<16 && i < len(known)-1 {
			continue
		}
		if got, want := normalized("NFD", text.String()), norm.NFD.String(text.String()); got != want {
			t.Errorf("up to %U: another decomposition than x/text's", r)
		}
		text.Reset()
	}
	if len(known) < 100_000 {
		t.Errorf("%d characters alone", len(known))
	}
}
