package exposure

import (
	"context"
	"fmt"
	"strings"

	"github.com/starling-fl/starling/dp/audit/membership"
	"github.com/starling-fl/starling/internal/app/dossier"
)

// MembershipReport holds the results of the membership attacks.
type MembershipReport struct {
	Audited *Audited `json:"audited"`
	Shadows int      `json:"shadows"`
	membership.Result

	asked bool // the task has answers in words
}

// Membership attacks the membership of people in the model's training; shadows is the folder of shadow models, ""
// for none.
func (a *Audit) Membership(ctx context.Context, shadows string, cfg membership.Config) (MembershipReport, error) {
	r := MembershipReport{Audited: a.Audited}
	looks, err := a.subject.Observe(ctx, a.people, wanted{Removed: true, Unasked: true})
	if err != nil {
		return r, err
	}
	units := looks.Units(a.people)
	r.asked = looks.Questions
	if shadows != "" {
		if r.Shadows, err = a.subject.Shadows(ctx, shadows, a.people, units); err != nil {
			return r, err
		}
	}
	r.Result, err = membership.Run(units, cfg)
	return r, err
}

// Dossier states it for people.
func (r MembershipReport) Dossier() dossier.Dossier {
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
			t.About, t.Head = title(s.Skipped)+".", nil
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
	if !r.asked {
		d.Limits = append(d.Limits, "The task has no answers in words: nothing can be removed from a text, and the attacks with G4 (CLS1, CLS2) are left out.")
	}
	return d
}

// knowledge says what each attack was given.
func (r MembershipReport) knowledge() dossier.Table {
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

func (r MembershipReport) verdict() (out []string) {
	switch {
	case !r.Attacked():
		return []string{"Nothing is claimed: no attack was made, since too few providers have so many examples. Give more of them, or a smaller --questions."}
	case !r.Claims:
		return []string{fmt.Sprintf("Nothing is claimed: %d seeds are fewer than %d.", r.Seeds, membership.MinSeeds)}
	case r.Suspect:
		out = append(out, "A control differs from chance: members and others differ in more than membership, or a control of many failed by chance. Do not read the attacks as what training gave away before that is understood.")
	}
	if r.Distinguished {
		return append(out, fmt.Sprintf("Members differ from others beyond chance (5 %%, corrected for all attacks). The largest area is that of %s.", r.Strongest))
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
