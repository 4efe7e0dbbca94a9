package operator

import (
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/guarantee"
	"github.com/starling-fl/starling/internal/app/usage"
)

// privacyFlags are the flags that several privacy commands share.
type privacyFlags struct {
	guarantee.Plan
	curve string
	plots Plots // what draws --curve
}

func newPrivacyCmd(a *command.App, p Plots) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "privacy",
		Short: "Plan, explain and audit differential privacy",
		Long: `Compute what a training run costs in privacy before it starts, say in plain
words what is protected from whom, and print what a run has spent.`,
	}
	cmd.AddCommand(newPrivacyEpsilonCmd(a, p), newPrivacyNoiseCmd(a, p), newPrivacyRoundsCmd(a, p), newPrivacyRateCmd(a, p), newPrivacySearchCmd(a), newPrivacyExplainCmd(a), newPrivacyCardCmd(a), newPrivacyLedgerCmd(a), newPrivacyAuditCmd(a, p))
	return cmd
}

func (f *privacyFlags) rateFlag(cmd *cobra.Command) {
	cmd.Flags().Float64Var(&f.Rate, "sampling-rate", 0, "probability of each device's coin in each round, over-selection included; 1: no sampling (required)")
	cmd.Flags().Float64Var(&f.ProviderRate, "provider-rate", 0, "protect each provider in a device, with a coin of this probability inside it, 1 for none; 0: protect devices")
	cmd.Flags().Float64Var(&f.Hit, "hit", 0, "probability, in a round, that a device's coin shows by more than the sum: that its shard lacks just one (privacy explain --job computes it)")
	cmd.Flags().IntVar(&f.Separation, "separation", 0, "banded noise: a device takes part at most once in this many rounds; with --sampling-rate 1")
	cmd.Flags().IntVar(&f.Band, "band", 0, "with --separation: rounds that share noise (default --separation)")
	cmd.Flags().BoolVar(&f.Hidden, "participation-hidden", false, "with --provider-rate: nothing shows which devices take part, so that their coin amplifies too; true only where each holds one provider at most")
}

func (f *privacyFlags) roundsFlag(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.Rounds, "rounds", 0, "number of rounds (required)")
}

func (f *privacyFlags) epsilonFlag(cmd *cobra.Command) {
	cmd.Flags().Float64Var(&f.Epsilon, "epsilon", 0, "target epsilon (required)")
}

func (f *privacyFlags) guaranteeFlags(cmd *cobra.Command) {
	cmd.Flags().Float64Var(&f.Delta, "delta", 0, "delta (default min(1e-6, N^-1.1) with --population, else required)")
	cmd.Flags().IntVar(&f.Population, "population", 0, "number of members N, to choose or check delta")
	cmd.Flags().StringVar(&f.Accountant, "accountant", "tight", `"tight" (privacy loss distributions, capped by rdp) or "rdp"`)
	cmd.Flags().StringVar(&f.curve, "curve", "", "also write epsilon over the rounds to FILE.svg, FILE.png or FILE.csv")
}

func (f *privacyFlags) noiseFlag(cmd *cobra.Command) {
	cmd.Flags().Float64Var(&f.Noise, "noise-multiplier", 0, "noise standard deviation over L2 sensitivity, z (required)")
}

// mechanism adds the flags of a planned number of rounds.
func (f *privacyFlags) mechanism(cmd *cobra.Command) {
	f.rateFlag(cmd)
	f.roundsFlag(cmd)
	f.guaranteeFlags(cmd)
}

// check validates what the flags share and fills in delta.
func (f *privacyFlags) check(cmd *cobra.Command, a *command.App, required ...string) (dp.Accountant, error) {
	for _, name := range required {
		if !cmd.Flags().Changed(name) {
			return "", usage.Errorf("--%s is required", name)
		}
	}
	acct, err := dp.ParseAccountant(f.Accountant)
	if err != nil {
		return "", usage.Wrap(err)
	}
	if f.Population < 0 {
		return "", usage.Errorf("--population %d, want at least 1", f.Population)
	}
	if !cmd.Flags().Changed("delta") {
		if f.Population == 0 {
			return "", usage.Errorf("--delta or --population is required")
		}
		f.Delta = dp.DefaultDelta(f.Population)
	}
	warning, err := dp.CheckDelta(f.Delta, f.Population)
	if err != nil {
		return "", usage.Wrap(err)
	}
	if warning != "" {
		fmt.Fprintln(a.Stderr, "warning:", warning)
	}
	for _, name := range required { // what is not required is the answer
		switch {
		case name == "rounds" && (f.Rounds < 1 || f.Rounds > dp.MaxRounds):
			return "", usage.Errorf("--rounds %d, want 1 to %d", f.Rounds, dp.MaxRounds)
		case name == "sampling-rate" && !(f.Rate > 0 && f.Rate <= 1):
			return "", usage.Errorf("--sampling-rate %v, want in (0, 1]", f.Rate)
		case name == "noise-multiplier" && !(f.Noise > 0 && f.Noise <= math.MaxFloat64):
			return "", usage.Errorf("--noise-multiplier %v, want positive", f.Noise)
		case name == "epsilon" && !(f.Epsilon > 0 && f.Epsilon <= math.MaxFloat64):
			return "", usage.Errorf("--epsilon %v, want positive", f.Epsilon)
		}
	}
	if err := f.CheckUnit(); err != nil {
		return "", err
	}
	if f.curve != "" {
		if err := checkPlotName(f.plots, "curve", f.curve, "svg", "png", "csv"); err != nil {
			return "", err
		}
	}
	return acct, nil
}

func newPrivacyEpsilonCmd(a *command.App, p Plots) *cobra.Command {
	f := privacyFlags{plots: p}
	cmd := &cobra.Command{
		Use:   "epsilon",
		Short: "The epsilon of a number of rounds",
		Example: `  starling privacy epsilon --sampling-rate 0.01 --noise-multiplier 1 --rounds 2000 --delta 1e-6
  starling privacy epsilon --sampling-rate 0.01 --noise-multiplier 1 --rounds 2000 --population 1000000 --curve epsilon.svg
  starling privacy epsilon --sampling-rate 0.2 --provider-rate 0.5 --noise-multiplier 1 --rounds 100 --delta 1e-5`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			acct, err := f.check(cmd, a, "sampling-rate", "noise-multiplier", "rounds")
			if err != nil {
				return err
			}
			return f.report(a, acct, "")
		},
	}
	f.mechanism(cmd)
	f.noiseFlag(cmd)
	return cmd
}

// report prints an answer, where one was looked for, and the guarantee that goes
// with it.
func (f *privacyFlags) report(a *command.App, acct dp.Accountant, answer string) error {
	r, err := f.Report(acct)
	if err != nil {
		return err
	}
	if err := f.writeCurve(&r, acct); err != nil {
		return err
	}
	return a.Emit(r, func(w io.Writer) error {
		if _, err := io.WriteString(w, answer); err != nil {
			return err
		}
		return r.Print(w)
	})
}
