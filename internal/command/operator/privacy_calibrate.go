package operator

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/command"
)

func newPrivacyNoiseCmd(a *command.App, p Plots) *cobra.Command {
	f := privacyFlags{plots: p}
	cmd := &cobra.Command{
		Use:   "noise",
		Short: "The noise multiplier that keeps a number of rounds within an epsilon",
		Long: `Find the least noise multiplier for a target epsilon. It is rounded up to 7
digits and verified: the epsilon printed is that of the multiplier printed.`,
		Example: "  starling privacy noise --epsilon 2 --delta 1e-6 --sampling-rate 0.01 --rounds 200",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			acct, err := f.check(cmd, a, "epsilon", "sampling-rate", "rounds")
			if err != nil {
				return err
			}
			if f.noise, err = f.calibrate(acct); err != nil {
				return err
			}
			answer := fmt.Sprintf("noise multiplier  %.7g\n", f.noise)
			if acct != dp.RDP {
				if f.rdpNoise, err = f.calibrate(dp.RDP); err != nil {
					return err
				}
				answer += fmt.Sprintf("  the rdp accountant would ask for %.7g\n", f.rdpNoise)
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
			if f.providerRate > 0 {
				f.rounds, err = f.group().CalibrateRounds(f.epsilon, f.delta, f.noise, acct)
			} else {
				f.rounds, err = dp.CalibrateRounds(f.epsilon, f.delta, dp.Mechanism{SamplingRate: f.rate, NoiseMultiplier: f.noise}, acct)
			}
			if err != nil {
				return err
			}
			if f.rounds == 0 {
				return fmt.Errorf("one round alone passes epsilon %v: take more noise, a smaller sampling rate or a larger delta", f.epsilon)
			}
			return f.report(a, acct, fmt.Sprintf("rounds            %d\n", f.rounds))
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
			if f.rate, err = dp.CalibrateSamplingRate(f.epsilon, f.delta, f.noise, f.rounds, acct); err != nil {
				return err
			}
			return f.report(a, acct, fmt.Sprintf("sampling rate     %.7g\n", f.rate))
		},
	}
	f.noiseFlag(cmd)
	f.roundsFlag(cmd)
	f.epsilonFlag(cmd)
	f.guaranteeFlags(cmd)
	return cmd
}

// calibrate is the noise multiplier that meets --epsilon.
func (f *privacyFlags) calibrate(acct dp.Accountant) (float64, error) {
	with := *f
	return dp.CalibrateEvent(f.epsilon, f.delta, acct, func(z float64) dp.Event {
		with.noise = z
		return with.planned(f.rounds)
	})
}
