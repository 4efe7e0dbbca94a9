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
	return func(yield func(word string) bool) { splitChunks(text, bert, yield) }
}

// words is the same, case and accents kept where the vocabulary has them.
func (t *WordPiece) words(text string) iter.Seq[string] {
	return func(yield func(word string) bool) { splitChunks(text, t.fold, yield) }
}

// splitChunks reads no more of a text than words are taken.
func splitChunks(text string, f fold, yield func(word string) bool) {
	for part := range chunks(text) {
		if !splitWords(f.apply(part), f, yield) {
			return
		}
	}
}

// fold is what is done to a text before it is split, as transformers' BertNormalizer does.
type fold struct {
	before  steps // by itself, as other normalizers do
	clean   bool  // control characters are dropped, white space is
	chinese bool  // CJK ideographs stand alone
	lower   bool
	accents bool // are left out
}

// bert is that of BERT's uncased models.
var bert = fold{clean: true, chinese: true, lower: true, accents: true}

// apply does all of it but setting ideographs apart, which splitWords does.
func (f fold) apply(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(f.before) > 0 {
		text = f.before.apply(text)
	}
	if f.clean {
		text = clean(text)
	}
	if f.lower && f.accents {
		text = strings.ToLower(text) // İ loses its dot either way
	} else if f.lower {
		text = lower(text)
	}
	if f.accents && !isASCII(text) {
		text = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Mn, r) {
				return -1
			}
			return r
		}, normalForm("NFD", text))
	}
	return text
}

// splitWords splits a text that is folded.
func splitWords(text string, f fold, yield func(word string) bool) bool {
	var b strings.Builder
	flush := func() bool {
		if b.Len() == 0 {
			return true
		}
		w := b.String()
		b.Reset()
		return yield(w)
	}
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			if !flush() {
				return false
			}
		case isPunct(r) || f.chinese && isIdeograph(r):
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
	return r == 0x166d || r == 0x111c9 || unicode.IsPunct(r) && !unicode.Is(notYetPunct, r)
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

// normalForm is one of Unicode's normal forms. A run of more than 30 marks, into which
// x/text puts U+034F, is left without these.
func normalForm(form, text string) string {
	if isASCII(text) {
		return text
	}
	const joiner = "\u034F" // it begins anew for every form
	parts := strings.Split(text, joiner)
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(normalized(form, part), joiner, "")
	}
	return strings.Join(parts, joiner)
}

// lower is each character in lower case, of which İ alone becomes two.
func lower(text string) string {
	return strings.ToLower(strings.ReplaceAll(text, "İ", "i\u0307"))
}
