package tokenizer

import (
	"iter"
	"unicode/utf8"
)

// What a tokenizer may cost. A device takes it from a coordinator, who may be hostile, and
// encodes its owner's texts with it: time and memory must follow from how long these are,
// whatever they say, or a word that a rule makes long or slow could be told by the time that
// preparing takes.
const (
	// maxRule is how many characters a rule may put for what it finds: NFKC's most, for
	// U+FDFA. maxRuleKey is how many bytes it may look for.
	maxRule    = 18
	maxRuleKey = 64
	// A text becomes at most maxGrowth times as long, and growthFloor bytes, by all that is
	// done before it is covered; what is behind is cut. NFKC's U+FDFA becomes 11 times as
	// long, and nothing else so much.
	maxGrowth   = 12
	growthFloor = 64
	// maxUnigram bounds the bytes of a piece of a Unigram model that text may become, and
	// maxNested how many of them begin one another: SentencePiece makes them of up to 16
	// characters.
	maxUnigram = 128
	maxNested  = 32
)

// grown is how many bytes a text may become.
func grown(text string) int { return maxGrowth*len(text) + growthFloor }

// steps go over a text, one after the other.
type steps []func(text string) string

func (s steps) apply(text string) string {
	limit := grown(text)
	for _, f := range s {
		text = within(f(text), limit)
	}
	return text
}

// within is what of a text is within limit bytes, up to a character's end.
func within(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// chunk is about how long the parts of a text are that are encoded one by one.
const chunk = 512

// chunks cuts a text at spaces between two letters or digits of ASCII on either side: none
// of Unicode's normal forms, nor what looks for spaces, marks or the ends of a text, sees
// across these. The space begins the chunk that follows it.
func chunks(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		from := 0
		for i := chunk; i+2 < len(text); i++ {
			if text[i] == ' ' && alphanumeric(text[i-2]) && alphanumeric(text[i-1]) && alphanumeric(text[i+1]) && alphanumeric(text[i+2]) {
				if !yield(text[from:i]) {
					return
				}
				from, i = i, i+chunk
			}
		}
		yield(text[from:])
	}
}
