package tokenizer

import (
	"iter"
	"strings"
	"unicode"
)

// words splits text as BERT's BasicTokenizer does: control characters are
// dropped, CJK ideographs and punctuation stand alone, everything is lower
// case without accents.
func words(text string) iter.Seq[string] {
	return func(yield func(word string) bool) { splitChunks(text, false, yield) }
}

// words is the same, case and accents kept where the vocabulary has them.
func (t *WordPiece) words(text string) iter.Seq[string] {
	return func(yield func(word string) bool) { splitChunks(text, t.cased, yield) }
}

// splitChunks reads no more of a text than words are taken.
func splitChunks(text string, cased bool, yield func(word string) bool) {
	for part := range chunks(text) {
		if !splitWords(part, cased, yield) {
			return
		}
	}
}

func splitWords(text string, cased bool, yield func(word string) bool) bool {
	var b strings.Builder
	flush := func() bool {
		if b.Len() == 0 {
			return true
		}
		w := b.String()
		b.Reset()
		return yield(w)
	}
	text = clean(text)
	if !cased {
		text = strings.ToLower(text)
		if !isASCII(text) {
			text = decomposed(text)
		}
	}
	for _, r := range text {
		switch {
		case !cased && unicode.Is(unicode.Mn, r): // the accents that NFD set apart
		case isSpace(r):
			if !flush() {
				return false
			}
		case isPunct(r) || isIdeograph(r):
			if !flush() || !yield(string(r)) {
				return false
			}
		default:
			b.WriteRune(r)
		}
	}
	return flush()
}

// clean drops what BERT's clean_text drops. Invalid UTF-8 decodes to U+FFFD
// and goes the same way.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r == 0 || r == unicode.ReplacementChar || isControl(r) {
			return -1
		}
		return r
	}, text)
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func isSpace(r rune) bool {
	return r == ' ' || r == '\t' || r == '\n' || r == '\r' || unicode.Is(unicode.Zs, r) || r == 0x2028 || r == 0x2029
}

func isControl(r rune) bool {
	if r == '\t' || r == '\n' || r == '\r' {
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co)
}

// isPunct counts all ASCII symbols as punctuation, as BERT does, beside
// Unicode's own category P.
func isPunct(r rune) bool {
	switch {
	case r >= 33 && r <= 47, r >= 58 && r <= 64, r >= 91 && r <= 96, r >= 123 && r <= 126:
		return true
	}
	return unicode.IsPunct(r)
}

func isIdeograph(r rune) bool {
	switch {
	case r >= 0x4E00 && r <= 0x9FFF, r >= 0x3400 && r <= 0x4DBF,
		r >= 0x20000 && r <= 0x2A6DF, r >= 0x2A700 && r <= 0x2B73F,
		r >= 0x2B740 && r <= 0x2B81F, r >= 0x2B920 && r <= 0x2CEAF,
		r >= 0xF900 && r <= 0xFAFF, r >= 0x2F800 && r <= 0x2FA1F:
		return true
	}
	return false
}
