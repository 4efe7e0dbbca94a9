package device

import (
	"crypto/ed25519"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/accounts"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
)

// identityReport is the public half of a device's identity.
type identityReport struct {
	Identity string `json:"identity"` // Ed25519 public key, hexadecimal
	File     string `json:"file"`
}

func newIdentityCmd(a *command.App) *cobra.Command {
	var data, identity string
	cmd := &cobra.Command{
		Use:   "identity --data FILE",
		Short: "Print the identity under which a data file takes part",
		Long: `Print the public half of the identity that 'starling join' uses for a data file,
and make one where there is none: what the owners of other devices name in their
policies (join --peers), and what 'starling devices' lists.`,
		Example: "  starling identity --data my.tsv",
		Args:    command.NoArgs,
		RunE: func(*cobra.Command, []string) (err error) {
			if (data == "") == (identity == "") {
				return usage.Errorf("give --data or --identity: the file that is joined with, or its identity's")
			}
			if identity == "" {
				if identity, err = accounts.IdentityPath(data); err != nil {
					return err
				}
			}
			key, err := edge.LoadIdentity(identity)
			if err != nil {
				return err
			}
			public, _ := key.Public().(ed25519.PublicKey)
			report := identityReport{Identity: fmt.Sprintf("%x", []byte(public)), File: identity}
			return a.Emit(report, func(w io.Writer) error {
				_, err := fmt.Fprintln(w, report.Identity)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "the data file")
	cmd.Flags().StringVar(&identity, "identity", "", "an identity file")
	return cmd
}
