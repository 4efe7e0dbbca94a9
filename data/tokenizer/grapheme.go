//go:build !js || full

package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// shortGrapheme is how many bytes Hugging Face's Precompiled maps as one.
const shortGrapheme = 6

// byGraphemes maps a text as Hugging Face's tokenizers do, not SentencePiece: a user's
// character (UAX 29) of fewer than six bytes becomes what its shortest known prefix
// does, marks behind that or not; of a longer one, each code point by itself.
func (m *charsmap) byGraphemes(text string) string {
	if m == nil {
		return text
	}
	var b strings.Builder
	for limit := grown(text); text != "" && b.Len() <= limit; {
		n := grapheme(text)
		if n < shortGrapheme {
			if part, ok := m.shortest(text[:n]); ok {
				b.WriteString(part)
				text = text[n:]
				continue
			}
		}
		for _, r := range text[:n] {
			if part, ok := m.shortest(string(r)); ok {
				b.WriteString(part)
			} else {
				b.WriteRune(r)
			}
		}
		text = text[n:]
	}
	return b.String()
}

// grapheme is the length of the extended grapheme cluster that text, which is valid
// UTF-8 and not empty, begins with. Those that are put together otherwise than by marks
// (Hangul, flags, emoji) are cut: they have six bytes anyway, and so have their parts
// with a mark.
func grapheme(text string) int {
	if strings.HasPrefix(text, "\r\n") {
		return 2
	}
	r, n := utf8.DecodeRuneInString(text)
	for unicode.Is(unicode.Prepended_Concatenation_Mark, r) && n < len(text) {
		next, size := utf8.DecodeRuneInString(text[n:])
		if breaks(next) {
			return n
		}
		r, n = next, n+size
	}
	if breaks(r) {
		return n
	}
	for n < len(text) {
		mark, size := utf8.DecodeRuneInString(text[n:])
		if !extends(mark) {
			break
		}
		n += size
	}
	return n
}

// breaks reports whether a character stands alone (Control, CR, LF of UAX 29).
func breaks(r rune) bool {
	const joiner, nonJoiner = '\u200d', '\u200c'
	if r == joiner || r == nonJoiner || unicode.Is(unicode.Prepended_Concatenation_Mark, r) {
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) && !extends(r)
}

// extends reports whether a character goes with the one before it (Extend, ZWJ and
// SpacingMark of UAX 29).
func extends(r rune) bool {
	if r < 0x300 {
		return false
	}
	switch {
	case r == '\u200d' || r == '\u0e33' || r == '\u0eb3' || r >= 0x1f3fb && r <= 0x1f3ff:
		return true
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Other_Grapheme_Extend, laterMarks):
		return true
	}
	return unicode.Is(unicode.Mc, r) && !unicode.Is(apart, r)
}

// apart are the spacing marks that UAX 29 leaves out of SpacingMark.
var apart = &unicode.RangeTable{
	R16: []unicode.Range16{{0x102b, 0x102c, 1}, {0x1038, 0x1038, 1}, {0x1062, 0x1064, 1}, {0x1067, 0x106d, 1}, {0x1083, 0x1083, 1},
		{0x1087, 0x108c, 1}, {0x108f, 0x108f, 1}, {0x109a, 0x109c, 1}, {0x1a61, 0x1a61, 1}, {0x1a63, 0x1a64, 1}, {0xaa7b, 0xaa7b, 1},
		{0xaa7d, 0xaa7d, 1}},
	R32: []unicode.Range32{{0x11720, 0x11721, 1}},
}

// laterMarks are Extend and SpacingMark of Unicode 17, which tokenizers 0.23 has, that package unicode lacks.
var laterMarks = &unicode.RangeTable{
	R16: []unicode.Range16{{0x897, 0x897, 1}, {0x1acf, 0x1add, 1}, {0x1ae0, 0x1aeb, 1}},
	R32: []unicode.Range32{{0x10d69, 0x10d6d, 1}, {0x10efa, 0x10efc, 1}, {0x113b8, 0x113c0, 1}, {0x113c2, 0x113c2, 1},
		{0x113c5, 0x113c5, 1}, {0x113c7, 0x113ca, 1}, {0x113cc, 0x113d0, 1}, {0x113d2, 0x113d2, 1},
		{0x113e1, 0x113e2, 1}, {0x11b60, 0x11b67, 1}, {0x11f5a, 0x11f5a, 1}, {0x1611e, 0x1612f, 1},
		{0x1e5ee, 0x1e5ef, 1}, {0x1e6e3, 0x1e6e3, 1}, {0x1e6e6, 0x1e6e6, 1}, {0x1e6ee, 0x1e6ef, 1},
		{0x1e6f5, 0x1e6f5, 1}},
}
