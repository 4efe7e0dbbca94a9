package operator

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/leaf/terminal"
)

// job check refuses what serve would refuse over the same base, and says when rounds begin.
func TestJobCheck(t *testing.T) {
	for text, want := range map[string]string{
		"": "rounds begin when 24 devices have enrolled; with 12 or more by starling job begin\n",
		"cohort: {start: 0.75, start_within: 2h}": "rounds begin when 18 devices have enrolled, or 2h0m0s after the job is first served with at least 12; with 12",
		"adapter: {targets: [nosuch]}":            `no linear map of a layer ends in "nosuch"`,
		"adapter: {also: [nosuch]}":               "nosuch",
		"adapter: {rank_max: 4000}":               "r_max is 4000",
		"adapter: {sequence: 60000}":              "adapter.sequence is 60000",
		"base: no-such/model":                     "not checked: what follows from the base",
	} {
		file := filepath.Join(t.TempDir(), "job.yaml")
		if err := os.WriteFile(file, []byte("name: x\nlabels: [a, b]\n"+text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		a := &command.App{Streams: terminal.Streams{Stdout: &out, Stderr: &out}}
		cmd := newJobCmd(a)
		cmd.SetArgs([]string{"check", file})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.ExecuteContext(t.Context())
		if err != nil {
			out.WriteString(err.Error())
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q: %s, does not say %q", text, out.String(), want)
		}
	}
}
