package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/starling-fl/starling/audit/membership"
	"github.com/starling-fl/starling/audit/memorization"
)

// attacked is a model of lab/bench/audit/run.sh, and what was published of one like it: the
// accuracy of each attack on providers with more than 0, 5 and 10 questions.
type attacked struct {
	name, what string
	published  map[string][3]string
}

// Tito et al. 2023, tables 4 and 10.
var attackedModels = []attacked{
	{"overfitted", "document questions, whole, no privacy", map[string][3]string{
		"AZK": {"56.1", "60.3", "65.1"}, "AZK, G1+G4": {"48.3", "47.8", "58.2"}, "forest, G1": {"55.1", "58.2", "60.3"},
		"APK": {"59.7", "61.7", "65.2"}, "APK, G1+G2+G3+G4": {"61.0", "61.3", "64.4"},
		"AZK+CLS1+CLS2": {"60.6", "63.7", "66.3"}, "APK+CLS1+CLS2": {"61.8", "62.5", "67.0"}}},
	{"epsilon8", "document questions, LoRA, epsilon 8", map[string][3]string{
		"AZK": {"55.1", "58.5", "60.8"}, "APK": {"51.7", "54.1", "58.6"}}},
	{"labels", "invoices by kind, whole, no privacy", nil},
}

// audited is what every report of starling audit says of what it attacked.
type auditedModel struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Base    string `json:"base_sha256"`
}

func attackFile(name, what string) string { return "attack-" + name + "-" + what + ".json" }

// readAttack reads a report of starling audit --json; false if it is not there.
func readAttack(folder fs.FS, name, what string, to any) (bool, error) {
	file := attackFile(name, what)
	text, err := fs.ReadFile(folder, file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", file, err)
	}
	return true, nil
}

