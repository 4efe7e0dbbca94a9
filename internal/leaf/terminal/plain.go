package terminal

import (
	"io"
	"strconv"
	"strings"
	"unicode"
)

// Plain is a writer to a terminal of text in which files of others' have a say (labels,
// answers, names, notes): what moves a cursor, or runs text backwards, is there as its
// code. Tabs and newlines are the program's own. Each write holds whole characters.
type Plain struct{ To io.Writer }

func (p Plain) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.To, Visible(string(b), "\t\n")); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Visible is text without control characters but those kept.
func Visible(s, keep string) string {
	moves := func(r rune) bool {
		return (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) && !strings.ContainsRune(keep, r)
	}
	if strings.IndexFunc(s, moves) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if moves(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
