package terminal

import (
	"fmt"
	"io"
	"time"
)

// FetchProgress tells of files that take a while: each when it begins and ends, and in
// between every few seconds, or as it comes on a terminal.
func FetchProgress(w io.Writer) func(file string, done, total int64) {
	every := 5 * time.Second
	_, live := Width(w)
	if live {
		every = 200 * time.Millisecond
	}
	var said time.Time
	return func(file string, done, total int64) {
		if done < total && time.Since(said) < every {
			return
		}
		said = time.Now()
		line := fmt.Sprintf("%s: %.1f of %.1f MB", file, float64(done)/1e6, float64(total)/1e6)
		switch {
		case !live || done == total:
			fmt.Fprintf(w, "%s\n", lineStart(live)+line)
		default:
			fmt.Fprint(w, lineStart(live)+line)
		}
	}
}

// lineStart goes back to the start of a terminal's line and clears it.
func lineStart(live bool) string {
	if live {
		return "\r\x1b[K"
	}
	return ""
}
