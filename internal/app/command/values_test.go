package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/usage"
)

// failing is a program of one command, whose run fails with err.
func failing(err error) func(*App) *cobra.Command {
	return func(*App) *cobra.Command {
		root := &cobra.Command{Use: "program"}
		cmd := &cobra.Command{Use: "go", RunE: func(*cobra.Command, []string) error { return err }}
		cmd.Flags().Float64("share", 0, "")
		cmd.Flags().Int("count", 0, "")
		cmd.Flags().Uint64("seed", 0, "")
		cmd.Flags().Duration("wait", time.Second, "")
		cmd.Flags().Bool("on", false, "")
		root.AddCommand(cmd)
		return root
	}
}

// A value that a flag does not take is refused in the words of people, not of Go's parsers.
func TestValuesAreRefusedPlainly(t *testing.T) {
	for arg, want := range map[string]string{
		"--share=x": `--share "x": want a number`, "--count=1.5": `--count "1.5": want a whole number`, "--seed=-1": `--seed "-1": want a whole number from 0 on`,
		"--wait=soon": `--wait "soon": want a duration, as 90s or 24h`, "--on=perhaps": `--on "perhaps": want true or false`,
		"--count=99999999999999999999": `--count "99999999999999999999": want a whole number within its limits`,
	} {
		var out, errs bytes.Buffer
		code := Run(t.Context(), failing(nil), []string{"go", arg}, strings.NewReader(""), &out, &errs)
		if !strings.HasPrefix(errs.String(), "program: "+want+"\n") || code != 2 || out.Len() > 0 {
			t.Errorf("%s: %d, %q, %q", arg, code, out.String(), errs.String())
		}
	}
}

// With --json a failure is an object, too.
func TestFailuresAreJSON(t *testing.T) {
	for _, c := range []struct {
		args []string
		err  error
		want FailedReport
	}{
		{[]string{"go", "--json"}, errors.New("it broke"), FailedReport{"it broke", 1}},
		{[]string{"--json", "go"}, usage.Errorf("no such thing"), FailedReport{"no such thing", 2}},
		{[]string{"go", "--count=x", "--json"}, nil, FailedReport{`--count "x": want a whole number`, 2}},
	} {
		var out, errs bytes.Buffer
		code := Run(t.Context(), failing(c.err), c.args, strings.NewReader(""), &out, &errs)
		var got FailedReport
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || got != c.want || code != c.want.Code || errs.Len() == 0 {
			t.Errorf("%q: %d, %q, %v", c.args, code, out.String(), err)
		}
	}
}
