package outcome

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/internal/leaf/terminal"
)

// Print writes the report for people, within the terminal's width.
func (r Report) Print(w io.Writer) error {
	width, _ := terminal.Width(w)
	var b strings.Builder
	if len(r.ranks) > 0 {
		r.printAccuracy(&b, width)
	}
	r.printPrivacy(&b, width)
	say := func(format string, args ...any) {
		b.WriteString(terminal.Wrap(fmt.Sprintf(format, args...), width, "") + "\n")
	}
	b.WriteByte('\n')
	say("%d rounds, %d devices, %d device-rounds dropped, %d absent, %.1f s, %s arithmetic", r.Rounds, r.Devices, r.Dropped, r.Absent, r.Seconds, r.Arithmetic)
	if r.ClipNorm != nil {
		say("Clip norm: %.4g in the first round, %.4g after the last", r.clipNorm, *r.ClipNorm)
	}
	if r.BytesUp+r.BytesDown > 0 { // else nobody counted
		say("Each device and round: %s up, %s down", terminal.Bytes(int64(r.BytesUp)), terminal.Bytes(int64(r.BytesDown)))
	}
	if r.BytesOnceDown > 0 {
		say("Once, all devices together: %s up, %s down (base, programs, page)", terminal.Bytes(r.BytesOnceUp), terminal.Bytes(r.BytesOnceDown))
	}
	if r.Parts != nil {
		say("All of it by part: %s", partsText(*r.Parts))
	}
	say("Files: %s", r.Checkpoint)
	_, err := io.WriteString(w, b.String())
	return err
}

// partsText is what bytes were for, up and down together.
func partsText(p monitor.Parts) string {
	var said []string
	for _, x := range []struct {
		name string
		b    monitor.Bytes
	}{{"page", p.Page}, {"base", p.Base}, {"programs", p.Programs}, {"slices", p.Slices}, {"secure aggregation's turns", p.Turns},
		{"updates", p.Updates}, {"finished model", p.Model}, {"handshakes, status and framing", p.Rest}} {
		if x.b.Up+x.b.Down > 0 {
			said = append(said, x.name+" "+terminal.Bytes(x.b.Up+x.b.Down))
		}
	}
	return strings.Join(said, ", ")
}

func (r Report) printPrivacy(b *strings.Builder, width int) {
	say := func(text string) { b.WriteString(terminal.Wrap(text, width, "") + "\n") }
	if r.NoNoise {
		say("Not private: the job adds no noise (privacy.none), so no epsilon holds. Secure aggregation keeps single updates " +
			"from the coordinator; what it releases may tell of any device.")
		return
	}
	if r.Reproducible {
		say("Not private: --reproducible seeds every secret, so no epsilon holds.")
		return
	}
	claim := func(name, guarantee string) {
		const indent = "           "
		text := terminal.Wrap(orNone(guarantee), width, indent)
		b.WriteString(name + text[len(name):] + "\n")
	}
	// The label says that it is simulated.
	claim("Simulated", strings.TrimPrefix(r.Simulated, "SIMULATED "))
	claim("Delivered", meaning(r.EpsilonDelivered)+r.Delivered)
	for _, g := range []struct{ name, text string }{{"Public", r.Public}, {"Coalition", r.Coalition}, {"Visible", r.Visible}} {
		if g.text != "" {
			claim(g.name, g.text)
		}
	}
	if r.Simulated != "" {
		say("The budget applies to the simulated guarantee: the noise is what a cohort of the simulated size would add, " +
			"scaled to the devices that took part here. These devices themselves got the delivered one.")
	}
	say("Either protects against everyone who sees released adapters; secure aggregation keeps single updates from the coordinator.")
}

// noProtection is the epsilon from which on a guarantee is said to be none: whoever
// guesses who took part may be right in all but exp(-20) of cases.
const noProtection = 20

// meaning says what a number that no reader can place comes to.
func meaning(epsilon *float64) string {
	if epsilon != nil && *epsilon > noProtection {
		return "no protection at this size: "
	}
	return ""
}

