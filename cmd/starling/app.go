package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/edge"
)

// app carries what every command shares: the three streams and the global
// flags. Commands are built over it, so that tests run them without a process.
type app struct {
	Stdin  io.Reader
	Stdout io.Writer // results only
	Stderr io.Writer // progress and errors
	JSON   bool      // --json: one JSON value per report on Stdout

	reported bool // something was emitted
}

// usageError marks a failure as wrong usage: exit code 2 instead of 1.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// usagef returns a usageError with a formatted message.
func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// emit reports v: as one line of JSON with --json, else through human.
func (a *app) emit(v any, human func(w io.Writer) error) error {
	a.reported = true
	if a.JSON {
		return json.NewEncoder(a.Stdout).Encode(v)
	}
	return human(plain{a.Stdout})
}

// interruptedReport is what a command says of itself that a signal ended before it had
// anything else to report.
type interruptedReport struct {
	Interrupted bool   `json:"interrupted"`
	Reason      string `json:"reason"` // and how to go on
}

// noArgs refuses positional arguments as wrong usage.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no arguments, got %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{Stdin: stdin, Stdout: stdout, Stderr: stderr}
	root := newRootCmd(a)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if i, ok := interruption(ctx); ok {
		text := "interrupted"
		if words := edge.Words(err); strings.HasPrefix(words, text) {
			text = words // and how to go on
		}
		if a.JSON && !a.reported { // whoever reads the last line finds an object there
			_ = json.NewEncoder(stdout).Encode(interruptedReport{true, text}) // the exit code says it, too
		}
		fmt.Fprintf(stderr, "starling: %s\n", visible(text, "\t\n"))
		return i.exitCode()
	}
	fmt.Fprintf(stderr, "starling: %s\n", visible(edge.Words(err), "\t\n"))
	var usage usageError
	if errors.As(err, &usage) {
		fmt.Fprintln(stderr, "Run 'starling help' or add --help to the command for its usage.")
		return 2
	}
	return 1
}

func newRootCmd(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "starling",
		Short:         "Federated fine-tuning across laptops and browsers, with privacy you can check",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.PersistentFlags().BoolVar(&a.JSON, "json", false, "report as JSON on standard output")
	root.SetFlagErrorFunc(flagError)
	root.SuggestionsMinimumDistance = 2
	root.AddCommand(
		newDemoCmd(a),
		newSimulateCmd(a),
		newSweepCmd(a),
		newReportCmd(a),
		newPartitionCmd(a),
		newReproduceCmd(a),
		newWorkerCmd(a),
		newServeCmd(a),
		newJoinCmd(a),
		newBenchCmd(a),
		newAccountCmd(a),
		newIdentityCmd(a),
		newProgramCmd(a),
		newTokenCmd(a),
		newDevicesCmd(a),
		newInvoicesCmd(a),
		newInspectCmd(a),
		newBaseCmd(a),
		newPretrainCmd(a),
		newPredictCmd(a),
		newExportCmd(a),
		newImportCmd(a),
		newEvaluateCmd(a),
		newBandwidthCmd(a),
		newJobCmd(a),
		newPrivacyCmd(a),
		newSecaggCmd(a),
		newVersionCmd(a),
		newManCmd(),
	)
	return root
}
