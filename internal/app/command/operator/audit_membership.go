package operator

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/dp/audit/membership"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
)

type membershipFlags struct {
	auditedFlags
	shadows   string
	seeds     int
	known     float64
	questions []int
}

func newAuditMembershipCmd(a *command.App) *cobra.Command {
	var f membershipFlags
	cmd := &cobra.Command{
		Use:   "membership --checkpoint DIR --members FILE --others FILE",
		Short: "Tell members from others by a released model's answers on their documents",
		Long: `Attack whose documents a released model was trained on, provider by provider (or user
by user): what it says of their examples is brought to a few means, and told apart by
clusters that know nothing (AZK), by a random forest that knows some providers (APK),
by both with the memorization test (Tito et al. 2023), by the loss alone and against
the base's, and with --shadows by the likelihood ratio of models of the attacker's own
(LiRA, Carlini et al. 2022), which 'starling shadows' makes. Of any task whose examples
have labels or answers; what needs questions is left out elsewhere.

Accuracy is the paper's figure; beside it stand the area under the receiver's curve
(50 by chance) and the share of members found while 1 % of the others are accused, each
with the range that holds it for 95 % of like sets of providers. Two controls say when
the attack, or the choice of the examples, is at fault. Below five seeds nothing is
claimed.`,
		Example: `  starling audit membership --checkpoint run/checkpoint --members in.jsonl --others out.jsonl --html audit.html
  starling audit membership --checkpoint shadows/target/checkpoint --data queries.jsonl --in shadows/target/members.json --shadows shadows/shadows`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), a) },
	}
	f.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.shadows, "shadows", "", "folder of shadow models, each a folder with a checkpoint and members.json")
	fl.IntVar(&f.seeds, "seeds", membership.MinSeeds, "divisions in known and attacked; below 5 nothing is claimed")
	fl.Float64Var(&f.known, "known", membership.DefaultKnown, "share of the providers whose membership the attacker is told")
	fl.IntSliceVar(&f.questions, "questions", membership.DefaultQuestions, "attack those with more than this many examples, one table each")
	return cmd
}

func (f *membershipFlags) run(ctx context.Context, a *command.App) error {
	for _, s := range f.questions {
		if s < 0 || len(f.questions) > 20 {
			return usage.Errorf("--questions %v, want at most 20 numbers of 0 or more", f.questions)
		}
	}
	switch {
	case f.seeds < 1 || f.seeds > 1000:
		return usage.Errorf("--seeds %d, want 1 to 1000", f.seeds)
	case !(f.known > 0 && f.known < 0.9):
		return usage.Errorf("--known %v, want within 0 and 0.9", f.known)
	}
	audit, err := f.open(a)
	if err != nil {
		return err
	}
	report, err := audit.Membership(ctx, f.shadows, membership.Config{Seeds: f.seeds, Known: f.known, Questions: f.questions, Seed: 1})
	if err != nil {
		return err
	}
	return f.emit(a, report, report.Dossier())
}
