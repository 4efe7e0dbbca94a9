package pattern

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// A set is a class of characters. Those of ASCII are a bitmap.
type set struct {
	ascii  [2]uint64
	ranges [][2]rune // once it is closed, sorted and apart
	tables []table
	within []*set // all of them, too: [a&&b]
	negate bool
	tests  int // tables that a character may be held against, those of classes within it, too
	extra  int // steps that a character takes beyond one
}

// mostTests is how many tables a character is held against in one step.
const mostTests = 16

type table struct {
	is     func(r rune) bool
	negate bool
}

// close sorts what was added, and computes the bitmap and the price.
func (s *set) close() *set {
	slices.SortFunc(s.ranges, func(a, b [2]rune) int { return cmp.Compare(a[0], b[0]) })
	apart := s.ranges[:0]
	for _, x := range s.ranges {
		if n := len(apart); n > 0 && x[0] <= apart[n-1][1]+1 {
			apart[n-1][1] = max(apart[n-1][1], x[1])
		} else {
			apart = append(apart, x)
		}
	}
	s.ranges = apart
	s.tests += len(s.tables)
	for _, w := range s.within {
		s.tests += w.tests
	}
	s.extra = s.tests / mostTests
	for r := range rune(128) {
		if s.slow(r) {
			s.ascii[r/64] |= 1 << (r % 64)
		}
	}
	return s
}

func (s *set) has(r rune) bool {
	if r < 128 {
		return s.ascii[r/64]>>(r%64)&1 == 1
	}
	return s.slow(r)
}

func (s *set) slow(r rune) bool { return s.any(r) != s.negate }

func (s *set) any(r rune) bool {
	for _, w := range s.within {
		if !w.slow(r) {
			return false
		}
	}
	if len(s.within) > 0 {
		return true
	}
	if _, found := slices.BinarySearchFunc(s.ranges, r, func(x [2]rune, r rune) int {
		switch {
		case x[1] < r:
			return -1
		case r < x[0]:
			return 1
		}
		return 0
	}); found {
		return true
	}
	for _, t := range s.tables {
		if t.is(r) != t.negate {
			return true
		}
	}
	return false
}

// add adds characters from lo to hi, with fold those that differ by case alone.
func (s *set) add(lo, hi rune, fold bool) {
	s.ranges = append(s.ranges, [2]rune{lo, hi})
	if !fold || hi-lo > maxFolded {
		return
	}
	for r := lo; r <= hi; r++ {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			s.ranges = append(s.ranges, [2]rune{f, f})
		}
	}
}

// maxFolded is the length of a range whose cases are looked for: that of ASCII's letters, and more.
const maxFolded = 1 << 10

// squeezed is a property's name as names are compared: without case, underscores, spaces and hyphens.
func squeezed(name string) string {
	return strings.NewReplacer("_", "", " ", "", "-", "").Replace(strings.ToLower(name))
}

// property is \p{name}: a general category or a script; nil if there is none.
func property(name string) func(r rune) bool {
	plain := squeezed(name)
	switch plain {
	case "word":
		return inWord
	case "space":
		return unicode.IsSpace
	case "digit":
		plain = "nd"
	}
	for long, short := range unicode.CategoryAliases {
		if squeezed(long) == plain && plain != "punct" { // Oniguruma's punct has some symbols besides
			plain = strings.ToLower(short)
			break
		}
	}
	for key, t := range unicode.Categories {
		if strings.ToLower(key) == plain {
			return with(key, t)
		}
	}
	for key, t := range unicode.Scripts {
		if squeezed(key) == plain {
			return with(key, t)
		}
	}
	return nil
}

// with is a table of package unicode with what later versions of Unicode have added to it.
func with(key string, t *unicode.RangeTable) func(r rune) bool {
	more := later[key]
	return func(r rune) bool { return unicode.Is(t, r) || more != nil && unicode.Is(more, r) }
}

// isWord is \w, and by it \b: inWord, and Latin-1's six other digits, which Oniguruma has outside of
// classes alone.
func isWord(r rune) bool { return strings.ContainsRune("²³¹¼½¾", r) || inWord(r) }

// inWord is \w in a class: letters, marks, decimal digits and what connects them (UTS 18, annex C).
func inWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic) || wordLater(r)
}

func wordLater(r rune) bool {
	for _, key := range []string{"L", "M", "Nd"} {
		if t := later[key]; t != nil && unicode.Is(t, r) {
			return true
		}
	}
	return false
}
