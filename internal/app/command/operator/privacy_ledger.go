package operator

import (
	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/spent"
	"github.com/starling-fl/starling/internal/app/usage"
)

func newPrivacyLedgerCmd(a *command.App) *cobra.Command {
	var delta float64
	var accountant string
	cmd := &cobra.Command{
		Use:   "ledger DIR...",
		Short: "Verify privacy ledgers and print their cost, together for several",
		Long: `Read the ledger in a coordinator's folder, check its hash chain, account for
every entry again from what is recorded, and print both. A cut at the end of a
ledger does not show in itself: compare the head with one kept elsewhere.

Several folders are jobs over one population: a device in all of them spends what
all of them do, which is more than any of them says. Their events are composed.`,
		Example: "  starling privacy ledger ./run\n  starling privacy ledger ./run1 ./run2 --delta 1e-6",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage.Errorf("privacy ledger wants a coordinator's folder, or several, got none")
			}
			acct, err := dp.ParseAccountant(accountant)
			if err != nil {
				return usage.Wrap(err)
			}
			r, err := spent.Read(args, delta, acct)
			if err != nil {
				return err
			}
			return a.Emit(r, r.Print)
		},
	}
	cmd.Flags().Float64Var(&delta, "delta", 0, "account at this delta (default: the run's own; of several the smallest)")
	cmd.Flags().StringVar(&accountant, "accountant", "tight", `"tight" or "rdp"`)
	return cmd
}
