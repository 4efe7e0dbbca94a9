package report

import (
	"bytes"
	_ "embed" // what is said of attacks
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/starling-fl/starling/dp/audit/membership"
	"github.com/starling-fl/starling/dp/audit/memorization"
	"github.com/starling-fl/starling/internal/leaf/strict"
)

// attackedFile is attacks.yaml: what is said of attacks, and what was published of models like ours.
//
//go:embed attacks.yaml
var attackedFile []byte

type attacked struct {
	About  string          `yaml:"about"`
	Why    string          `yaml:"why"`
	Models []attackedModel `yaml:"models"`
}

// attackedModel is one of lab/bench/audit/run.sh.
type attackedModel struct {
	Name      string              `yaml:"name"`
	What      string              `yaml:"what"`
	Published map[string][]string `yaml:"published"` // by attack: accuracies on providers with more than 0, 5 and 10 questions
}

// auditedModel is what every report of starling audit says of what it attacked.
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
	var known attacked
	if err := strict.Decode(attackedFile, &known); err != nil {
		return fmt.Errorf("report: attacks.yaml: %w", err)
	}
	fmt.Fprintf(b, "\n%s\n", known.About)
	any := false
	for _, m := range known.Models {
		var r struct {
			Audited auditedModel `json:"audited"`
			Shadows int          `json:"shadows"`
			membership.Result
		}
		there, err := readAttack(folder, m.Name, "membership", &r)
		if err != nil {
			return err
		}
		if !there {
			fmt.Fprintf(b, "%s: **not run**: `%s` is not there.\n\n", m.What, attackFile(m.Name, "membership"))
			continue
		}
		any = true
		fmt.Fprintf(b, "%s (base %.12s, build %s, %d shadow models):\n\n", m.What, r.Audited.Base, build(r.Audited), r.Shadows)
		b.WriteString("| attack | more than | members, others | published | accuracy | balanced | AUC | TPR | p |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
		for s, set := range r.Sets {
			for _, x := range set.Rows {
				published := "–"
				if p, ok := m.Published[x.Attack]; ok && s < len(p) {
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
	if err := memories(b, folder, known.Models); err != nil {
		return err
	}
	if any {
		b.WriteString(known.Why)
	}
	return nil
}

// memories writes the memorization test's differences.
func memories(b *bytes.Buffer, folder fs.FS, models []attackedModel) error {
	head := false
	for _, m := range models {
		type pair struct{ Model, Base memorization.Comparison }
		var r struct {
			Asked   pair `json:"as_asked"`
			Removed pair `json:"answers_removed"`
		}
		there, err := readAttack(folder, m.Name, "memorization", &r)
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
		}{{m.What, "as they are", r.Asked.Model}, {"its base", "as they are", r.Asked.Base}, {m.What, "removed", r.Removed.Model}, {"its base", "removed", r.Removed.Base}} {
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
