package operator

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/command"
)

// SearchReport is what "privacy search" prints with --json: one run beside the search.
type SearchReport struct {
	One    dp.Guarantee `json:"one_run"`
	Whole  dp.Guarantee `json:"search"`
	Runs   dp.Search    `json:"runs"`
	Spread []runsBelow  `json:"quantiles"` // of the number of runs
}

// runsBelow says that the number of runs is at most that with a probability.
type runsBelow struct {
	Probability float64 `json:"probability"`
	Runs        int     `json:"runs"`
}

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
			r := SearchReport{}
			if r.Runs, err = dp.ParseSearch(runs); err != nil {
				return command.Usagef("--runs: %w", err)
			}
			events := []dp.Event{f.planned(f.rounds)}
			if r.One, err = dp.Epsilon(events, f.delta, acct); err != nil {
				return command.Usage(err)
			}
			if r.Whole, err = r.Runs.Guarantee(dp.Budget{Delta: f.delta}, events, false); err != nil {
				return err
			}
			for _, p := range []float64{0.05, 0.5, 0.95, 0.999} {
				r.Spread = append(r.Spread, runsBelow{p, r.Runs.Quantile(p)})
			}
			return a.Emit(r, r.print)
		},
	}
	f.rateFlag(cmd)
	f.roundsFlag(cmd)
	f.noiseFlag(cmd)
	cmd.Flags().Float64Var(&f.delta, "delta", 0, "delta (default min(1e-6, N^-1.1) with --population, else required)")
	cmd.Flags().IntVar(&f.population, "population", 0, "number of members N, to choose or check delta")
	cmd.Flags().StringVar(&f.accountant, "accountant", "tight", `"tight" or "rdp", for the one run; a search is accounted by rdp`)
	cmd.Flags().StringVar(&runs, "runs", "", "distribution of the number of runs and its mean, such as poisson:10 (required)")
	return cmd
}

func (r SearchReport) print(w io.Writer) error {
	fmt.Fprintf(w, "one run           epsilon %.6g at delta %.3g, %s accountant (rdp alone: %.6g)\n", r.One.Epsilon, r.One.Delta, r.One.Accountant, r.One.RDPEpsilon)
	fmt.Fprintf(w, "the search        epsilon %.6g at delta %.3g, %s accountant at order %.5g\n", r.Whole.Epsilon, r.Whole.Delta, r.Whole.Accountant, r.Whole.RDPOrder)
	fmt.Fprintf(w, "adjacency         %s\nsampling          %s\nrounds            %d in each run\n", r.Whole.Adjacency, r.Whole.Sampling, r.Whole.Rounds)
	fmt.Fprintf(w, "runs              %s, %.6g on average\n", r.Runs, r.Runs.Mean)
	for _, q := range r.Spread {
		fmt.Fprintf(w, "  at most %-8d with probability %.4g\n", q.Runs, q.Probability)
	}
	_, err := fmt.Fprintf(w, "\nProtected: the presence of %s, from whoever sees the one model that is\nreleased. The other runs, how many there were and what they scored must stay secret.\n", protectedUnit(r.Whole.Adjacency))
	return err
}
