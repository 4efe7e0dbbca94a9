package operator

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/admin"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
)

// fleetFlags adds --dir, --server and --token-file, and returns what opens the fleet.
func fleetFlags(cmd *cobra.Command) func(func(admin.Fleet) error) error {
	var where admin.Where
	whereFlags(cmd, &where)
	return func(use func(admin.Fleet) error) (err error) {
		f, err := where.Open()
		if err != nil {
			return err
		}
		defer func() {
			if e := f.Close(); err == nil {
				err = e
			}
		}()
		return use(f)
	}
}

// acted reports what was done: with --json a line that programs read, else a sentence beside what
// commands print for others.
func acted(a *command.App, act, on, sentence string) error {
	done := struct {
		Act string `json:"act"`
		On  string `json:"on"`
	}{act, on}
	return a.Emit(done, func(io.Writer) error {
		_, err := fmt.Fprintln(a.Stderr, sentence)
		return err
	})
}

// eachCmd does something to each of what its arguments name, which wants says in words. do returns the
// name that is reported, and what was done in a sentence.
func eachCmd(a *command.App, use, short, wants string, do func(f admin.Fleet, arg string) (on, sentence string, err error)) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short}
	with := fleetFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			group := cmd.Parent().Name()
			return usage.Errorf("%s %s wants %s: see starling %s list", group, cmd.Name(), wants, group)
		}
		return with(func(f admin.Fleet) error {
			for _, arg := range args {
				on, sentence, err := do(f, arg)
				if err != nil {
					return err
				}
				if err := acted(a, cmd.Name(), on, sentence); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return cmd
}

// listCmd shows what a coordinator holds as a table, a line each.
func listCmd[T any](a *command.App, short, heads string, list func(admin.Fleet) ([]T, error), line func(T) string) *cobra.Command {
	cmd := &cobra.Command{Use: "list --dir DIR", Short: short, Args: command.NoArgs}
	with := fleetFlags(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		return with(func(f admin.Fleet) error {
			all, err := list(f)
			if err != nil {
				return err
			}
			return a.Emit(all, func(w io.Writer) error { return printTable(w, heads, all, line) })
		})
	}
	return cmd
}

// printTable writes a line for each below the heads, whose columns tabs part.
func printTable[T any](w io.Writer, heads string, all []T, line func(T) string) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, heads)
	for _, one := range all {
		fmt.Fprintln(t, line(one))
	}
	return t.Flush()
}