func (r Report) printAccuracy(b *strings.Builder, width int) {
	row := func(name string, accuracy, f1, validation *float64, mark string) {
		cells := [3]string{"–", "–", "–"}
		for i, v := range []*float64{accuracy, f1, validation} {
			if v != nil {
				cells[i] = fmt.Sprintf("%.1f %%", 100**v)
			}
		}
		b.WriteString(strings.TrimRight(fmt.Sprintf("  %-19s %8s %8s %10s %s", name, cells[0], cells[1], cells[2], mark), " ") + "\n")
	}
	transcribed := r.BestWordErrors != nil
	fmt.Fprintf(b, "\nResult on the test split of %s\n\n  %-19s %8s %8s %10s\n", r.Task, "", "accuracy", "macro-F1", "validation")
	if !transcribed { // where nobody says the commonest text of all
		row("commonest label", &r.majority, nil, nil, "")
	}
	row("untouched base", &r.BaseAccuracy, nil, nil, "")
	if r.Linear != nil {
		row("linear over words", &r.Linear.Accuracy, &r.Linear.MacroF1, nil, "")
	}
	if r.HeadOnly != nil {
		row("head only", r.HeadOnly, r.HeadOnlyMacroF1, nil, "(*)")
	}
	for _, rank := range r.ranks {
		name := strconv.Itoa(rank)
		label := "adapter at rank " + name
		if rank == 0 {
			label = cmp.Or(r.method, "head only") + ", this run"
		}
		mark := ""
		if rank == r.BestRank && len(r.ranks) > 1 {
			mark = "chosen"
		}
		f1 := ref(r.RankMacroF1, name)
		if transcribed {
			f1 = nil
		}
		row(label, ref(r.RankAccuracy, name), f1, ref(r.Validation, name), mark)
	}
	b.WriteByte('\n')
	if transcribed {
		b.WriteString(terminal.Wrap(fmt.Sprintf("Accuracy is of words: 1 less the word error rate, which is %.1f %%, of the untouched base with a fresh head %.1f %%; character error rate %.1f %%",
			100**r.BestWordErrors, 100**r.BaseWordErrors, 100**r.BestCharacterErrors), width, "") + "\n")
	}
	if r.BestPerplexity != nil && r.BasePerplexity != nil {
		of, base := "masked tokens", "the untouched base with a fresh head"
		if r.writes {
			of, base = "tokens that come next", "the untouched base"
		}
		b.WriteString(terminal.Wrap(fmt.Sprintf("Accuracy is of %s; perplexity %.2f, of %s %.2f", of, *r.BestPerplexity, base, *r.BasePerplexity), width, "") + "\n")
	}
	switch {
	case r.Linear != nil && r.LinearOf == OnDevices:
		b.WriteString(terminal.Wrap(fmt.Sprintf("Linear over words: TF-IDF with a logistic regression, trained on the devices' %d texts in one place, "+
			"which a demonstration alone has", r.Linear.Texts), width, "") + "\n")
	case r.Linear != nil:
		b.WriteString(terminal.Wrap(fmt.Sprintf("Linear over words: TF-IDF with a logistic regression, trained on the %d validation examples, "+
			"and on no device's", r.Linear.Texts), width, "") + "\n")
	case r.referred:
		b.WriteString("There is no linear reference for this task.\n")
	}
	if r.HeadOnly != nil {
		b.WriteString(terminal.Wrap("(*) measured once under these settings; make bench remakes it", width, "") + "\n")
	}
	if len(r.RankAccuracy) < len(r.ranks) {
		b.WriteString(terminal.Wrap("Validation chose the rank; --test-every-rank tests the others too.", width, "") + "\n")
	}
}

// ref points at a map's value; nil if there is none.
func ref(m map[string]float64, key string) *float64 {
	if v, ok := m[key]; ok {
		return &v
	}
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
