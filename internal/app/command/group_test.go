package command

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// grouped is a program with a command of a job, whose flags have headings, and one that writes test data.
func grouped(a *App) *cobra.Command {
	a.Version = "test"
	root := &cobra.Command{Use: "starling"}
	serve := &cobra.Command{Use: "serve", Short: "Run a coordinator", RunE: func(*cobra.Command, []string) error { return nil }}
	fl := serve.Flags()
	fl.String("tls-cert", "", "a certificate")
	fl.String("job", "", "a job file, of which this help says so much that it needs more than one line of a terminal of usual width")
	fl.String("log", "", "text or json")
	fl.String("kind", "", "round or square")
	fl.Bool("odd", false, "none of these")
	Headings(fl, []string{"Job", "job"}, []string{"TLS", "tls-cert"})
	Values(serve, "kind", "round", "square")
	root.AddCommand(In(RunJob, serve)...)
	AddMakers(root, &cobra.Command{Use: "pots", Short: "Write pots", RunE: func(*cobra.Command, []string) error { return nil }})
	return root
}

func said(args ...string) (code int, text string) {
	var out, errs bytes.Buffer
	code = Run(context.Background(), grouped, args, strings.NewReader(""), &out, &errs)
	return code, out.String() + errs.String()
}

// Help lists commands by what they are for, and flags under their headings, in lines that fit.
func TestHelpIsGrouped(t *testing.T) {
	_, text := said("help")
	before, after, ok := strings.Cut(text, Laboratory)
	if !ok || !strings.Contains(before, RunJob+"\n  serve") || !strings.Contains(after, "\n  lab ") || strings.Contains(text, "pots") ||
		strings.Contains(text, TakePart) {
		t.Errorf("help: %s", text)
	}
	_, text = said("serve", "--help")
	at := -1
	for _, part := range []string{"Usage:\n  starling serve", "\nJob:\n", "--job", "\nTLS:\n", "--tls-cert", "\nFlags:\n", "--json", "--odd"} {
		next := strings.Index(text, part)
		if next <= at {
			t.Errorf("%q is at %d, after %d: %s", part, next, at, text)
		}
		at = next
	}
	for line := range strings.Lines(text) {
		if len(line) > 101 {
			t.Errorf("a line of %d columns: %s", len(line), line)
		}
	}
}

// What writes test data is below lab; its old name says so, whatever flags it is given.
func TestMakersMoved(t *testing.T) {
	if code, text := said("lab", "pots"); code != 0 {
		t.Errorf("exit %d: %s", code, text)
	}
	if code, text := said("pots", "--round", "3"); code != 2 || !strings.Contains(text, "starling pots is starling lab pots now") {
		t.Errorf("exit %d: %s", code, text)
	}
}

// A shell offers the words of a flag: those of its name, or the command's own.
func TestValuesAreCompleted(t *testing.T) {
	for flag, want := range map[string]string{"--kind": "round\nsquare\n", "--log": "text\njson\n"} {
		if _, text := said("__complete", "serve", flag, ""); !strings.HasPrefix(text, want) {
			t.Errorf("%s: %q", flag, text)
		}
	}
	if _, text := said("__complete", "serve", "--job", ""); !strings.HasPrefix(text, "yaml\nyml\n") {
		t.Errorf("--job: %q", text)
	}
}
