package exposure

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-fl/starling/dp/audit/memorization"
	"github.com/starling-fl/starling/internal/app/dossier"
)

// MemorizationReport holds the results of the memorization test.
type MemorizationReport struct {
	Audited   *Audited                           `json:"audited"`
	Asked     compared                           `json:"as_asked"`
	Removed   compared                           `json:"answers_removed"`                  // of the constant keys
	Constant  []string                           `json:"constant_keys"`                    // empty: of all questions
	Keys      map[string]memorization.Comparison `json:"answers_removed_by_key,omitempty"` // of the released model
	Disclosed []Disclosed                        `json:"disclosed,omitempty"`
	Blurred   bool                               `json:"pictures_blurred,omitempty"` // the base reads pages' pictures
	Patched   bool                               `json:"pictures_as_patches,omitempty"`
}

// compared is of the released model and of the base.
type compared struct {
	Model memorization.Comparison `json:"model"`
	Base  memorization.Comparison `json:"base"`
}

// Memorization asks for answers that were removed from the documents, and others' documents for the keys in ask, which
// they do not print.
func (a *Audit) Memorization(ctx context.Context, ask []string) (report MemorizationReport, err error) {
	if !a.subject.Asks() {
		return report, fmt.Errorf("task %s has no answers in words that could be removed from a text: starling audit membership attacks any task", a.Audited.Task)
	}
	looks, err := a.subject.Observe(ctx, a.people, wanted{Removed: true, Base: true})
	if err != nil {
		return report, err
	}
	report = MemorizationReport{Audited: a.Audited, Blurred: looks.Blurred, Patched: looks.Patched, Keys: map[string]memorization.Comparison{}}
	compare := func(base, removed bool) memorization.Comparison {
		return memorization.Compare(looks.Outcomes(a.people, base, removed, removed), 1)
	}
	report.Constant = append([]string{}, a.people.Constant()...)
	report.Asked = compared{compare(false, false), compare(true, false)}
	report.Removed = compared{compare(false, true), compare(true, true)}
	if report.Removed.Model.Members.Questions == 0 || report.Removed.Model.Others.Questions == 0 {
		return report, fmt.Errorf("the documents hold the answers of %d questions of members and %d of others: nothing can be removed",
			report.Removed.Model.Members.Questions, report.Removed.Model.Others.Questions)
	}
	byKey := map[string][]memorization.Outcome{}
	for _, o := range looks.Outcomes(a.people, false, true, false) {
		if o.Key != "" {
			byKey[o.Key] = append(byKey[o.Key], o)
		}
	}
	for key, of := range byKey {
		report.Keys[key] = memorization.Compare(of, 1)
	}
	for _, key := range ask {
		d, err := a.subject.Disclose(ctx, a.people, key)
		if err != nil {
			return report, err
		}
		report.Disclosed = append(report.Disclosed, d)
	}
	return report, nil
}

