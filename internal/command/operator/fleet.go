package operator

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/admin"
	"github.com/starling-fl/starling/internal/command"
)

// fleetFlags adds --dir, --server and --token-file, and returns what opens the fleet.
func fleetFlags(cmd *cobra.Command) func(func(admin.Fleet) error) error {
	var where admin.Where
	cmd.Flags().StringVar(&where.Dir, "dir", "", "the coordinator's folder")
	cmd.Flags().StringVar(&where.Server, "server", "", "in place of --dir, the coordinator's admin address, as https://host:port")
	cmd.Flags().StringVar(&where.TokenFile, "token-file", "", "with --server, a file that holds an operator's token (starling operator add), or an ID token of its OpenID issuer")
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
