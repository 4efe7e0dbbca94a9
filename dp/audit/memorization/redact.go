package memorization

import (
	"slices"
	"strings"
	"unicode"

	"github.com/starling-fl/starling/data/dataset"
)

// Bounds of what counts as a match of an answer, or of one of its words.
const (
	alike     = 0.75 // least similarity (1 - Levenshtein distance / length)
	leastWord = 3    // letters and digits of a word that is matched by itself
	mostFuzzy = 128  // letters and digits beyond which a match is exact
)

// Redact removes from a document the words that match one of the answers, or a part of one, exactly
// or nearly: ignoring case, spaces and punctuation. It rather removes too much than too little. A page's
// picture is blurred where they stand. found reports whether an answer was there as a whole; left is
// false if nothing would remain to be read, or if the picture would still show what nobody knows the place of.
func Redact(e dataset.Example, answers []string) (out dataset.Example, found, left bool) {
	words := e.Words
	if len(words) == 0 {
		words = strings.Fields(e.Text)
	}
	plain := make([][]rune, len(words))
	for i, w := range words {
		plain[i] = letters(w)
	}
	gone := make([]bool, len(words))
	for _, a := range answers {
		if whole(plain, a, gone) {
			found = true
		}
		for _, part := range strings.Fields(a) {
			single(plain, letters(part), gone)
		}
	}
	out = e
	out.Words, out.Boxes = nil, nil
	var shown [][4]uint16
	for i, w := range words {
		if gone[i] {
			if len(e.Boxes) > 0 {
				shown = append(shown, e.Boxes[i])
			}
			continue
		}
		out.Words = append(out.Words, w)
		if len(e.Boxes) > 0 {
			out.Boxes = append(out.Boxes, e.Boxes[i])
		}
	}
	out.Text = strings.Join(out.Words, " ")
	left = len(out.Words) > 0 && (e.Image == nil || len(shown) > 0 || len(out.Words) == len(words))
	if e.Image != nil && len(shown) > 0 {
		out.Image = blurred(e.Image, shown)
	}
	if len(e.Words) == 0 {
		out.Words = nil
	}
	return out, found, left
}

// letters are a text's letters and digits, small; the text itself if it has none.
func letters(s string) []rune {
	var out []rune
	for _, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			out = append(out, unicode.ToLower(r))
		}
	}
	if len(out) == 0 {
		return []rune(strings.TrimSpace(s))
	}
	return out
}

// whole marks every run of words that together match the answer, and match it less without the
// first or the last of them.
func whole(plain [][]rune, answer string, gone []bool) (found bool) {
	want := letters(answer)
	if len(want) == 0 {
		return false
	}
	for from := range plain {
		n := 0
		for to := from; to < len(plain) && n <= len(want); to++ {
			if n += len(plain[to]); float64(n) < alike*float64(len(want)) || alike*float64(n) > float64(len(want)) {
				continue
			}
			how := likeness(plain[from:to+1], want)
			if how < alike || from < to && (likeness(plain[from+1:to+1], want) >= how || likeness(plain[from:to], want) >= how) {
				continue
			}
			found = true
			for i := from; i <= to; i++ {
				gone[i] = true
			}
		}
	}
	return found
}

// single marks each word that matches a part of an answer, holds it (an address in a page's
// name, say), or is a larger part of it.
func single(plain [][]rune, part []rune, gone []bool) {
	if len(part) < leastWord {
		return
	}
	for i, w := range plain {
		if len(w) < leastWord || gone[i] {
			continue
		}
		gone[i] = matches(w, part) || strings.Contains(string(w), string(part)) || 2*len(w) >= len(part) && strings.Contains(string(part), string(w))
	}
}

// matches reports whether two texts are the same, or nearly so.
func matches(a, b []rune) bool { return likeness([][]rune{a}, b) >= alike }

// likeness is how alike words together and a text are, 1 if they are the same, and 0 where
// they are too unlike to match.
func likeness(words [][]rune, b []rune) float64 {
	a := slices.Concat(words...)
	if slices.Equal(a, b) {
		return 1
	}
	longer := max(len(a), len(b))
	if longer > mostFuzzy || longer < leastWord || float64(min(len(a), len(b))) < alike*float64(longer) {
		return 0
	}
	return 1 - float64(distance(a, b))/float64(longer)
}

// distance is Levenshtein's.
func distance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
