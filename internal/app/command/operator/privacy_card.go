package operator

import (
	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/protocol/card"
	"github.com/starling-fl/starling/job"
)

func newPrivacyCardCmd(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:   "card FILE",
		Short: "Print the privacy card that a job's coordinator will sign: what is promised to whom, and on what it rests",
		Long: `Print a job's privacy card, in the shape of NIST SP 800-226: the unit, what two worlds
differ in, the mechanism, epsilon against each observer, with and without trust in the
coordinator, and each assumption with the test that watches it. With --json it is the
file that the coordinator signs and serves at /v1/job/card, but for the job's id.
Devices hold that file against the announced job before they join, and keep it.`,
		Example: "  starling privacy card job.yaml\n  starling privacy card job.yaml --json > card.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage.Errorf("%s takes one job file, got %d arguments", cmd.CommandPath(), len(args))
			}
			j, err := job.Load(args[0])
			if err != nil {
				return err
			}
			base, err := bases.ForJob(j)
			if err != nil {
				return err
			}
			b, err := coordinator.PlannedCard(j, base)
			if err != nil {
				return usage.Wrap(err)
			}
			c, err := card.Parse(b)
			if err != nil {
				return err
			}
			return a.Emit(c, c.Print)
		},
	}
}
