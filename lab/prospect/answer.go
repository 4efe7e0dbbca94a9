package prospect

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/starling-fl/starling/lab/sweep"
)

// Cell is what a mechanism comes to at one epsilon.
type Cell struct {
	// Tried is whether the fleet was simulated with it; else there is no accuracy and no Ratio.
	Tried    bool    `json:"tried"`
	Accuracy float64 `json:"accuracy"` // on the part of the file that no device has; of answers ANLS
	Ratio    float64 `json:"noise_to_signal"`
	// Rho is the noise over what clipping bounds a mean update by, Multiplier its standard deviation over the clip norm.
	Rho        float64 `json:"rho"`
	Multiplier float64 `json:"noise_multiplier"`
}

// Row is the simulated result at one epsilon, with the fleet's own mechanism and with others by whom they protect from.
// Others with which no job is possible are left out.
type Row struct {
	Epsilon float64 `json:"epsilon"` // 0: no noise
	Cell
	Others map[string]*Cell `json:"protected_from,omitempty"`
	// Belief is the greatest certainty of a device's presence to which an adversary can come who thought it as likely
	// as not (but for delta).
	Belief float64 `json:"belief"`
}

// cell is that of a mechanism.
func (r *Row) cell(from string) *Cell {
	if c := r.Others[from]; c != nil {
		return c
	}
	return &r.Cell
}

// Answer says which epsilon a fleet can afford.
type Answer struct {
	Fleet
	Data      string  `json:"data"`
	Columns   string  `json:"columns,omitempty"` // the flags by which devices read theirs; "": the usual ones
	Held      int     `json:"examples_in_file"`
	Division  string  `json:"division,omitempty"`
	Commonest float64 `json:"commonest,omitempty"` // accuracy of always saying the commonest label
	Observer  string  `json:"observer,omitempty"`  // whom each epsilon holds against
	Rows      []Row   `json:"rows"`
	// Other is the table of other rounds, where two were tried; it has no file of its own.
	Other *Answer `json:"other_rounds,omitempty"`
	// Stands says what a trial had in place of what the fleet has; "": nothing.
	Stands  string  `json:"stands_for,omitempty"`
	Partial bool    `json:"partial,omitempty"` // too little was tried for advice, and no job file is written
	Advice  string  `json:"advice"`
	Chosen  float64 `json:"epsilon"` // of the job file; 0: none
	File    string  `json:"job"`
	Seconds float64 `json:"seconds"`

	found, noisy bool // an epsilon that was tried is useful; none is, though something is learnt without noise
}

// row is an epsilon's; nil if there is none.
func (a *Answer) row(epsilon float64) *Row {
	for i := range a.Rows {
		if a.Rows[i].Epsilon == epsilon {
			return &a.Rows[i]
		}
	}
	return nil
}

// others are the mechanisms beside the fleet's own; none where nothing is protected.
func (a *Answer) others() (out []Adversary) {
	own := a.adversary()
	for _, m := range Adversaries {
		if m.Mechanism != "" && m.Name != own.Name && own.Mechanism != "" {
			out = append(out, m)
		}
	}
	return out
}

// take adds a finished simulation.
func (a *Answer) take(at *Cell, r *sweep.Record) {
	at.Tried, at.Accuracy = true, r.Score()
	if r.SignalNorm > 0 {
		at.Ratio = r.NoiseNorm / r.SignalNorm
	}
	a.Commonest = r.MajorityAccuracy
	if r.Division != nil {
		a.Division = r.Division.String()
		if r.Division.Reused >= 1.5 {
			a.Stands = "The file names fewer users than there are devices, or has too few examples: trials let several devices hold the same."
		}
	}
}

// against is the better of two answers, the other one behind it: that of few rounds if an epsilon is useful there, or
// the one that was asked for comes further.
func (a *Answer) against(few *Answer) *Answer {
	switch asked, less := a.row(a.Chosen), few.row(a.Chosen); {
	case few.Partial:
		return a
	case few.found && few.row(few.Chosen).Accuracy > asked.Accuracy, less.Accuracy > max(asked.Accuracy, few.Commonest):
		few.Advice = fmt.Sprintf("In %d rounds no epsilon that was tried leaves most of it; fewer need less noise. In %d: ", a.Rounds, few.Rounds) + few.Advice
		few.Other = a
		return few
	}
	const most = "no epsilon that was tried leaves most of it"
	a.Advice = strings.Replace(a.Advice, most, fmt.Sprintf("%s, also in %d rounds, which need less noise", most, few.Rounds), 1)
	a.Other = few
	return a
}

