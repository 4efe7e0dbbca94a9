package dp

import (
	"errors"
	"fmt"
	"strings"
)

// Accountant names a way to compose rounds into one epsilon.
type Accountant string

// The accountants.
const (
	// Tight is the privacy loss distribution accountant, capped by RDP.
	Tight Accountant = "tight"
	// RDP is the Rényi accountant of the sampled Gaussian.
	RDP Accountant = "rdp"
)

// ErrAccountant reports an accountant that does not exist.
var ErrAccountant = errors.New("unknown accountant")

// ParseAccountant maps a name to an accountant; the empty name is Tight.
func ParseAccountant(name string) (Accountant, error) {
	switch a := Accountant(name); a {
	case "":
		return Tight, nil
	case Tight, RDP:
		return a, nil
	}
	return "", fmt.Errorf("dp: accountant %q, want %q or %q: %w", name, Tight, RDP, ErrAccountant)
}

// Names used in a Guarantee.
const (
	AdjacencyAddRemove = "add/remove"
	AdjacencyProvider  = "add/remove of one provider"
	SamplingPoisson    = "poisson, participation hidden"
	SamplingNone       = "none (q = 1)"
	SamplingVisible    = "poisson, participation visible"
	SamplingCoalition  = "poisson, participation hidden but from a coalition in the same shard"
)

// zeroOut is what a guarantee says of adjacency where it shows whether a device is there.
const zeroOut = "zero-out (absent: there, with zeros)"

// assumesStaying is what a guarantee rests on where one device that leaves may decide over its
// shard's sum, with a probability that is not within delta.
const assumesStaying = "no device leaves a round because of its own data"

// ZeroOut names the variant of an adjacency in which the absent member is there and sends zeros.
func ZeroOut(adjacency string) string {
	if adjacency == AdjacencyProvider {
		return zeroOut + " of one provider"
	}
	return zeroOut
}

// Guarantee is an epsilon together with all that it needs to have a meaning. String prints all of
// it.
type Guarantee struct {
	Epsilon float64 `json:"epsilon"` // upper bound
	// EpsilonLower bounds epsilon from below for the mechanism as it is accounted: no better
	// composition of the same rounds is below it. Discrete noise is accounted as a continuous one of
	// variance sigma^2 - 4, so that its true epsilon may be less, by about 4/sigma^2 of it.
	EpsilonLower float64    `json:"epsilon_lower"`
	Delta        float64    `json:"delta"`
	FloorDelta   float64    `json:"floor_delta,omitempty"` // part of Delta kept for cohorts below a floor, see [FloorShare]
	Adjacency    string     `json:"adjacency"`             // what two adjacent worlds differ in
	Accountant   Accountant `json:"accountant"`            // what Epsilon was computed with
	Sampling     string     `json:"sampling"`              // what was assumed of the cohorts
	Rounds       int        `json:"rounds"`

	Observer  Observer `json:"observer"`                  // who Epsilon holds against
	Coalition float64  `json:"coalition_share,omitempty"` // of the devices, if a coalition does the observing
	// Assumes is what the number rests on beyond the mechanism; LeavingDelta is how much delta grows
	// if a device leaves rounds because of its own data all the same, 0 if that is not known.
	Assumes      string  `json:"assumes,omitempty"`
	LeavingDelta float64 `json:"leaving_delta,omitempty"`

	RDPEpsilon float64 `json:"rdp_epsilon"` // the Rényi accountant's upper bound
	RDPOrder   float64 `json:"rdp_order"`   // and the order it was attained at

	// Simulated marks an epsilon of a simulated population, which no real participant has.
	Simulated bool `json:"simulated,omitempty"`
}

// Guarantees are what the same events amount to against the different adversaries of a job. All are
// nil in a run that is not private.
type Guarantees struct {
	// Simulated is the guarantee of a simulated larger population; nil without simulation.
	Simulated *Guarantee `json:"simulated,omitempty"`
	// Delivered is the guarantee of the devices that really take part, against the budget's observer.
	Delivered *Guarantee `json:"delivered,omitempty"`
	// Public is Delivered against the public; nil if it is the same.
	Public *Guarantee `json:"public,omitempty"`
	// Coalition is Delivered against the declared share of colluding devices; nil if it is the same.
	Coalition *Guarantee `json:"coalition,omitempty"`
	// Visible is Delivered against observers of participation, such as the network; nil if it is the same.
	Visible *Guarantee `json:"visible,omitempty"`
	// Untrusted is what holds without trust in the coordinator, of a device that was in
	// every round: by the noise that devices add themselves (accounting.UntrustedEpsilon). nil where
	// they add none: then nothing holds.
	Untrusted *Guarantee `json:"untrusted,omitempty"`
}

// senseless is an epsilon beyond which accountants' bounds differ by factors and none protects anybody: words name no
// figure then, so that two of one job are not taken for two promises.
const senseless = 1000

// String states the whole guarantee in one line.
func (g Guarantee) String() string {
	var b strings.Builder
	if g.Simulated {
		b.WriteString("SIMULATED ")
	}
	if g.Epsilon > senseless {
		fmt.Fprintf(&b, "epsilon above %d", senseless)
	} else {
		fmt.Fprintf(&b, "epsilon %.6g (lower bound %.6g)", g.Epsilon, g.EpsilonLower)
	}
	fmt.Fprintf(&b, " against %s at delta %.3g, %s adjacency, %s accountant", g.against(), g.Delta, g.Adjacency, g.Accountant)
	if g.Accountant == RDP {
		fmt.Fprintf(&b, " at order %.6g", g.RDPOrder)
	}
	if g.FloorDelta > 0 {
		fmt.Fprintf(&b, ", %.2g of delta for small cohorts", g.FloorDelta)
	}
	fmt.Fprintf(&b, ", %d rounds, sampling: %s", g.Rounds, g.Sampling)
	if g.Assumes != "" {
		fmt.Fprintf(&b, "; assumes that %s", g.Assumes)
	}
	if g.LeavingDelta > 0 {
		fmt.Fprintf(&b, " (else delta grows by %.2g)", g.LeavingDelta)
	}
	return b.String()
}
