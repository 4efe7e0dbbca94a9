package terminal

import (
	"bytes"
	"io"
	"sync"
)

// Prefixed writes each line with something before it; to itself if that is empty. Each
// Write is one line or several whole ones.
func Prefixed(to io.Writer, prefix string) io.Writer {
	if prefix == "" {
		return to
	}
	return &prefixed{to: to, prefix: []byte(prefix)}
}

// prefixes keeps lines of several writers to one stream apart.
var prefixes sync.Mutex

type prefixed struct {
	to     io.Writer
	prefix []byte
}

func (p *prefixed) Write(b []byte) (int, error) {
	var out []byte
	for line := range bytes.Lines(b) {
		out = append(append(out, p.prefix...), line...)
	}
	prefixes.Lock()
	defer prefixes.Unlock()
	if _, err := p.to.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}