// Dossier states it for people.
func (r MemorizationReport) Dossier() dossier.Dossier {
	d := dossier.Dossier{Title: "What did it keep of its documents? An audit of memorization", Facts: r.Audited.facts()}
	d.Tables = append(d.Tables,
		comparisonTable("Questions as they are", "Percent. The last four columns are of answers given with a confidence of .9 or more.", r.Asked),
		comparisonTable("Questions whose answer was removed from the document", r.about(), r.Removed))
	if len(r.Keys) > 0 {
		t := dossier.Table{Title: "Answers removed, by what is asked for", About: "The released model; ANLS in points, with the range of 95 % of like sets of providers.",
			Head: []string{"key", "members", "ACC", "ANLS", "others", "ACC", "ANLS", "difference", "range"}}
		for _, key := range slices.Sorted(maps.Keys(r.Keys)) {
			c := r.Keys[key]
			t.Rows = append(t.Rows, []string{key, fmt.Sprint(c.Members.Questions), percent(c.Members.ACC), percent(c.Members.ANLS),
				fmt.Sprint(c.Others.Questions), percent(c.Others.ACC), percent(c.Others.ANLS), percent(c.ANLS.Mean), between(c.ANLS.Low, c.ANLS.High)})
		}
		d.Tables = append(d.Tables, t)
	}
	if len(r.Disclosed) > 0 {
		t := dossier.Table{Title: "Others' documents asked for what they do not print",
			About: "How often the answer is a member's, letter for letter; by the base, and another other's, for comparison.",
			Head:  []string{"key", "documents", "members' values", "said", "different ones", "base said", "others' values", "said"}}
		for _, x := range r.Disclosed {
			t.Rows = append(t.Rows, []string{x.Key, fmt.Sprint(x.Documents), fmt.Sprint(x.Secrets), fmt.Sprint(x.Said), fmt.Sprint(x.Distinct),
				fmt.Sprint(x.BaseSaid), fmt.Sprint(x.OthersValue), fmt.Sprint(x.SaidOthers)})
		}
		d.Tables = append(d.Tables, t)
	}
	d.Verdict = r.verdict()
	d.Limits = append(d.Limits, auditLimits...)
	d.Limits = append(d.Limits,
		"Ranges are of other providers for this model, not of other training runs: one model is one sample of what a job does.",
		"What matches is removed by a rule (three quarters of its letters): something that tells an answer and is spelt otherwise stays, and others' answers say how much that is.")
	if r.Blurred {
		d.Limits = append(d.Limits, "Pages' pictures were blurred where removed words stand. How long these were still shows, and so does what tells an answer and is not a word that was read: a logo, or what the scanner missed.")
	} else {
		d.Limits = append(d.Limits, "Text alone is looked at: no pictures of pages were read.")
	}
	if r.Patched {
		d.Limits = append(d.Limits, "The base reads pictures as patches, without an encoder: one told three senders apart by their blurred names alone, likely by how dark and how long these were. What is answered of others' documents says how much of that there is.")
	}
	return d
}

// about says which questions are looked at once answers are removed.
func (r MemorizationReport) about() string {
	if len(r.Constant) == 0 {
		return "All questions: the files name no key whose answer is the same in all of a provider's documents."
	}
	return "Questions for what is the same in all of a provider's documents: " + strings.Join(r.Constant, ", ") + "."
}

func comparisonTable(name, about string, c compared) dossier.Table {
	t := dossier.Table{Title: name, About: about, Head: []string{"model", "questions", "providers", "ACC", "ANLS", "sure", "of them", "ACC", "ANLS"}}
	add := func(who string, l memorization.Line) {
		share := 0.0
		if l.Questions > 0 {
			share = float64(l.Sure) / float64(l.Questions)
		}
		t.Rows = append(t.Rows, []string{who, fmt.Sprint(l.Questions), fmt.Sprint(l.Providers), percent(l.ACC), percent(l.ANLS),
			fmt.Sprint(l.Sure), percent(share), percent(l.SureACC), percent(l.SureANLS)})
	}
	less := func(who string, c memorization.Comparison) {
		t.Rows = append(t.Rows, []string{who, "", "", fmt.Sprintf("%s (%s)", percent(c.ACC.Mean), between(c.ACC.Low, c.ACC.High)),
			fmt.Sprintf("%s (%s)", percent(c.ANLS.Mean), between(c.ANLS.Low, c.ANLS.High)), "", "", "", ""})
	}
	add("released, members", c.Model.Members)
	add("released, others", c.Model.Others)
	less("  difference", c.Model)
	add("base, members", c.Base.Members)
	add("base, others", c.Base.Others)
	less("  difference", c.Base)
	return t
}

func (r MemorizationReport) verdict() (out []string) {
	c, b := r.Removed.Model, r.Removed.Base
	if b.Remembers() {
		out = append(out, "The base, which has seen none of them, answers members' questions better: members and others differ in more than membership. Do not read the released model's difference as memory.")
	}
	if c.Remembers() {
		return append(out, fmt.Sprintf("It remembers: of what was removed, members' answers are better than others' by %.1f points of ANLS (%s) and %.1f of exact match (%s).",
			100*c.ANLS.Mean, between(c.ANLS.Low, c.ANLS.High), 100*c.ACC.Mean, between(c.ACC.Low, c.ACC.High)))
	}
	return append(out, fmt.Sprintf("No memory is shown: of what was removed, members' answers differ from others' by %.1f points of ANLS (%s), which chance explains.",
		100*c.ANLS.Mean, between(c.ANLS.Low, c.ANLS.High)))
}
