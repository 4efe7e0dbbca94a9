package operator

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/secagg"
	"github.com/starling-fl/starling/secagg/strength"
)

// secaggParams is what "starling secagg params --json" prints. Logarithms are to
// base 2; null stands for an impossible event.
type secaggParams struct {
	Shard              int      `json:"shard"`
	Threshold          int      `json:"threshold"`
	BreachCount        int      `json:"breach_count"`
	SemiHonest         bool     `json:"semi_honest"`
	Dropout            float64  `json:"dropout"`
	Corrupt            float64  `json:"corrupt"`
	Cohort             int      `json:"cohort"`
	Population         int      `json:"population,omitempty"`
	Shards             int      `json:"shards"`
	Rounds             int      `json:"rounds"`
	HonestInSum        int      `json:"honest_in_sum"`
	Log2ShardFailure   *float64 `json:"log2_shard_failure"`
	Log2Breach         *float64 `json:"log2_breach"`
	Log2BreachPerRound *float64 `json:"log2_breach_per_round"`
	Log2BreachPerJob   *float64 `json:"log2_breach_per_job"`
}

func newSecaggCmd(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secagg",
		Short: "Parameters of secure aggregation",
	}
	cmd.AddCommand(newSecaggParamsCmd(a))
	return cmd
}

func newSecaggParamsCmd(a *command.App) *cobra.Command {
	var m strength.Model
	cmd := &cobra.Command{
		Use:   "params",
		Short: "Choose a shard's threshold and print how likely it fails or is broken",
		Long: `Choose the least threshold that keeps a round's breach probability below
2^-breach-bits over all its shards, or judge the one given, and print exactly how
likely a shard fails for dropouts and is broken by corrupted members who collude
with the server: per shard, per round and per job. What cannot be met is refused.`,
		Example: "  starling secagg params --shard 64 --dropout 0.1 --corrupt 0.05\n  starling secagg params --shard 128 --dropout 0.3 --corrupt 0.1 --semi-honest",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("cohort") {
				// The reference cohort, where it makes sense at all.
				m.Cohort = max(m.Cohort, m.Shard)
				if m.Population > 0 {
					m.Cohort = min(m.Cohort, m.Population)
				}
			}
			p, err := strength.Choose(m)
			if err != nil {
				if errors.Is(err, secagg.ErrConfig) {
					return usage.Wrap(err)
				}
				return err
			}
			report := secaggParams{
				Shard: p.Shard, Threshold: p.Threshold, BreachCount: p.BreachCount, SemiHonest: p.SemiHonest,
				Dropout: p.Dropout, Corrupt: p.Corrupt, Cohort: p.Cohort, Population: p.Population,
				Shards: p.Shards, Rounds: p.Rounds, HonestInSum: p.HonestInSum,
				Log2ShardFailure: finite(p.Failure), Log2Breach: finite(p.Breach),
				Log2BreachPerRound: finite(p.BreachRound), Log2BreachPerJob: finite(p.BreachJob),
			}
			return a.Emit(report, func(w io.Writer) error {
				_, err := fmt.Fprint(w, p.Explain())
				return err
			})
		},
	}
	f := cmd.Flags()
	f.IntVar(&m.Shard, "shard", 64, "devices in a shard")
	f.IntVar(&m.Threshold, "threshold", 0, "devices needed to unmask (0: the least that is safe)")
	f.Float64Var(&m.Dropout, "dropout", 0.1, "share of devices that drop after sharing their secrets")
	f.Float64Var(&m.Corrupt, "corrupt", 0.05, "share of devices that collude with the server")
	f.BoolVar(&m.SemiHonest, "semi-honest", false, "trust the server to follow the protocol")
	f.IntVar(&m.Cohort, "cohort", 1000, "devices in a round")
	f.IntVar(&m.Rounds, "rounds", 2000, "rounds of the job")
	f.IntVar(&m.Population, "population", 0, "enrolled devices the shards are drawn from (0: unlimited)")
	f.IntVar(&m.BreachBits, "breach-bits", 40, "breach probability per round at most 2^-bits")
	f.Float64Var(&m.MaxFailure, "max-failure", 0.01, "probability that a shard fails, at most")
	return cmd
}

// finite is nil for the logarithm of zero, which JSON cannot write.
func finite(x float64) *float64 {
	if math.IsInf(x, -1) {
		return nil
	}
	return &x
}
