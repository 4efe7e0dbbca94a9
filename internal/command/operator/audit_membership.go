package operator

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/audit/membership"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/dossier"
	"github.com/starling-fl/starling/internal/exposure"
)

type membershipFlags struct {
	auditedFlags
	shadows   string
	seeds     int
	known     float64
	questions []int
}

// membershipReport is what "audit membership" prints with --json.
type membershipReport struct {
	Audited *audited `json:"audited"`
	Shadows int      `json:"shadows"`
	membership.Result
}

func newAuditMembershipCmd(a *command.App) *cobra.Command {
	var f membershipFlags
	cmd := &cobra.Command{
		Use:   "membership --checkpoint DIR --members FILE --others FILE",
		Short: "Tell members from others by what a released model says of their documents",
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
	fl.IntSliceVar(&f.questions, "questions", membership.DefaultQuestions, "attack those with more than so many examples, one table each")
	return cmd
}

func (f *membershipFlags) run(ctx context.Context, a *command.App) error {
	for _, s := range f.questions {
		if s < 0 || len(f.questions) > 20 {
			return command.Usagef("--questions %v, want at most 20 numbers of 0 or more", f.questions)
		}
	}
	switch {
	case f.seeds < 1 || f.seeds > 1000:
		return command.Usagef("--seeds %d, want 1 to 1000", f.seeds)
	case !(f.known > 0 && f.known < 0.9):
		return command.Usagef("--known %v, want within 0 and 0.9", f.known)
	}
	s, p, r, err := f.open(a)
	if err != nil {
		return err
	}
	looks, err := s.Look(ctx, p, exposure.Wanted{Removed: true, Unasked: true})
	if err != nil {
		return err
	}
	units := looks.Units(p)
	report := membershipReport{Audited: r}
	if f.shadows != "" {
		if report.Shadows, err = s.Shadows(ctx, f.shadows, p, units); err != nil {
			return err
		}
	}
	if report.Result, err = membership.Run(units, membership.Config{Seeds: f.seeds, Known: f.known, Questions: f.questions, Seed: 1}); err != nil {
		return err
	}
	d := report.dossier(looks.Questions)
	if err := f.file(a, d); err != nil {
		return err
	}
	return a.Emit(report, func(w io.Writer) error { return d.Text(w) })
}

func (r membershipReport) dossier(asked bool) dossier.Dossier {
	d := dossier.Dossier{Title: "Whose documents was it trained on? An audit of membership"}
	shadows := "none"
	if r.Shadows > 0 {
		shadows = fmt.Sprintf("%d", r.Shadows)
	}
	d.Facts = r.Audited.facts(
		dossier.Fact{Name: "knowledge", Value: fmt.Sprintf("the attacker is told the membership of %.0f %% (half members, half others) where a row has any known", 100*r.Known)},
		dossier.Fact{Name: "seeds", Value: fmt.Sprintf("%d divisions in known and attacked, of one trained model", r.Seeds)},
		dossier.Fact{Name: "shadows", Value: shadows})
	for _, s := range r.Sets {
		t := dossier.Table{
			Title: fmt.Sprintf("%ss with more than %d examples: %d members, %d others", title(r.Audited.By), s.MoreThan, s.Members, s.Others),
			About: "Percent, with the range of 95 % of like sets. ± is the accuracy's deviation over seeds; TPR is at 1 % of false accusations; p is corrected for all rows.",
			Head:  []string{"attack", "known", "attacked", "accuracy", "±", "balanced", "AUC", "range", "TPR", "range", "p"},
		}
		if s.Skipped != "" {
			t.About = s.Skipped
		}
		for _, x := range s.Rows {
			t.Rows = append(t.Rows, []string{x.Attack, fmt.Sprint(x.Known), fmt.Sprint(x.Attacked), percent(x.Figures.Accuracy), percent(x.Deviation),
				percent(x.Figures.Balanced), percent(x.Figures.AUC), between(x.Intervals.AUC.Low, x.Intervals.AUC.High),
				percent(x.Figures.TPR), between(x.Intervals.TPR.Low, x.Intervals.TPR.High), probability(x.Chance)})
		}
		d.Tables = append(d.Tables, t)
	}
	if know := r.knowledge(); len(know.Rows) > 0 {
		d.Tables = append(d.Tables, know)
	}
	d.Verdict = r.verdict()
	d.Limits = append(d.Limits, auditLimits...)
	d.Limits = append(d.Limits, "Seeds divide the providers anew, they do not train anew: ranges are of other providers for this model, not of other training runs.")
	if r.Audited.Others < 100 {
		d.Limits = append(d.Limits, fmt.Sprintf("With %d others 1 %% of false accusations is none: that column says how many members stand above every other.", r.Audited.Others))
	}
	if r.Shadows == 0 {
		d.Limits = append(d.Limits, "No shadow models were given: the likelihood ratio, today's strongest attack, is not among these.")
	}
	if r.Shadows > 0 && !strings.Contains(fmt.Sprint(r.Sets), "LiRA") {
		d.Limits = append(d.Limits, "The shadow models are too few for a likelihood ratio: some providers are in all of them, or each is outside of one at most. Four do.")
	}
	if !asked {
		d.Limits = append(d.Limits, "The task has no answers in words: nothing can be removed from a text, and the attacks with G4 (CLS1, CLS2) are left out.")
	}
	return d
}

// knowledge says what each attack was given.
func (r membershipReport) knowledge() dossier.Table {
	t := dossier.Table{Title: "What each attack knows", Words: true, Head: []string{"attack", "metrics", "knows", "after"}}
	for _, s := range r.Sets {
		for _, x := range s.Rows {
			t.Rows = append(t.Rows, []string{x.Attack, strings.Join(x.Metrics, ", "), x.Knowledge, x.Source})
		}
		if len(t.Rows) > 0 {
			break // they are the same of each set, but for LiRA's variant
		}
	}
	return t
}

func (r membershipReport) verdict() (out []string) {
	switch {
	case !r.Claims:
		return []string{fmt.Sprintf("Nothing is claimed: %d seeds are fewer than %d.", r.Seeds, membership.MinSeeds)}
	case r.Suspect:
		out = append(out, "A control is told from chance: members and others differ in more than membership, or a control of many failed by chance. Do not read the attacks as what training gave away before that is understood.")
	}
	if r.Told {
		return append(out, fmt.Sprintf("Members are told from others beyond chance (5 %%, corrected for all attacks). The largest area is that of %s.", r.Strongest))
	}
	return append(out, "No attack tells members from others beyond chance. It does not follow that nothing is given away: stronger attacks, or more providers, may tell.")
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func probability(p float64) string {
	if p < 0.0005 {
		return "< .001"
	}
	return strings.TrimPrefix(fmt.Sprintf("%.3f", p), "0")
}
