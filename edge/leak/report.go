package leak

import (
	"fmt"
	"math"
	"strings"
)

// Report lists the attacks that were tried, and their results.
type Report struct {
	Trials   int      `json:"trials"`
	Examples int      `json:"examples"` // that an update averages
	Values   int      `json:"values"`   // of an update
	Uplink   string   `json:"uplink"`
	OwnNoise float64  `json:"own_noise"`
	Own      bool     `json:"own_data"` // they are the owner's, else made up
	Attacks  []Attack `json:"attacks"`
	Seconds  float64  `json:"seconds"`

	// Rounds are those that the job announces; 0: not known. Bits bounds what they all could tell of
	// the device's data if all others lie; 0: nothing does.
	Rounds uint64  `json:"rounds,omitempty"`
	Bits   float64 `json:"bits,omitempty"`

	Aimed *Aimed `json:"aimed,omitempty"` // what a start shows that was searched for; nil: none was
}

// Attack is the result of one attack on the updates of all trials.
type Attack struct {
	Name     string `json:"name"`
	Of       string `json:"of"`                  // Tokens or Labels
	NotTried string `json:"not_tried,omitempty"` // why; "": it was tried
	Tiny     bool   `json:"tiny,omitempty"`      // on a tiny base, and not on the job's

	Found int `json:"found"` // of All: tokens of an update's texts that the other texts lack, or labels
	All   int `json:"all"`
	// OtherFound of OtherAll tokens of other texts, which are in no update, were found: the result of guessing.
	OtherFound int `json:"other_found"`
	OtherAll   int `json:"other_all"`
	// Share is the share found minus the share guessed, Low and High its interval at 95 %.
	Share float64 `json:"share"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Worst returns the attack, of those on the job's own base, that found most Tokens or Labels; ok is
// false if none was tried.
func (r *Report) Worst(of string) (worst Attack, ok bool) {
	for _, a := range r.Attacks {
		if a.Of == of && a.NotTried == "" && !a.Tiny && (!ok || a.Share > worst.Share) {
			worst, ok = a, true
		}
	}
	return worst, ok
}

// shown is how many of one update's tokens or labels, of so many, the attack finds where
// guessing does not.
func (a *Attack) shown(r *Report) (shown, of int) {
	of = (a.All + r.Trials/2) / max(1, r.Trials)
	return int(math.Round(a.Share * float64(of))), of
}

// Line summarises the report in one line.
func (r *Report) Line() string {
	var said []string
	for _, of := range []string{Tokens, Labels} {
		if a, ok := r.Worst(of); ok {
			n, all := a.shown(r)
			said = append(said, fmt.Sprintf("%d of %d %s", n, all, of))
		}
	}
	if len(said) == 0 {
		return "what one update of yours shows could not be tried"
	}
	return fmt.Sprintf("at these settings one update of yours, of %d examples, shows %s%s", r.Examples, strings.Join(said, " and "), r.allRounds())
}

// allRounds says what was tried, and the bound over all rounds, of which single updates say nothing.
func (r *Report) allRounds() string {
	if r.Rounds == 0 {
		return ""
	}
	tried := 0
	for _, a := range r.Attacks {
		if a.NotTried == "" {
			tried++
		}
	}
	bound := "nothing bounds that"
	if r.Bits > 0 {
		// A character of text that a good model of the language predicts has about one bit, as edge tells owners.
		bound = fmt.Sprintf("whoever lies, that is at most %.3g bits, as many as %.4g characters", r.Bits, math.Ceil(r.Bits))
	}
	if r.Aimed != nil {
		bound = r.Aimed.line() + "; " + bound
	}
	return fmt.Sprintf(". That is of one update, with a start of this program's own, by %d attacks: "+
		"a coordinator that chooses what rounds begin with may read more over the %d rounds announced, and %s", tried, r.Rounds, bound)
}

// line says what the search came to.
func (a *Aimed) line() string {
	if a.NotTried != "" {
		return "no start was searched for that shows more (" + a.NotTried + ")"
	}
	within := "within the job's bounds"
	if !a.Bounded {
		within = "without bounds"
	}
	return fmt.Sprintf("of %d starts tried %s in %.1f s the best names which of %d examples yours is in %.0f %% of cases, if all others are known (chance: %.0f %%)",
		a.Starts, within, a.Seconds, a.Of, 100*a.Named, 100/float64(max(1, a.Of)))
}

// bounded is a bound that a report can say: 0 where there is none.
func bounded(bits float64) float64 {
	if math.IsInf(bits, 0) || math.IsNaN(bits) {
		return 0
	}
	return bits
}

// Limits lists what a report does not cover.
const Limits = `Not tried: the order of tokens; bases that were made for your texts (try your own: --data); starts
that a longer search finds; and whatever nobody has thought of. The bound against all of it is this
device's own noise.`
