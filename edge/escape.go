package edge

import (
	"strconv"
	"strings"
	"unicode"
)

// Escape makes foreign text safe to show in a terminal or a page. Whatever could move a cursor,
// colour, break the line, run text backwards or hide is replaced by its code (\x1b, \u202e).
// Newlines are kept if lines is set.
func Escape(s string, lines bool) string {
	plain := func(r rune) bool {
		return r == '\n' && lines || r != unicode.ReplacementChar && unicode.IsPrint(r)
	}
	if strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if plain(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}
