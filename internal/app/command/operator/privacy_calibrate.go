package operator

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/internal/app/command"
)

func newPrivacyNoiseCmd(a *command.App, p Plots) *cobra.Command {
	f := privacyFlags{plots: p}
	cmd := &cobra.Command{
		Use:   "noise",
		Short: "The noise multiplier that keeps a number of rounds within an epsilon",
		Long: `Find the least noise multiplier for a target epsilon. It is rounded up to 7
digits and verified: the epsilon printed is that of the multiplier printed.`,
		Example: `  starling privacy noise --epsilon 2 --delta 1e-6 --sampling-rate 0.01 --rounds 200
  starling privacy noise --epsilon 2 --delta 1e-6 --sampling-rate 1 --separation 100 --rounds 200`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			acct, err := f.check(cmd, a, "epsilon", "sampling-rate", "rounds")
			if err != nil {
				return err
			}
			if f.Noise, err = f.Calibrate(acct); err != nil {
				return err
			}
			answer := fmt.Sprintf("noise multiplier  %.7g\n", f.Noise)
			if acct != dp.RDP {
				if f.RDPNoise, err = f.Calibrate(dp.RDP); err != nil {
					return err
				}
				answer += fmt.Sprintf("  the rdp accountant would ask for %.7g\n", f.RDPNoise)
			}
			return f.report(a, acct, answer)
		},
	}
	f.mechanism(cmd)
	f.epsilonFlag(cmd)
	return cmd
}

func newPrivacyRoundsCmd(a *command.App, p Plots) *cobra.Command {
	f := privacyFlags{plots: p}
	cmd := &cobra.Command{
		Use:     "rounds",
		Short:   "The largest number of rounds within an epsilon",
		Example: "  starling privacy rounds --epsilon 2 --delta 1e-6 --sampling-rate 0.01 --noise-multiplier 1",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			acct, err := f.check(cmd, a, "epsilon", "sampling-rate", "noise-multiplier")
			if err != nil {
				return err
			}
			if f.Rounds, err = accounting.CalibrateCount(f.Epsilon, f.Delta, acct, f.Event); err != nil {
				return err
			}
			if f.Rounds == 0 {
				return fmt.Errorf("one round alone passes epsilon %v: take more noise, a smaller sampling rate or a larger delta", f.Epsilon)
			}
			return f.report(a, acct, fmt.Sprintf("rounds            %d\n", f.Rounds))
		},
	}
	f.rateFlag(cmd)
	f.noiseFlag(cmd)
	f.epsilonFlag(cmd)
	f.guaranteeFlags(cmd)
	return cmd
}

func newPrivacyRateCmd(a *command.App, p Plots) *cobra.Command {
	f := privacyFlags{plots: p}
	cmd := &cobra.Command{
		Use:     "rate",
		Short:   "The largest sampling rate at which a number of rounds stays within an epsilon",
		Example: "  starling privacy rate --epsilon 2 --delta 1e-6 --noise-multiplier 1 --rounds 2000",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			acct, err := f.check(cmd, a, "epsilon", "noise-multiplier", "rounds")
			if err != nil {
				return err
			}
			if f.Rate, err = accounting.CalibrateSamplingRate(f.Epsilon, f.Delta, f.Noise, f.Rounds, acct); err != nil {
				return err
			}
			return f.report(a, acct, fmt.Sprintf("sampling rate     %.7g\n", f.Rate))
		},
	}
	f.noiseFlag(cmd)
	f.roundsFlag(cmd)
	f.epsilonFlag(cmd)
	f.guaranteeFlags(cmd)
	return cmd
}
