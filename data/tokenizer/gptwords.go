package tokenizer

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// gptWords splits text as GPT-2's pattern does, which needs a look-ahead that
// package regexp has not:
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// text must be valid UTF-8; the words joined are the text.
func gptWords(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			n := gptWord(text)
			if !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
	}
}

// gptWord is the length of the first word of a text that is not empty.
func gptWord(text string) int {
	for _, suffix := range []string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"} {
		if strings.HasPrefix(text, suffix) {
			return len(suffix)
		}
	}
	from := 0
	if text[0] == ' ' && len(text) > 1 {
		from = 1
	}
	first, _ := utf8.DecodeRuneInString(text[from:])
	if unicode.IsSpace(first) {
		return spaceRun(text)
	}
	kind := gptKind(first)
	for i, r := range text[from:] {
		if unicode.IsSpace(r) || gptKind(r) != kind {
			return from + i
		}
	}
	return len(text)
}

// gptKind tells letters, numbers and the rest apart.
func gptKind(r rune) int {
	switch {
	case unicode.IsLetter(r):
		return 0
	case unicode.IsNumber(r):
		return 1
	}
	return 2
}

// spaceRun is the run of white space that text begins with, without its last
// character where a word follows it and the run has more than one.
func spaceRun(text string) int {
	last := 0
	for i, r := range text {
		if !unicode.IsSpace(r) {
			if last > 0 {
				return last
			}
			return i
		}
		last = i
	}
	return len(text)
}
