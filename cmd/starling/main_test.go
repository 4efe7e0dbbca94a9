package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/app/command"
)

// An operator's program has the commands of operators and of devices; what it leaves to the
// laboratory's it says.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"version", 0, "starling devel ("},
		{"serve", 2, "--dir is required, and --job for one job alone"},
		{"join", 2, "join takes a join token or URL, or up to 8 of them, got 0"},
		{"simulate", 2, "unknown command"},
		{"privacy epsilon --sampling-rate 0.1 --noise-multiplier 1 --rounds 9 --delta 1e-6 --curve c.svg", 2, "make build makes one with them"},
		{"privacy epsilon --sampling-rate 0.1 --noise-multiplier 1 --rounds 9 --delta 1e-6 --curve c.pdf", 2, "want a name that ends in .svg, .png or .csv"},
	} {
		var out, said bytes.Buffer
		code := command.Run(t.Context(), newRootCmd, strings.Fields(c.args), strings.NewReader(""), &out, &said)
		if text := out.String() + said.String(); code != c.code || !strings.Contains(text, c.says) {
			t.Errorf("%s: exit %d, %q; want %d, %q", c.args, code, text, c.code, c.says)
		}
	}
}
