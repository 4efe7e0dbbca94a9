package operator

import (
	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/guarantee"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/job"
)

func newPrivacyExplainCmd(a *command.App) *cobra.Command {
	var f privacyFlags
	var jobFile string
	var simulatedOf, simulatedCohort int
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Explain in plain words what a job protects, and from whom",
		Example: `  starling privacy explain --job job.yaml
  starling privacy explain --population 1000 --sampling-rate 0.1 --noise-multiplier 1.1 --rounds 200`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := f.explain(cmd, jobFile, simulatedOf, simulatedCohort)
			if err != nil {
				return err
			}
			return a.Emit(e, e.Print)
		},
	}
	cmd.Flags().StringVar(&jobFile, "job", "", "read all of it from a job file")
	f.mechanism(cmd)
	f.noiseFlag(cmd)
	cmd.Flags().Float64Var(&f.Epsilon, "epsilon", 0, "calibrate the noise multiplier to this epsilon instead")
	cmd.Flags().IntVar(&simulatedOf, "simulated-population", 0, "population whose noise is simulated")
	cmd.Flags().IntVar(&simulatedCohort, "simulated-cohort", 0, "cohort of that population")
	cmd.Flags().Lookup("curve").Hidden = true
	return cmd
}

// explain computes what the job file guarantees or, where none is given, what the flags describe.
func (f *privacyFlags) explain(cmd *cobra.Command, jobFile string, simulatedOf, simulatedCohort int) (guarantee.Explained, error) {
	if jobFile != "" {
		j, err := job.Load(jobFile)
		if err != nil {
			return guarantee.Explained{}, err
		}
		return guarantee.ExplainJob(j)
	}
	for _, name := range []string{"population", "sampling-rate", "rounds"} {
		if !cmd.Flags().Changed(name) {
			return guarantee.Explained{}, usage.Errorf("--job, or --population, --sampling-rate, --rounds and --noise-multiplier or --epsilon are required: --%s is missing", name)
		}
	}
	return guarantee.Explain(f.Plan, simulatedOf, simulatedCohort)
}
