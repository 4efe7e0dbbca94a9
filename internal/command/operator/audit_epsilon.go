package operator

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/audit"
	"github.com/starling-fl/starling/audit/membership"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/dossier"
	"github.com/starling-fl/starling/internal/exposure"
)

type epsilonFlags struct {
	auditedFlags
	shadows                 string
	confidence, delta, sold float64
}

// epsilonReport is what "audit epsilon" prints with --json.
type epsilonReport struct {
	Audited *audited `json:"audited"`
	Shadows int      `json:"shadows"`
	Delta   float64  `json:"delta"`
	Sold    float64  `json:"epsilon_sold,omitempty"`
	Flawed  bool     `json:"flawed"`
	audit.Bound
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
				return command.Usagef("--epsilon %v needs --delta, the one that the model is sold with beside it", f.sold)
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
		return command.Usagef("--confidence %v, want in (0.5, 1)", f.confidence)
	case !(f.delta >= 0 && f.delta < 1):
		return command.Usagef("--delta %v, want in [0, 1)", f.delta)
	case !(f.sold >= 0):
		return command.Usagef("--epsilon %v, want 0 or more", f.sold)
	}
	s, p, r, err := f.open(a)
	if err != nil {
		return err
	}
	looks, err := s.Look(ctx, p, exposure.Wanted{})
	if err != nil {
		return err
	}
	units := looks.Units(p)
	report := epsilonReport{Audited: r, Delta: f.delta, Sold: f.sold}
	if f.shadows != "" {
		if report.Shadows, err = s.Shadows(ctx, f.shadows, p, units); err != nil {
			return err
		}
	}
	name, scores := membership.Scores(units)
	in := make([]bool, len(units))
	for i, u := range units {
		in[i] = u.Member
	}
	if report.Bound, err = audit.Documents(name, scores, in, f.delta, 1-f.confidence, 1); err != nil {
		return err
	}
	report.Flawed = f.sold > 0 && report.Epsilon > f.sold
	d := report.dossier()
	if err := f.file(a, d); err != nil {
		return err
	}
	if err := a.Emit(report, func(w io.Writer) error { return d.Text(w) }); err != nil {
		return err
	}
	if report.Flawed {
		return fmt.Errorf("the model gives away an epsilon of %.4g at least, it is sold with %.4g", report.Epsilon, report.Sold)
	}
	return nil
}

func (r epsilonReport) dossier() dossier.Dossier {
	d := dossier.Dossier{Title: "What epsilon did it keep at most? An audit by canary documents"}
	d.Facts = r.Audited.facts(
		dossier.Fact{Name: "canaries", Value: fmt.Sprintf("%d, each in or out by a coin", r.Canaries)},
		dossier.Fact{Name: "could show", Value: fmt.Sprintf("epsilon %.4g, if every guess were right", r.Most)})
	t := dossier.Table{Title: "Guesses", Head: []string{"by", "guessed in", "guessed out", "right", "epsilon at least"}}
	for _, g := range r.Guesses {
		t.Rows = append(t.Rows, []string{g.Score, fmt.Sprint(g.In), fmt.Sprint(g.Out), fmt.Sprintf("%d of %d", g.Right, g.In+g.Out), fmt.Sprintf("%.4g", g.Epsilon)})
	}
	d.Tables = []dossier.Table{t}
	d.Verdict = []string{fmt.Sprintf("Epsilon is %.4g at least, at delta %.3g, with %.4g %% confidence.", r.Epsilon, r.Delta, 100*r.Confidence)}
	switch {
	case r.Flawed:
		d.Verdict = append(d.Verdict, fmt.Sprintf("FLAWED: the model is sold with %.4g.", r.Sold))
	case r.Sold > 0 && r.Most <= r.Sold:
		d.Verdict = append(d.Verdict, "Nothing found, and nothing could be: what the model is sold with is above what so many canaries can show.")
	case r.Sold > 0:
		d.Verdict = append(d.Verdict, "No flaw found. It does not follow that there is none.")
	}
	d.Limits = append(append(d.Limits, auditLimits[:1]...),
		"The bound holds only if each canary was in or out by a fair coin of its own, thrown before the training. Files that were put together in another way bound nothing.")
	return d
}
