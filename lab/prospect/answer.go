package prospect

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/starling-fl/starling/lab/sweep"
)

// Row is the simulated result at one epsilon.
type Row struct {
	Epsilon float64 `json:"epsilon"` // 0: no noise
	// Tried is whether the fleet was simulated with it; else there is no accuracy and no Ratio.
	Tried    bool    `json:"tried"`
	Accuracy float64 `json:"accuracy"` // on the part of the file that no device has; of answers ANLS
	Ratio    float64 `json:"noise_to_signal"`
	// Rho is the noise over what clipping bounds a mean update by, by each mechanism; without those that no job has.
	Rho map[string]float64 `json:"rho,omitempty"`
	// Belief is the greatest certainty of a device's presence to which an adversary can come who thought it as likely
	// as not (but for delta).
	Belief float64 `json:"belief"`
}

// Answer says which epsilon a fleet can afford.
type Answer struct {
	Fleet
	Data      string  `json:"data"`
	Columns   string  `json:"columns,omitempty"` // the flags by which devices read theirs; "": the usual ones
	Held      int     `json:"examples_in_file"`
	Division  string  `json:"division,omitempty"`
	Commonest float64 `json:"commonest,omitempty"` // accuracy of always saying the commonest label
	Rows      []Row   `json:"rows"`
	// Stands says what a trial had in place of what the fleet has; "": nothing.
	Stands  string  `json:"stands_for,omitempty"`
	Partial bool    `json:"partial,omitempty"` // too little was tried for advice, and no job file is written
	Advice  string  `json:"advice"`
	Chosen  float64 `json:"epsilon"` // of the job file; 0: none
	File    string  `json:"job"`
	Seconds float64 `json:"seconds"`
}

// take adds a finished simulation.
func (a *Answer) take(row *Row, r *sweep.Record) {
	row.Tried, row.Accuracy = true, r.Score()
	if r.SignalNorm > 0 {
		row.Ratio = r.NoiseNorm / r.SignalNorm
	}
	a.Commonest = r.MajorityAccuracy
	if r.Division != nil {
		a.Division = r.Division.String()
		if r.Division.Reused >= 1.5 {
			a.Stands = "The file names fewer users than there are devices, or has too few examples: trials let several devices hold the same."
		}
	}
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
	case a.From == "nobody":
		a.Chosen = 0
		a.Advice = fmt.Sprintf("Without noise %d devices come to %s.", a.Devices, percent(none.Accuracy))
	case !none.Tried || !asked.Tried:
		a.Partial = true
		a.Advice = "Too little was tried to say: the same command goes on from here."
	case unlearnt:
		a.Advice = fmt.Sprintf("Nothing is learnt even without noise (%s; always saying the commonest label: %s): another base, more rounds or more examples come before privacy.",
			percent(none.Accuracy), percent(a.Commonest))
	default:
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
		if a.Rounds > fewRounds && best != asked && (best == nil || best.Epsilon > wanted) {
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
	mechanism := a.adversary().Mechanism
	if best != nil {
		as = max(as, best.Rho[mechanism])
	}
	return digits(float64(a.Devices) * max(1, asked.Rho[mechanism]/as))
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
	fmt.Fprintf(&b, "What %d devices can afford, in %d rounds, simulated on %s\n", a.Devices, a.Rounds, a.Data)
	if a.Division != "" {
		fmt.Fprintf(&b, "(%s)\n", a.Division)
	}
	b.WriteString("\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	own := a.adversary().Mechanism
	heads := "epsilon\taccuracy\tnoise : signal\tan even chance becomes\t"
	var others []Adversary
	for _, m := range Adversaries {
		if m.Mechanism != "" && m.Mechanism != own && own != "" {
			others = append(others, m)
			heads += "noise : signal, from " + m.Name + "\t"
		}
	}
	fmt.Fprintln(t, heads)
	for _, r := range a.Rows {
		name, ratio, accuracy, believed := fmt.Sprintf("%g", r.Epsilon), digits(r.Ratio), percent(r.Accuracy), belief(r.Epsilon)
		if r.Epsilon == 0 {
			name, ratio, believed = "no noise", "–", "no claim"
		}
		if !r.Tried {
			accuracy, ratio = "not tried", "–"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t", name, accuracy, ratio, believed)
		for _, m := range others {
			cell := "–"
			if rho, ok := r.Rho[m.Mechanism]; ok && r.Tried && r.Rho[own] > 0 {
				cell = digits(r.Ratio * rho / r.Rho[own])
			}
			fmt.Fprintf(t, "%s\t", cell)
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // into memory
	if a.Commonest > 0 {
		fmt.Fprintf(&b, "\nAlways saying the commonest label: %s.\n", percent(a.Commonest))
	}
	if a.Stands != "" {
		fmt.Fprintf(&b, "\n%s\n", a.Stands)
	}
	fmt.Fprintf(&b, "\n%s\n", a.Advice)
	if a.Partial {
		_, err := io.WriteString(w, b.String())
		return err
	}
	fmt.Fprintf(&b, "\n%s: epsilon %g\n", a.File, a.Chosen)
	if a.Columns != "" {
		fmt.Fprintf(&b, "Columns: devices with files like this one join with %s.\n", a.Columns)
	}
	fmt.Fprintf(&b, "Next:    starling serve --job %s --dir run1\n", a.File)
	_, err := io.WriteString(w, b.String())
	return err
}
