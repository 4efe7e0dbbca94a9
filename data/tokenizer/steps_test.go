package tokenizer

import (
	"slices"
	"testing"
	"unicode"
)

// Each pre-tokenizer with all that it may be told, normalizers, and vocabularies that lack something
// give the ids that tokenizers 0.23 gives.
func TestStepsAsTokenizersTakesThem(t *testing.T) {
	cases := goldenCases(t, "steps")
	if len(cases) < 50 {
		t.Errorf("%d cases", len(cases))
	}
	for _, c := range cases {
		tok, err := Parse(c.Tokenizer)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		for i, text := range c.Texts {
			if got := tok.Encode(text); !slices.Equal(got, c.IDs[i]) {
				t.Errorf("%s: %q is %v, want %v", c.Name, text, got, c.IDs[i])
				break
			}
		}
	}
}

// Classes of characters that are no expression's have as many as tokenizers 0.23 finds in all of Unicode.
func TestClasses(t *testing.T) {
	for name, c := range map[string]struct {
		is   func(r rune) bool
		want int
	}{"punctuation": {isPunct, 726}, "numbers": {isNumber, 1924}, "words": {inWord, 144667}} {
		got := 0
		for r := rune(0); r <= unicode.MaxRune; r++ {
			if (r < 0xd800 || r > 0xdfff) && c.is(r) {
				got++
			}
		}
		if got != c.want {
			t.Errorf("%s: %d characters, want %d", name, got, c.want)
		}
	}
}
