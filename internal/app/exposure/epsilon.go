package exposure

import (
	"context"
	"fmt"

	"github.com/starling-fl/starling/dp/audit"
	"github.com/starling-fl/starling/dp/audit/membership"
	"github.com/starling-fl/starling/internal/app/dossier"
)

// EpsilonReport is a lower bound of the epsilon that training kept.
type EpsilonReport struct {
	Audited *Audited `json:"audited"`
	Shadows int      `json:"shadows"`
	Delta   float64  `json:"delta"`
	Sold    float64  `json:"epsilon_sold,omitempty"`
	Flawed  bool     `json:"flawed"`
	audit.Bound
}

// Epsilon bounds the model's epsilon from below at confidence 1-level, by providers that a coin had in or out.
// delta is that of the epsilon; sold, above 0, is the claimed epsilon of the model; shadows is the folder of
// shadow models, "" for none.
func (a *Audit) Epsilon(ctx context.Context, shadows string, sold, delta, level float64) (EpsilonReport, error) {
	r := EpsilonReport{Audited: a.Audited, Delta: delta, Sold: sold}
	looks, err := a.subject.Observe(ctx, a.people, wanted{})
	if err != nil {
		return r, err
	}
	units := looks.Units(a.people)
	if shadows != "" {
		if r.Shadows, err = a.subject.Shadows(ctx, shadows, a.people, units); err != nil {
			return r, err
		}
	}
	name, scores := membership.Scores(units)
	in := make([]bool, len(units))
	for i, u := range units {
		in[i] = u.Member
	}
	r.Bound, err = audit.Documents(name, scores, in, delta, level, 1)
	r.Flawed = sold > 0 && r.Epsilon > sold
	return r, err
}

// Dossier states it for people.
func (r EpsilonReport) Dossier() dossier.Dossier {
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
		d.Verdict = append(d.Verdict, "No flaw found. This does not prove that there is none.")
	}
	d.Limits = append(append(d.Limits, auditLimits[:1]...),
		"The bound holds only if each canary was in or out by a fair coin of its own, thrown before the training. Files that were put together in another way bound nothing.")
	return d
}
