// Package secretfile reads tokens and secrets from files, which other users of a machine need not be able to read.
package secretfile

import (
	"strings"

	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
)

const most = 16 << 10 // bytes of a file

// Read returns the token or secret that a file holds, on one line.
func Read(file string) (string, error) {
	b, err := named.Read(file, most)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(b))
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", usage.Errorf("%s holds no token or secret: want one line of visible characters", file)
	}
	return text, nil
}