// fewRounds came further than 20 where noise was longer than the signal: forty devices on R8 at epsilon 2 to 74.7 % in
// 3 rounds, and to 46.3 % in 20, which need 3.4 times the noise in each.
const fewRounds = 3

// poor is an accuracy without noise below which noise is not what is to be spoken of.
const poor = 0.6

// worth is the share of what can be learnt that a useful epsilon leaves.
const worth = 0.75

// choose says which of the epsilons leaves something worth learning, and what to do if none does.
func (a *Answer) choose(wanted float64) {
	var none, asked, best *Row
	a.found, a.noisy = false, false
	for i := range a.Rows {
		r := &a.Rows[i]
		switch {
		case r.Epsilon == 0:
			none = r
			continue
		case r.Epsilon == wanted:
			asked = r
		}
		if r.Tried && none.Tried && a.useful(*r, *none) && (best == nil || r.Epsilon < best.Epsilon) {
			best = r
		}
	}
	a.Chosen = wanted
	unlearnt := none.Tried && none.Accuracy < a.Commonest+0.05 && a.Commonest > 0
	switch {
	case !none.Tried || a.From != "nobody" && !asked.Tried:
		a.Partial = true
		a.Advice = "Too little was tried to say: the same command goes on from here."
	case a.From == "nobody":
		a.Chosen = 0
		a.Advice = fmt.Sprintf("Without noise %d devices come to %s.", a.Devices, percent(none.Accuracy))
	case unlearnt:
		a.Advice = fmt.Sprintf("Nothing is learnt even without noise (%s; always saying the commonest label: %s): another base, more rounds or more examples come before privacy.",
			percent(none.Accuracy), percent(a.Commonest))
	default:
		a.found, a.noisy = best != nil, best == nil
		said := fmt.Sprintf("With %d devices and epsilon %g the noise is %s times the signal: %s%s, and %s without noise; ", a.Devices, wanted, digits(asked.Ratio),
			percent(asked.Accuracy), a.beside(*asked), percent(none.Accuracy))
		switch {
		case best == asked:
			said += fmt.Sprintf("use epsilon %g.", wanted)
		case best != nil && best.Epsilon < wanted:
			said += fmt.Sprintf("epsilon %g does as well (%s): use it.", best.Epsilon, percent(best.Accuracy))
			a.Chosen = best.Epsilon
		case best != nil:
			said += fmt.Sprintf("use epsilon %g (%s), or some %s devices for epsilon %g.", best.Epsilon, percent(best.Accuracy), a.need(*asked, best), wanted)
			a.Chosen = best.Epsilon
		default:
			said += fmt.Sprintf("no epsilon that was tried leaves most of it. Use some %s devices, or --protect-from nobody where all trust each other and you.",
				a.need(*asked, nil))
		}
		if a.Rounds > fewRounds && best != nil && best.Epsilon > wanted {
			said += fmt.Sprintf(" Fewer rounds need less noise: see what --rounds %d comes to.", fewRounds)
		}
		a.Advice = said
	}
	if none.Tried && !unlearnt && a.Commonest > 0 && none.Accuracy < poor {
		a.Advice += fmt.Sprintf(" Without noise it is %s, too: the base, the rounds or the examples limit it more than privacy does. "+
			"Try a base that has read more (--base), as sentence-transformers/all-MiniLM-L6-v2.", percent(none.Accuracy))
	}
	if a.Chosen >= 8 && a.From != "nobody" {
		a.Advice += fmt.Sprintf(" Epsilon %g is a weak promise: an adversary's even chance can become %s.", a.Chosen, belief(a.Chosen))
	}
}

func (a *Answer) useful(r, none Row) bool {
	return r.Accuracy >= a.Commonest+worth*(none.Accuracy-a.Commonest) && r.Accuracy > a.Commonest
}

