// Package terminal is what programs know of the terminal that they write to: their streams, its
// width, text that fits it, and how far long work is, of known length (Countdown) or not (Pace).
package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// defaultWidth is of output that goes to no terminal.
const defaultWidth = 100

// Width is w's width in columns, and whether w is a terminal.
func Width(w io.Writer) (columns int, terminal bool) {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		if cols, _, err := term.GetSize(int(f.Fd())); err == nil && cols > 0 {
			return cols, true
		}
		return defaultWidth, true
	}
	return defaultWidth, false
}

// Is reports whether a stream is a terminal, so that its user can be asked.
func Is(stream any) bool {
	f, ok := stream.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// Bytes is a number of bytes with a decimal unit.
func Bytes(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1_000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(n)/1e9)
}

// Wrap breaks text between words so that lines have fewer than width columns, each after the first
// behind indent. A longer word is on a line of its own.
func Wrap(text string, width int, indent string) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case i == 0 && indent != "":
			b.WriteString(indent)
			column = len(indent)
		case i > 0 && column+1+n >= width:
			b.WriteString("\n" + indent)
			column = len(indent)
		case i > 0:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}
