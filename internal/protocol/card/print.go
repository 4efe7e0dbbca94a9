package card

import (
	"fmt"
	"io"
	"strings"

	"github.com/starling-fl/starling/dp"
)

// Line is the card in a line, for those who are about to join.
func (c *Card) Line() string {
	var parts []string
	public, _ := c.Against(dp.Public)
	for _, e := range c.Guarantee.Epsilons {
		if e.Observer == string(dp.Colluding) && e.Epsilon == public.Epsilon {
			continue
		}
		who := map[string]string{
			string(dp.Public): "the public", string(dp.Participants): "observers of who takes part", string(dp.Untrusting): "the coordinator itself",
			string(dp.Colluding): fmt.Sprintf("%.4g %% of the devices", 100*c.Mechanism.Corrupt),
		}[e.Observer]
		parts = append(parts, e.number()+" against "+who)
	}
	line := strings.Join(parts, ", ")
	if c.Guarantee.Simulated {
		line += "; the budget is a larger population's and protects nobody here"
	}
	return line
}

func (e *Epsilon) number() string {
	switch {
	case e.None:
		return "no epsilon"
	case e.Epsilon > 1000:
		return "epsilon above 1000"
	}
	return fmt.Sprintf("epsilon %.3g", e.Epsilon)
}

// sampling says how often a device takes part.
func (m Mechanism) sampling() string {
	if m.Separation > 0 {
		return fmt.Sprintf("a device is in at most one of any %d releases in a row", m.Separation)
	}
	return fmt.Sprintf("a device's coin falls on in with probability %.4g in a round", m.SamplingRate)
}

// Print writes the card for people.
func (c *Card) Print(w io.Writer) error {
	var b strings.Builder
	g, m := c.Guarantee, c.Mechanism
	fmt.Fprintf(&b, "privacy card of %s, in the shape of NIST SP 800-226\n", c.Job)
	if c.ID != "" {
		fmt.Fprintf(&b, "id          %s\n", c.ID)
	}
	if c.Asks != nil {
		fmt.Fprintf(&b, "asked by    %s\n", c.Asks.Organisation)
	}
	fmt.Fprintf(&b, "unit        each %s\nadjacency   %s\nbudget      epsilon %.6g against %s, over %d rounds\n\n", g.Unit, g.Adjacency, g.Budget, g.Observer, g.Rounds)
	for _, e := range g.Epsilons {
		trust := "if the coordinator is trusted"
		if !e.Trusts {
			trust = "without trust in the coordinator"
		}
		fmt.Fprintf(&b, "%-12s %s, %s; sees %s\n", e.Observer, e.number(), trust, e.Sees)
	}
	month := Epsilon{Epsilon: g.Month.Epsilon}
	fmt.Fprintf(&b, "%-12s %s in %d rounds. %s\n", "a month", month.number(), g.Month.Rounds, g.Month.Why)
	if g.Fleet.Epsilon > 0 {
		fmt.Fprintf(&b, "%-12s epsilon %.6g at delta %.3g. %s\n", "all jobs", g.Fleet.Epsilon, g.Fleet.Delta, g.Fleet.Why)
	} else {
		fmt.Fprintf(&b, "%-12s %s\n", "all jobs", g.Fleet.Why)
	}
	fmt.Fprintf(&b, "\nmechanism   %s\nnoise       %.6g clip norms in a sum, by %s; %.4g of each device's own\nsampling    %s; the budget is stated for %d devices\n",
		m.Name, m.NoiseMultiplier, m.Noise, m.OwnNoise, m.sampling(), m.Population)
	for _, part := range []struct {
		head  string
		lines []string
	}{{"what leaves a device", c.Exposure}, {"what is not covered", c.NotCovered}} {
		fmt.Fprintf(&b, "\n%s\n", part.head)
		for _, line := range part.lines {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	b.WriteString("\nwhat the numbers rest on, and what would notice\n")
	for _, a := range c.Assumptions {
		fmt.Fprintf(&b, "- %s\n", a.What)
		runs := ""
		for _, t := range a.Watches {
			if t.Runs != runs {
				fmt.Fprintf(&b, "  watched by %s\n", t.Runs)
			}
			runs = t.Runs
			note := t.Note
			if t.Of > 0 {
				note = fmt.Sprintf("found %d times of %d, at least %.2f", t.Found, t.Of, t.Power)
			}
			if t.Flaw != "" {
				note = t.Flaw + ": " + note
			}
			fmt.Fprintf(&b, "    %s (%s)\n", t.Test, note)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
