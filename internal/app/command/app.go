// Package command is what the commands of starling and starling-edge share: streams and
// flags, errors of usage, reports, interruption. The commands of a device are below, in
// device, those of an operator in operator; the laboratory's are in lab/internal/commands.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/checkup"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/internal/leaf/terminal"
	"github.com/starling-fl/starling/job"
)

// App carries what every command shares: the three streams and the global
// flags. Commands are built over it, so that tests run them without a process.
type App struct {
	terminal.Streams // JSON is --json

	Version string // of the program, set where its commands are made

	// ServerChecks adds flags to the command doctor that have it look at a coordinator in place of this device, and
	// returns what does; nil without them. nil in a program that knows no coordinators.
	ServerChecks func(*cobra.Command) func(context.Context) (*checkup.Report, error)

	Input []error // what else than ErrInvalid of a job says that something given cannot be used
}

// InterruptedReport is the report of a command that a signal ended before it had a report of its own.
type InterruptedReport struct {
	Interrupted bool   `json:"interrupted"`
	Reason      string `json:"reason"` // and how to go on
}

// FailedReport is the report on standard output of a command with --json that failed before it had one of its own.
type FailedReport struct {
	Error string `json:"error"`
	Code  int    `json:"exit_code"`
}

// NoArgs refuses positional arguments as wrong usage.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage.Errorf("%s takes no arguments, got %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// Run executes a command line of the commands that root makes and returns the exit code.
func Run(ctx context.Context, newRoot func(*App) *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &App{Streams: terminal.Streams{Stdin: stdin, Stdout: stdout, Stderr: stderr}}
	root := Root(a, newRoot)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	ran, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	err = columnHint(ran, err)
	if i, ok := interruption(ctx); ok {
		text := "interrupted"
		if words := edge.Explain(err); strings.HasPrefix(words, text) {
			text = words // and how to go on
		}
		if a.JSON && !a.Reported() { // anyone who reads the last line finds an object there
			_ = json.NewEncoder(stdout).Encode(InterruptedReport{true, text}) // the exit code says it, too
		}
		fmt.Fprintf(stderr, "%s: %s\n", root.Name(), terminal.Visible(text, "\t\n"))
		return i.exitCode()
	}
	text := terminal.Visible(namedOnce(err), "\t\n")
	var wrong usage.Error
	misused := errors.As(err, &wrong)
	code := exitFailed
	if misused || a.given(err) {
		code = exitGiven
	}
	if (a.JSON || slices.Contains(args, "--json")) && !a.Reported() { // flags behind a wrong one are not read
		_ = json.NewEncoder(stdout).Encode(FailedReport{text, code}) // the exit code says it, too
	}
	fmt.Fprintf(stderr, "%s: %s\n", root.Name(), text)
	if misused {
		fmt.Fprintf(stderr, "Run '%s help' or add --help to the command for its usage.\n", root.Name())
	}
	return code
}

// Exit codes, beside 0 and those of signals; docs/OPERATE.md has the rule.
const (
	exitFailed = 1
	exitGiven  = 2 // what was given cannot be used: words of the command line, or a file
)

// given reports whether an error is about a file that somebody gave, and not about the work.
func (a *App) given(err error) bool {
	var (
		file *named.Error
		line *dataset.LineError
	)
	return errors.As(err, &file) || errors.As(err, &line) ||
		slices.ContainsFunc(append(a.Input, job.ErrInvalid), func(e error) bool { return errors.Is(err, e) })
}

// namedOnce is an error in words, without the second name of a file that anyone who wrapped it
// has named already.
func namedOnce(err error) string {
	text := edge.Explain(err)
	var file *fs.PathError
	if errors.As(err, &file) {
		rest := strings.Replace(text, file.Op+" "+file.Path+": ", "", 1)
		if strings.Contains(" "+rest, " "+file.Path+": ") {
			return rest
		}
	}
	return text
}

// Root is the command above those that newRoot adds.
func Root(a *App, newRoot func(*App) *cobra.Command) *cobra.Command {
	root := newRoot(a)
	version := newVersion(a)
	root.AddCommand(version)
	root.SilenceUsage, root.SilenceErrors = true, true
	groups(root)
	addGroups(root)
	setUsage(root)
	complete(root)
	asked := root.Flags().Bool("version", false, "the same as the command version")
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *asked {
			return version.RunE(cmd, args)
		}
		return cmd.Help()
	}
	root.PersistentFlags().BoolVar(&a.JSON, "json", false, "report as JSON on standard output")
	root.SetFlagErrorFunc(flagError)
	root.SuggestionsMinimumDistance = 2
	return root
}

// groups has commands that others are under show these, and refuse what is none of them.
func groups(cmd *cobra.Command) {
	if !cmd.HasSubCommands() {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, c := range cmd.Commands() {
		groups(c)
	}
}

// Main runs a program's commands until they end, or a signal ends them.
func Main(newRoot func(*App) *cobra.Command) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		s := <-signals
		signal.Stop(signals) // a second one ends the process at once
		n, _ := s.(syscall.Signal)
		cancel(Interrupted{int(n)})
		named.Interrupt()
	}()
	os.Exit(Run(ctx, newRoot, os.Args[1:], named.Stream{File: os.Stdin}, os.Stdout, os.Stderr))
}

// Interrupted is the end of a command by a signal.
type Interrupted struct{ Signal int }

func (i Interrupted) Error() string { return "interrupted" }

// exitCode is what a shell says of a command that the signal ended.
func (i Interrupted) exitCode() int { return 128 + i.Signal }

// interruption is the signal that ended ctx, if one did.
func interruption(ctx context.Context) (Interrupted, bool) {
	var i Interrupted
	ok := errors.As(context.Cause(ctx), &i)
	return i, ok
}
