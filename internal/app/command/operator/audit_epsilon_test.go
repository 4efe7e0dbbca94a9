package operator

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/terminal"
)

// TestAnEpsilonHasItsDelta: a model that is sold at a larger delta than the audit's would be
// called flawed wrongly, so that an epsilon is held against a bound at a delta that was said.
func TestAnEpsilonHasItsDelta(t *testing.T) {
	for args, want := range map[string]string{
		"--epsilon 8":                "--epsilon 8 needs --delta",
		"--epsilon 8 --delta 2":      "--delta 2, want in [0, 1)",
		"--epsilon 8 --delta 1e-6":   "none", // whatever is wrong with the folder
		"--epsilon -1 --delta 1e-6":  "--epsilon -1, want 0 or more",
		"--confidence 0.4":           "--confidence 0.4",
		"--epsilon 8 --delta 1e-300": "none",
	} {
		cmd := newAuditEpsilonCmd(&command.App{Streams: terminal.Streams{Stdout: io.Discard, Stderr: io.Discard}})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(append(strings.Fields(args), "--checkpoint", "none", "--data", "none", "--in", "none"))
		err := cmd.Execute()
		var wrong usage.Error
		if err == nil || !strings.Contains(err.Error(), want) || errors.As(err, &wrong) == (want == "none") {
			t.Errorf("%s: %v, want it to name %q", args, err, want)
		}
	}
}
