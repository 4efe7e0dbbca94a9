package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// textTokens are tokens that a file adds for texts: they are found before a text is split,
// as the fast tokenizers of transformers do where they are told to leave special tokens
// alone (encode_special_tokens). Those that are not normalized are found in the text as it
// is, the others in what the normalizer makes of it.
type textTokens struct {
	raw, normal finder
}

// maxTextTokens bounds them, with the special ones.
const maxTextTokens = 1 << 16

// split is a tokenizer whose steps are taken one by one, of text without such tokens.
type split interface {
	normalized(text string) string
	// appendPart appends the ids of normalized text, of which first says whether it begins
	// the whole; it need not go on beyond limit ids.
	appendPart(ids []int32, text string, first bool, limit int) []int32
}

// newTextTokens is nil if all tokens are special.
func newTextTokens(added []addedToken, t split) (*textTokens, error) {
	if !slices.ContainsFunc(added, forTexts) {
		return nil, nil
	}
	return findTokens(added, t, false)
}

// findTokens finds the tokens that are made from text, or all.
func findTokens(added []addedToken, t split, all bool) (*textTokens, error) {
	if len(added) > maxTextTokens {
		return nil, fmt.Errorf("%w: %d added_tokens, the limit is %d", ErrVocab, len(added), maxTextTokens)
	}
	sorted := slices.Clone(added) // special ones first: of two that are spelled alike the first is found
	slices.SortStableFunc(sorted, func(a, b addedToken) int {
		switch {
		case forTexts(a) == forTexts(b):
			return 0
		case forTexts(a):
			return 1
		}
		return -1
	})
	x := &textTokens{raw: finder{all: all}, normal: finder{all: all}}
	for _, a := range sorted {
		if a.Normalized {
			a.Content = t.normalized(a.Content)
			x.normal.tokens = append(x.normal.tokens, a)
		} else {
			x.raw.tokens = append(x.raw.tokens, a)
		}
	}
	if err := x.raw.build(); err != nil {
		return nil, err
	}
	return x, x.normal.build()
}

// forTexts reports whether a token is made from text, as its file marks it.
func forTexts(t addedToken) bool { return !t.Special }

// encode finds the tokens in a text, and has what lies between them split.
func (x *textTokens) encode(t split, text string, limit int) []int32 {
	var ids []int32
	text = strings.ToValidUTF8(text, "\uFFFD")
	first, left := true, grown(text)
	x.raw.each(text, func(part string, token int32) bool {
		if token >= 0 {
			ids, first = append(ids, token), false
			return len(ids) < limit
		}
		part = within(t.normalized(part), left) // of all parts together
		left -= len(part)
		x.normal.each(part, func(part string, token int32) bool {
			if token >= 0 {
				ids = append(ids, token)
			} else {
				ids = t.appendPart(ids, part, first, limit)
			}
			first = false
			return len(ids) < limit
		})
		return len(ids) < limit
	})
	return ids
}

// finder finds tokens in a text.
type finder struct {
	tokens []addedToken
	all    bool // special ones are found, too
	trie   *trie
}

func (f *finder) build() error {
	var b trieBuilder
	seen := map[string]bool{}
	for i, a := range f.tokens {
		if a.Content == "" || seen[a.Content] {
			continue
		}
		if len(a.Content) > maxUnigram {
			return fmt.Errorf("%w: added_tokens: %.40q has %d bytes, the limit is %d", ErrVocab, a.Content, len(a.Content), maxUnigram)
		}
		seen[a.Content] = true
		b.add(a.Content, int32(i))
	}
	var err error
	f.trie, err = b.build()
	return err
}

// each calls take with the parts of a text in their order: what lies between tokens (-1),
// and the tokens' ids. The leftmost token counts, and of several the longest; one that
// does not stand as it asks to, or is special, is text, and nothing is found within it.
func (f *finder) each(text string, take func(part string, token int32) bool) {
	done, data := 0, []byte(text)
	spaces := 0 // the end of the run of white space that was looked for last
	for at := 0; at < len(text); {
		found, length := int32(-1), 0
		f.trie.prefixes(data[at:], func(n int, id int32) {
			if n > length {
				found, length = id, n
			}
		})
		if found < 0 {
			at++
			continue
		}
		start, end := at, at+length
		at = end
		a := f.tokens[found]
		if !f.all && !forTexts(a) || a.SingleWord && (endsInWord(text[:start]) || beginsWithWord(text[end:])) {
			continue
		}
		if a.Lstrip {
			from := min(done, start)
			start = from + len(strings.TrimRightFunc(text[from:start], unicode.IsSpace))
		}
		if a.Rstrip {
			// A token may be white space itself, a thousand of them a run: it is gone over once.
			if end >= spaces {
				spaces = len(text) - len(strings.TrimLeftFunc(text[end:], unicode.IsSpace))
			}
			end = spaces
		}
		if done < start && !take(text[done:start], -1) || !take("", a.ID) {
			return
		}
		done = end
	}
	if done < len(text) {
		take(text[done:], -1)
	}
}

func endsInWord(text string) bool {
	r, n := utf8.DecodeLastRuneInString(text)
	return n > 0 && inWord(r)
}

func beginsWithWord(text string) bool {
	r, n := utf8.DecodeRuneInString(text)
	return n > 0 && inWord(r)
}

// inWord reports whether a regular expression's \w is a character (UTS 18).
func inWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control) || r > 0x7f && unicode.Is(laterWords, r)
}
