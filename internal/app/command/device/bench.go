package device

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/edge/leak"
	"github.com/starling-fl/starling/internal/app/bench"
	"github.com/starling-fl/starling/internal/app/command"
)

func newBenchCmd(a *command.App) *cobra.Command {
	var f bench.Config
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Time a job's training on this device, before joining it",
		Long: `Compile the training program of a job, run it in the sandbox as 'starling join'
would, on made-up data, and print what this device would contribute: steps and
examples a second, the memory that it takes, and which of this processor's
kernels compute its matrix products. Each kernel is timed; join uses the first.
All of them give the same bits, those of the job's training.arithmetic.

Of a job it is also tried what one update shows: some are made of made-up examples, or
of those in --data, as this device would make and send them, and a few attacks of a
coordinator that sees one of them alone are played. Nothing leaves this machine. What
they find is there; what they do not find may be.`,
		Example: `  starling bench
  starling bench --job job.yaml --cores 2
  starling bench --job job.yaml --data my.tsv --trials 20
  starling bench --job https://fl.example.org:8443
  starling bench --base ./minilm --json`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.Check(); err != nil {
				return err
			}
			r, err := bench.Run(cmd.Context(), a.Stderr, f)
			if err != nil {
				return err
			}
			return a.Emit(r, r.Print)
		},
	}
	cmd.Flags().StringVar(&f.Job, "job", "", "job file (YAML), or a coordinator's join token or http(s) URL; without one, the defaults over two labels")
	cmd.Flags().BoolVar(&f.Plain, "allow-plain-http", false, "ask a coordinator on another machine over http, which nobody encrypts")
	cmd.Flags().StringVar(&f.Base, "base", "", "base folder or name instead of the job's, or of the embedded default")
	cmd.Flags().IntVar(&f.Rank, "rank", 0, "rank to train at; 0: the job's greatest, the dearest")
	cmd.Flags().IntVar(&f.Cores, "cores", 0, "most cores to train on; 0: half of this machine's, as join")
	cmd.Flags().DurationVar(&f.Time, "for", 2*time.Second, "how long to run each kernel")
	leakFlags(cmd.Flags(), &f)
	return cmd
}

// leakFlags adds the flags of how it is tried what an update shows.
func leakFlags(fl *pflag.FlagSet, f *bench.Config) {
	fl.IntVar(&f.Trials, "trials", leak.DefaultTrials, "updates of which it is tried what they show")
	fl.DurationVar(&f.LeakTime, "leak-for", leak.DefaultLasts, "no more of them are begun after this time; 0: it is not tried")
	fl.IntVar(&f.Examples, "examples", edge.DefaultPolicy().Examples, "examples that each of them averages, if the job's steps take so many: the fewest that your policy lets an update average")
	fl.StringVar(&f.Data, "data", "", "file of your own examples to make them of, in place of made-up ones: "+dataset.Formats)
	command.ColumnFlags(fl, &f.Columns)
}
