package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/leaf/terminal"
)

// A model that somebody hands on has the last word on no terminal: what its labels would
// do there is there as codes, and forges no line.
func TestHostileLabels(t *testing.T) {
	evil := "grain\x1b[2J\x1b]0;owned\x07\u202e\u009b1m\r\nship"
	dir := checkpointOf(t, 1, "earn", evil, "ship")
	for _, args := range [][]string{{"--checkpoint", dir}, {"--checkpoint", dir, "--top", "2"}} {
		out, code := predictWith(t, "wheat prices\n", args...)
		if code != 0 || strings.ContainsAny(out, "\x1b\x07\u202e\u009b\r") || strings.Count(out, "\n") != 1 || !strings.Contains(out, `\x1b[2J`) {
			t.Errorf("%v: exit %d, %q", args, code, out)
		}
	}
	var said bytes.Buffer
	if code := run(context.Background(), []string{"predict", "--checkpoint", "no\x1b[2Jsuch"}, strings.NewReader(""), io.Discard, &said); code == 0 ||
		strings.Contains(said.String(), "\x1b") {
		t.Errorf("exit %d: %q", code, said.String())
	}
	var shown bytes.Buffer
	a := &command.App{Streams: terminal.Streams{Stdout: &shown}}
	if err := a.Emit(nil, func(w io.Writer) error { _, err := io.WriteString(w, evil+"\tpain à l'ail 麦\n"); return err }); err != nil {
		t.Fatal(err)
	}
	if s := shown.String(); strings.ContainsAny(s, "\x1b\x07\u202e\u009b\r") || !strings.HasSuffix(s, "ship\tpain à l'ail 麦\n") {
		t.Errorf("%q", s)
	}
}
