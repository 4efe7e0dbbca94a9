package tokenizer

import (
	"iter"
	"unicode"
	"unicode/utf8"
)

// lineWords splits text as the pattern of Llama 3 and Qwen 2 does, which look for line
// ends and take at most so many digits:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}|
//	 ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func lineWords(digits int) splitter {
	return func(text string) iter.Seq[string] {
		return func(yield func(string) bool) {
			for len(text) > 0 {
				n := lineWord(text, digits)
				if !yield(text[:n]) {
					return
				}
				text = text[n:]
			}
		}
	}
}

// lineWord is the length of the first word of a text that is not empty.
func lineWord(text string, digits int) int {
	if n := contraction(text); n > 0 {
		return n
	}
	first, size := utf8.DecodeRuneInString(text)
	next := ' '
	if size < len(text) {
		next, _ = utf8.DecodeRuneInString(text[size:])
	}
	switch {
	case unicode.IsLetter(first):
		return run(text, 0, unicode.IsLetter)
	case unicode.IsNumber(first):
		for n, i := 0, 0; ; n++ {
			r, size := utf8.DecodeRuneInString(text[i:])
			if n == digits || !unicode.IsNumber(r) {
				return i
			}
			i += size
		}
	case !lineEnd(first) && unicode.IsLetter(next):
		return run(text, size, unicode.IsLetter)
	case !unicode.IsSpace(first):
		return run(text, run(text, 0, sign), lineEnd)
	case first == ' ' && size < len(text) && sign(next):
		return run(text, run(text, size, sign), lineEnd)
	}
	last := 0 // behind the last line end of the run of white space
	for i, r := range text[:run(text, 0, unicode.IsSpace)] {
		if lineEnd(r) {
			last = i + 1
		}
	}
	if last > 0 {
		return last
	}
	return spaceRun(text)
}

// run is the end of the run of characters that are so, from a place on.
func run(text string, from int, is func(rune) bool) int {
	for i, r := range text[from:] {
		if !is(r) {
			return from + i
		}
	}
	return len(text)
}

func lineEnd(r rune) bool { return r == '\r' || r == '\n' }

func sign(r rune) bool { return !unicode.IsSpace(r) && !unicode.IsLetter(r) && !unicode.IsNumber(r) }

// contraction is the length of 's, 't, 're, 've, 'm, 'll or 'd, whatever its case, that
// text begins with; ſ is an s.
func contraction(text string) int {
	if text[0] != '\'' || len(text) == 1 {
		return 0
	}
	lower := func(at int) byte {
		if at < len(text) {
			return text[at] | 0x20
		}
		return 0
	}
	switch c := lower(1); {
	case len(text) > 2 && text[1:3] == "ſ":
		return 3
	case !alphanumeric(text[1]):
		return 0
	case c == 's' || c == 't' || c == 'm' || c == 'd':
		return 2
	case (c == 'r' || c == 'v') && lower(2) == 'e' && alphanumeric(text[2]), c == 'l' && lower(2) == 'l' && alphanumeric(text[2]):
		return 3
	}
	return 0
}
