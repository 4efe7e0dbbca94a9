package operator

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/demo"
	"github.com/starling-fl/starling/internal/app/service"
	"github.com/starling-fl/starling/internal/app/sim"
)

// demoFlags are the command's.
type demoFlags struct {
	demo.Config
	open bool
}

func newDemoCmd(a *command.App) *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Fine-tune a model across a fleet on this machine, privately, end to end",
		Long: `Start a coordinator and a fleet of devices in one process, connected by real
WebSockets, and fine-tune the default base with DP-DyLoRA: every round draws a
rank, every device trains in its sandbox, clips, quantizes and masks, the
coordinator unmasks only the sum and adds noise. Some devices vanish in
mid-round. The data is generated invoices, or your own labelled file.`,
		Example: "  starling demo\n  starling demo --data reviews.jsonl.gz --alpha 0.1\n  starling demo --privacy-unit provider --adaptive-clip\n  starling demo --reproducible --json",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.open {
				f.Serve = func(c *sim.Config) {
					c.Pages = service.Pages(a.Stderr)
					c.Listening = func(url, adminToken string) { showDashboard(a.Stderr, service.Dashboard(url, adminToken)) }
				}
			}
			if !cmd.Flags().Changed("vanish") {
				f.Vanish = min(f.Vanish, max(0, f.Clients/4)) // of few devices a quarter, which nobody gave
			}
			r, err := f.Run(cmd.Context(), a.Stderr)
			if err != nil {
				return err
			}
			return a.Emit(r, r.Print)
		},
	}
	fl := demoFlagSet(&f)
	cmd.Flags().AddFlagSet(fl)
	command.Values(cmd, "task", "classify", "tag", "image", "listen", "answer", "causal")
	cmd.Flags().SetNormalizeFunc(fl.GetNormalizeFunc())
	return cmd
}

// demoFlagSet is the command's flags, which fill f.
func demoFlagSet(f *demoFlags) *pflag.FlagSet {
	fl := pflag.NewFlagSet("demo", pflag.ContinueOnError)
	fl.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "clients" { // as it was called, and is in scripts
			name = "devices"
		}
		return pflag.NormalizedName(name)
	})
	fl.StringVar(&f.Data, "data", "", "labelled file instead of generated invoices: "+dataset.Formats)
	command.ColumnFlags(fl, &f.Columns)
	fl.StringVar(&f.Task, "task", "", "classify (texts), tag (words with tags), image (digits), listen (spoken words), answer (questions about documents) or causal (commands into calls of functions); default: what --data holds, texts without it")
	fl.StringVar(&f.Base, "base", "", "base folder in Hugging Face layout, or a model's name in the local Hugging Face cache, instead of the embedded default")
	fl.StringVar(&f.Start, "start", "", "folder of a PEFT adapter or checkpoint over the same base that the first round begins with")
	fl.StringVar(&f.Out, "out", "starling-demo", "folder that gets a folder of its own for this run")
	fl.BoolVar(&f.Reproducible, "reproducible", false, "seed every source of randomness: repeats bit for bit, not private")
	fl.BoolVar(&f.HeadOnly, "head-only", false, "train the classification head alone, for comparison")
	fl.StringVar(&f.Record, "record", "", "with --head-only: put the accuracy into this file of records")
	fl.IntVar(&f.Rounds, "rounds", 20, "rounds to commit")
	fl.IntVar(&f.Clients, "devices", 24, "devices, all drawn in each round")
	fl.IntVar(&f.Vanish, "vanish", 2, "devices that vanish in mid-round")
	fl.Float64Var(&f.Alpha, "alpha", 1, "Dirichlet concentration that divides a file without users over the devices; smaller is more skewed")
	fl.Float64Var(&f.Epsilon, "epsilon", 2, "privacy budget, for the simulated population")
	fl.StringVar(&f.Unit, "privacy-unit", "device", "whose presence is hidden: device, or provider: each sender of invoices (each provider or user of --data) on every device")
	fl.Float64Var(&f.ProviderRate, "provider-rate", 0.25, "with --privacy-unit provider: probability of each provider's coin in a round; training takes as many times longer as it lets providers in")
	fl.BoolVar(&f.Adaptive, "adaptive-clip", false, "let the clip norm follow the median of the updates' norms, privately")
	fl.Uint64Var(&f.Seed, "seed", 1, "seed of the generated data and of every split; with --reproducible of everything")
	fl.StringVar(&f.Arithmetic, "arithmetic", "", "of the training programs: fused or exact; default: fused, which is quicker, where this processor has it")
	fl.BoolVar(&f.EveryRank, "test-every-rank", false, "score the test split at every rank, not only at the one that validation chose")
	fl.BoolVar(&f.open, "open", false, "show the run's dashboard in a browser")
	fl.BoolVar(&f.Verbose, "verbose", false, "log sessions and states to standard error")
	return fl
}