// beside says where an accuracy is below that of always saying the commonest label.
func (a *Answer) beside(r Row) string {
	if r.Accuracy >= a.Commonest {
		return ""
	}
	return fmt.Sprintf(", less than by always saying the commonest label (%s)", percent(a.Commonest))
}

// need is about how many devices have the noise of a row that is useful, or as much noise as signal: noise in a mean
// falls with their number.
func (a *Answer) need(asked Row, best *Row) string {
	as := 1.0
	if best != nil {
		as = max(as, best.Rho)
	}
	return digits(float64(a.Devices) * max(1, asked.Rho/as))
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// digits is a number with two of them, and no exponent.
func digits(x float64) string {
	if x < 10 {
		return fmt.Sprintf("%.2g", x)
	}
	unit := math.Pow(10, math.Floor(math.Log10(x))-1)
	return fmt.Sprintf("%.0f", math.Round(x/unit)*unit)
}

// belief is what an even chance can become at an epsilon, rounded down where it is not certain.
func belief(epsilon float64) string {
	p := 100 / (1 + math.Exp(-epsilon))
	if p > 99.99 {
		return "more than 99.99 %"
	}
	return fmt.Sprintf("%.4g %%", p)
}

// Print is the answer for people.
func (a *Answer) Print(w io.Writer) error {
	var b strings.Builder
	if a.Other != nil {
		a.Other.table(&b)
	}
	if len(a.Rows) > 0 {
		a.table(&b)
	}
	if a.Division != "" {
		fmt.Fprintf(&b, "Simulated once each on %s (%s): a few points more or less are chance.\n", a.Data, a.Division)
	}
	if a.Commonest > 0 {
		fmt.Fprintf(&b, "Always saying the commonest label: %s.\n", percent(a.Commonest))
	}
	if a.Observer != "" {
		fmt.Fprintf(&b, "Each epsilon holds against %s.\n", a.Observer)
	}
	if a.Stands != "" {
		fmt.Fprintf(&b, "%s\n", a.Stands)
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s\n", a.Advice)
	if a.Partial {
		_, err := io.WriteString(w, b.String())
		return err
	}
	fmt.Fprintf(&b, "\n%s: %s\n", a.File, a.promise())
	columns := ""
	if a.Columns != "" {
		fmt.Fprintf(&b, "Columns: devices with files like this one join with %s.\n", a.Columns)
		columns = " " + a.Columns
	}
	fmt.Fprintf(&b, "Again:   starling simulate --job %s --data %s%s --examples %d --every 0\n", a.File, a.Data, columns, a.Examples)
	fmt.Fprintf(&b, "Next:    starling serve --job %s --dir run1\n", a.File)
	_, err := io.WriteString(w, b.String())
	return err
}

// promise is what the job file says of privacy.
func (a *Answer) promise() string {
	if a.Chosen == 0 {
		return "no privacy"
	}
	return fmt.Sprintf("epsilon %g", a.Chosen)
}

// table prints the trials, by epsilon and by mechanism.
func (a *Answer) table(b *strings.Builder) {
	fmt.Fprintf(b, "What %d devices can afford, in %d rounds\n\n", a.Devices, a.Rounds)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	others := a.others()
	heads := "epsilon\taccuracy\tnoise : signal\tan even chance becomes\t"
	for _, m := range others {
		heads += "protected from " + m.Name + "\tnoise : signal\t"
	}
	fmt.Fprintln(t, heads)
	for _, r := range a.Rows {
		name, believed := fmt.Sprintf("%g", r.Epsilon), belief(r.Epsilon)
		if r.Epsilon == 0 {
			name, believed = "no noise", "no claim"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t", name, r.Cell.text(), believed)
		for _, m := range others {
			fmt.Fprintf(t, "%s\t", r.Others[m.Name].text())
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // into memory
	b.WriteString("\n")
}

// text is a cell's accuracy and noise; of nil, a mechanism with which there is no job, none.
func (c *Cell) text() string {
	switch {
	case c == nil:
		return "–\t–"
	case !c.Tried:
		return "not tried\t–"
	case c.Rho == 0:
		return percent(c.Accuracy) + "\t–"
	}
	return percent(c.Accuracy) + "\t" + digits(c.Ratio)
}
