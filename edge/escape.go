package edge

import (
	"strconv"
	"strings"
	"unicode"
)

// Escape makes text of somebody else's fit for a terminal or a page: what could
// move a cursor, colour, break the line, run text backwards or hide in it stands
// there as its code (\x1b, \u202e). Newlines are kept where lines is set.
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
