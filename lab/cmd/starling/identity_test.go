package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/participation"
)

// Ctrl-C is told as what it is, with the exit code that shells know.
func TestInterruptedJoin(t *testing.T) {
	folder := t.TempDir()
	data := filepath.Join(folder, "a.tsv")
	if err := os.WriteFile(data, []byte("x\ty\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // nobody answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var out, said bytes.Buffer
	args := []string{"join", "--json", "http://" + l.Addr().String(), "--data", data, "--identity", filepath.Join(folder, "id.pem"), "--cache", folder, "--accounts", folder}
	code := run(ctx, args, strings.NewReader(""), writerFunc(func(p []byte) (int, error) {
		if strings.Contains(string(p), string(edge.Connecting)) { // an event is a line of JSON
			cancel(command.Interrupted{Signal: 2})
		}
		return out.Write(p)
	}), &said)
	if text := said.String(); code != 130 || !strings.Contains(text, "starling: interrupted after 0 rounds") || strings.Contains(text, "context canceled") {
		t.Errorf("exit %d:\n%s", code, text)
	}
	// A script reads the last line: what was given until then is in it.
	var report participation.Report
	if err := json.Unmarshal([]byte(lastLine(out.String())), &report); err != nil || !report.Interrupted || report.Examples != 1 || !strings.HasPrefix(report.Reason, "interrupted after 0 rounds") {
		t.Errorf("the last line of standard output is %q: %v", out.String(), err)
	}
}

// With --json whatever a signal ends says so as its last line.
func TestInterruptedReport(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(command.Interrupted{Signal: 15})
	for _, args := range [][]string{
		{"demo", "--out", t.TempDir()}, {"simulate", "--out", t.TempDir()},
		{"join", "http://127.0.0.1:1", "--data", filepath.Join(t.TempDir(), "none.tsv")},
	} {
		var out, said bytes.Buffer
		code := run(ctx, append(args, "--json"), strings.NewReader(""), &out, &said)
		var report command.InterruptedReport
		if err := json.Unmarshal([]byte(lastLine(out.String())), &report); err != nil || code != 143 || !report.Interrupted || !strings.HasPrefix(report.Reason, "interrupted") {
			t.Errorf("%s: exit %d, last line %q, %v\n%s", args[0], code, out.String(), err, said.String())
		}
	}
}

// lastLine is the last line of a text that ends in a newline.
func lastLine(s string) string {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	return lines[len(lines)-1]
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
