package operator

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/dp/audit"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
)

type epsilonFlags struct {
	auditedFlags
	shadows                 string
	confidence, delta, sold float64
}

func newAuditEpsilonCmd(a *command.App) *cobra.Command {
	var f epsilonFlags
	cmd := &cobra.Command{
		Use:   "epsilon --checkpoint DIR --data FILE --in FILE",
		Short: "Bound a model's epsilon from below by canaries that are real documents",
		Long: `Guess which of some providers (or users) a model was trained on, and bound from the
number of right guesses the epsilon that the training kept (Steinke, Nasr, Jagielski
2023). It holds only where each of them was in or out by a fair coin of its own, thrown
before the training and looked at by nobody since: 'starling shadows' trains such a
model by simulation. Guesses go by the loss against the base's, or with --shadows by the
likelihood ratio. With --epsilon, what the model is sold with, a bound above it is a
flaw: exit code 1. 'starling audit job' does the same with synthetic canaries, which
show more and train nothing.`,
		Example: "  starling audit epsilon --checkpoint shadows/target/checkpoint --data train.jsonl --in shadows/target/members.json --epsilon 8 --delta 1e-5",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.sold > 0 && !cmd.Flags().Changed("delta") {
				// At a smaller delta than the model's an honest model's epsilon is larger.
				return usage.Errorf("--epsilon %v needs --delta, the model's claimed delta", f.sold)
			}
			return f.run(cmd.Context(), a)
		},
	}
	f.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.shadows, "shadows", "", "folder of shadow models, each a folder with a checkpoint and members.json")
	fl.Float64Var(&f.confidence, "confidence", 1-audit.DefaultLevel, "probability with which the lower bound holds")
	fl.Float64Var(&f.delta, "delta", 1e-5, "delta of the epsilon; with --epsilon it must be given: the one that the model is sold with")
	fl.Float64Var(&f.sold, "epsilon", 0, "epsilon that the model is sold with; 0: none is held against it")
	return cmd
}

func (f *epsilonFlags) run(ctx context.Context, a *command.App) error {
	switch {
	case !(f.confidence > 0.5 && f.confidence < 1):
		return usage.Errorf("--confidence %v, want in (0.5, 1)", f.confidence)
	case !(f.delta >= 0 && f.delta < 1):
		return usage.Errorf("--delta %v, want in [0, 1)", f.delta)
	case !(f.sold >= 0):
		return usage.Errorf("--epsilon %v, want 0 or more", f.sold)
	}
	audit, err := f.open(a)
	if err != nil {
		return err
	}
	report, err := audit.Epsilon(ctx, f.shadows, f.sold, f.delta, 1-f.confidence)
	if err != nil {
		return err
	}
	if err := f.emit(a, report, report.Dossier()); err != nil {
		return err
	}
	if report.Flawed {
		return fmt.Errorf("the model gives away an epsilon of %.4g at least, it is sold with %.4g", report.Epsilon, report.Sold)
	}
	return nil
}
