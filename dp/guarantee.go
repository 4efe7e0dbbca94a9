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
)

// zeroOut is what a guarantee says of adjacency where a round may be hit: see [Event.Hit].
const zeroOut = "zero-out (absent: there, with zeros)"

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
	Epsilon      float64    `json:"epsilon"`       // upper bound
	EpsilonLower float64    `json:"epsilon_lower"` // the true epsilon is not below this
	Delta        float64    `json:"delta"`
	FloorDelta   float64    `json:"floor_delta,omitempty"` // part of Delta kept for cohorts below a floor, see [FloorShare]
	Adjacency    string     `json:"adjacency"`             // what two adjacent worlds differ in
	Accountant   Accountant `json:"accountant"`            // what Epsilon was computed with
	Sampling     string     `json:"sampling"`              // what was assumed of the cohorts
	Rounds       int        `json:"rounds"`

	RDPEpsilon float64 `json:"rdp_epsilon"` // the Rényi accountant's upper bound
	RDPOrder   float64 `json:"rdp_order"`   // and the order it was attained at

	// Simulated marks an epsilon of a simulated population: nobody who took part
	// has it.
	Simulated bool `json:"simulated,omitempty"`
}

// Guarantees are what the same events amount to against the different adversaries of a job. All are
// nil in a run that is not private.
type Guarantees struct {
	// Simulated is that of a simulated larger population; nil without simulation.
	Simulated *Guarantee `json:"simulated,omitempty"`
	// Delivered is that of the devices that can really take part.
	Delivered *Guarantee `json:"delivered,omitempty"`
	// Visible is Delivered against those who see who takes part, as shard peers and
	// network observers do; nil if it is the same.
	Visible *Guarantee `json:"visible,omitempty"`
	// Untrusted is what holds without trust in the coordinator, of a device that was in
	// every round: by the noise that devices add themselves (accounting.UntrustedEpsilon). nil where
	// they add none: then nothing holds.
	Untrusted *Guarantee `json:"untrusted,omitempty"`
}

// String states the whole guarantee in one line.
func (g Guarantee) String() string {
	var b strings.Builder
	if g.Simulated {
		b.WriteString("SIMULATED ")
	}
	fmt.Fprintf(&b, "epsilon %.6g (lower bound %.6g) at delta %.3g, %s adjacency, %s accountant", g.Epsilon, g.EpsilonLower, g.Delta, g.Adjacency, g.Accountant)
	if g.Accountant == RDP {
		fmt.Fprintf(&b, " at order %.6g", g.RDPOrder)
	}
	if g.FloorDelta > 0 {
		fmt.Fprintf(&b, ", %.2g of delta for small cohorts", g.FloorDelta)
	}
	fmt.Fprintf(&b, ", %d rounds, sampling: %s", g.Rounds, g.Sampling)
	return b.String()
}
