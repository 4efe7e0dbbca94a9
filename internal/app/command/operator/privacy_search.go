package operator

import (
	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
)

func newPrivacySearchCmd(a *command.App) *cobra.Command {
	var f privacyFlags
	var runs string
	cmd := &cobra.Command{
		Use:   "search",
		Short: "The epsilon of a search over settings, of which the best run is released",
		Long: `Compute what a search costs: a random number of runs, each with settings picked by
chance from a fixed list, of which only the best is released (Papernot and Steinke 2022,
"Hyperparameter Tuning with Renyi Differential Privacy"). The number is drawn before the
first run, by the distribution of --runs: poisson:MEAN (which may draw none, and then
nothing is released), geometric:MEAN, logarithmic:MEAN or negative-binomial:ETA:MEAN. What
chooses the best may be validation data of which nobody is protected.

A sweep that searches by this rule is starling sweep --account-search.`,
		Example: `  starling privacy search --sampling-rate 0.01 --noise-multiplier 0.8375 --rounds 200 --delta 1e-6 --runs poisson:10`,
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			acct, err := f.check(cmd, a, "sampling-rate", "noise-multiplier", "rounds", "runs")
			if err != nil {
				return err
			}
			of, err := accounting.ParseSearch(runs)
			if err != nil {
				return usage.Errorf("--runs: %w", err)
			}
			r, err := f.Search(of, acct)
			if err != nil {
				return err
			}
			return a.Emit(r, r.Print)
		},
	}
	f.rateFlag(cmd)
	f.roundsFlag(cmd)
	f.noiseFlag(cmd)
	cmd.Flags().Float64Var(&f.Delta, "delta", 0, "delta (default min(1e-6, N^-1.1) with --population, else required)")
	cmd.Flags().IntVar(&f.Population, "population", 0, "number of members N, to choose or check delta")
	cmd.Flags().StringVar(&f.Accountant, "accountant", "tight", `"tight" or "rdp", for the one run; a search is accounted by rdp`)
	cmd.Flags().StringVar(&runs, "runs", "", "distribution of the number of runs and its mean, such as poisson:10 (required)")
	return cmd
}