// attacks writes what attacks on released models came to, beside what was published.
func attacks(b *bytes.Buffer, folder fs.FS) error {
	b.WriteString(`
## Attacks on whose documents a model was trained on

Published: Tito et al. 2023, tables 4 and 10: accuracies of 56 to 67 % without privacy (307 members, 353 others, over five seeds), 51 to 61 % with
central privacy; tables 1 and 2: members' answers are 7.2 points of ANLS before others', 6.6 once the answer (the provider's name) is removed. Ours:
` + "`sh lab/bench/audit/run.sh FOLDER`" + `, some 200 of 400 generated providers each in by a coin, other documents of the same providers asked, one training run each,
five divisions of the providers. Accuracies are percent with their deviation over the divisions; the range of the AUC is of 95 % of like sets of providers;
p is corrected over all attacks and sets. TPR is at 1 % of false accusations.

`)
	any := false
	for _, m := range attackedModels {
		var r struct {
			Audited auditedModel `json:"audited"`
			Shadows int          `json:"shadows"`
			membership.Result
		}
		there, err := readAttack(folder, m.name, "membership", &r)
		if err != nil {
			return err
		}
		if !there {
			fmt.Fprintf(b, "%s: **not run**: `%s` is not there.\n\n", m.what, attackFile(m.name, "membership"))
			continue
		}
		any = true
		fmt.Fprintf(b, "%s (base %.12s, build %s, %d shadow models):\n\n", m.what, r.Audited.Base, build(r.Audited), r.Shadows)
		b.WriteString("| attack | more than | members, others | published | accuracy | balanced | AUC | TPR | p |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
		for s, set := range r.Sets {
			for _, x := range set.Rows {
				published := "–"
				if p, ok := m.published[x.Attack]; ok && s < len(p) {
					published = p[s]
				}
				fmt.Fprintf(b, "| %s | %d | %d, %d | %s | %.1f ± %.1f | %.1f | %.1f (%.1f to %.1f) | %.1f | %.2g |\n", x.Attack, set.MoreThan, set.Members, set.Others,
					published, 100*x.Figures.Accuracy, 100*x.Deviation, 100*x.Figures.Balanced, 100*x.Figures.AUC, 100*x.Intervals.AUC.Low, 100*x.Intervals.AUC.High,
					100*x.Figures.TPR, x.Chance)
			}
			if set.Skipped != "" {
				fmt.Fprintf(b, "| %s | %d | %d, %d | | | | | | |\n", set.Skipped, set.MoreThan, set.Members, set.Others)
			}
		}
		b.WriteString("\n")
	}
	if err := memories(b, folder); err != nil {
		return err
	}
	if any {
		b.WriteString(attacksWhy)
	}
	return nil
}

// memories writes the memorization test's differences.
func memories(b *bytes.Buffer, folder fs.FS) error {
	head := false
	for _, m := range attackedModels {
		type pair struct{ Model, Base memorization.Comparison }
		var r struct {
			Asked   pair `json:"as_asked"`
			Removed pair `json:"answers_removed"`
		}
		there, err := readAttack(folder, m.name, "memorization", &r)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		if !head {
			head = true
			b.WriteString("| model | questions | answers | members, ANLS | others, ANLS | difference | and of exact match | sure of | members, exact and ANLS where sure | others |\n" +
				"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
		}
		for _, x := range []struct {
			who, what string
			of        memorization.Comparison
		}{{m.what, "as they are", r.Asked.Model}, {"its base", "as they are", r.Asked.Base}, {m.what, "removed", r.Removed.Model}, {"its base", "removed", r.Removed.Base}} {
			fmt.Fprintf(b, "| %s | %d, %d | %s | %.1f | %.1f | %+.1f (%+.1f to %+.1f) | %+.1f (%+.1f to %+.1f) | %d, %d | %s | %s |\n", x.who, x.of.Members.Questions, x.of.Others.Questions, x.what,
				100*x.of.Members.ANLS, 100*x.of.Others.ANLS, 100*x.of.ANLS.Mean, 100*x.of.ANLS.Low, 100*x.of.ANLS.High, 100*x.of.ACC.Mean, 100*x.of.ACC.Low, 100*x.of.ACC.High,
				x.of.Members.Sure, x.of.Others.Sure, sure(x.of.Members), sure(x.of.Others))
		}
	}
	if head {
		b.WriteString("\n")
	}
	return nil
}

// sure is what answers come to that were given with a confidence of .9 or more; a dash where there are none.
func sure(f memorization.Line) string {
	if f.Sure == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f, %.1f", 100*f.SureACC, 100*f.SureANLS)
}

func build(a auditedModel) string {
	if a.Commit == "" {
		return a.Version
	}
	return fmt.Sprintf("%.7s", a.Commit)
}

// attacksWhy is what the figures mean.
const attacksWhy = `Generated documents and a T5 of 0.43 million values with a vocabulary of 1,536, which copies from the page, stand for PFL-DocVQA's invoices and VT5's 250 million.
The overfitted model answers members' other documents better than others' (6.5 points of exact match, 3.6 to 9.5; published 9.4) and has forgotten how to answer well: it
keeps how its providers' documents look, and next to no names. Where it is sure (confidence of .9 or more) members are 9.6 points of exact match before others, which was looked at afterwards and has no range. Once an answer is removed nothing is left, and of 398 documents of others that were asked for a registration id which they do not print one says a
member's. AZK, which knows nothing, is the strongest attack on it, as it nearly is there. The forest gains nothing by G2 and G3: it is not tuned, and 24 to 60 known providers are few.
At epsilon 8 answers are better than the base's (39.4 % exact match, the base 36.5), and no attack is told from chance; neither are its members' answers told from others' (-0.7 points, -4.4 to 2.9), which does not show that they differ by less than 2.
Of invoices by kind the likelihood ratio of eight shadow models has the largest area on providers with few questions.
On document questions it was not run: a shadow of the overfitted model takes 90 s of a core, and run.sh makes four of them now.
Asked about the documents that were trained on (starling audit epsilon, delta 1e-5, 95 %; 400 canaries show 4.5 at most), both models without privacy have 97 of 100 sure guesses right,
by the loss against the base's and by the likelihood ratio: epsilon is 2.25 at least. Of the model at epsilon 8 it is 0.18 at least.
Each is one training run: what another seed's would give is not in these ranges. The runs were made by a build of the same code before it was committed, the attacks by the build that is named, whose commit was rebased since.
At the paper's size it would take VT5 and PFL-DocVQA's documents, which are not at hand, and some days of a GPU with shadow models.
`
