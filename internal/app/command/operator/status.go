package operator

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/admin"
	"github.com/starling-fl/starling/internal/app/checkup"
	"github.com/starling-fl/starling/internal/app/command"
)

// whereFlags adds --dir, --server and --token-file.
func whereFlags(cmd *cobra.Command, where *admin.Where) {
	cmd.Flags().StringVar(&where.Dir, "dir", "", "the coordinator's folder")
	cmd.Flags().StringVar(&where.Server, "server", "", "in place of --dir, the coordinator's admin address, as https://host:port")
	cmd.Flags().StringVar(&where.TokenFile, "token-file", "", "with --server, a file that holds an operator's token (starling operator add), or an ID token of its OpenID issuer")
}

func newStatusCmd(a *command.App) *cobra.Command {
	var where admin.Where
	cmd := &cobra.Command{
		Use:   "status --dir DIR",
		Short: "Show how far a coordinator is: rounds, devices, privacy, accuracy",
		Long: `Show what the dashboard's first screen shows, of a coordinator that runs on this machine
(--dir) or elsewhere (--server and --token-file).`,
		Example: "  starling status --dir run1\n  starling status --server https://fl.example.org:9443 --token-file viewer.token --json",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			d, err := where.Desk()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, d.Close()) }()
			o, err := d.Overview(cmd.Context())
			if err != nil {
				return err
			}
			return a.Emit(o, o.Print)
		},
	}
	whereFlags(cmd, &where)
	return cmd
}

// serverChecks adds the flags with which doctor looks at a coordinator.
func serverChecks(cmd *cobra.Command) func(context.Context) (*checkup.Report, error) {
	var where admin.Where
	whereFlags(cmd, &where)
	cmd.Short = "Look at what keeps this machine, or a coordinator, from working, and say how to put it right"
	cmd.Long += `

With --dir, or --server and --token-file, it looks at a coordinator: its store, disk, secrets and
backups, and what it finds of itself if it runs.`
	cmd.Example += "\n  starling doctor --dir run1"
	return func(ctx context.Context) (*checkup.Report, error) {
		if where == (admin.Where{}) {
			return nil, nil
		}
		return where.Doctor(ctx)
	}
}
