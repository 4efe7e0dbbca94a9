package guarantee

import (
	"errors"
	"fmt"
	"io"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/internal/app/usage"
)

// Report is the guarantee of a plan, with what it follows from.
// Epsilon is never alone: delta, adjacency, accountant and sampling are in the
// same object.
type Report struct {
	dp.Guarantee
	SamplingRate    float64 `json:"sampling_rate"`
	NoiseMultiplier float64 `json:"noise_multiplier"`
	// ProviderRate is the coin of each provider inside its device; 0 where the
	// device is what is protected.
	ProviderRate float64 `json:"provider_rate,omitempty"`
	Hidden       bool    `json:"participation_hidden,omitempty"`
	// Visible is the same job against an adversary who sees who took part in
	// which round: amplification by sampling is gone.
	Visible *dp.Guarantee `json:"visible,omitempty"`
	// Target is the epsilon that was asked for (noise, rounds and rate).
	Target float64 `json:"target_epsilon,omitempty"`
	// RDPNoiseMultiplier is the noise multiplier that the Rényi accountant would need.
	RDPNoiseMultiplier float64 `json:"rdp_noise_multiplier,omitempty"`
	Curve              string  `json:"curve,omitempty"` // the file that was written
}

// Report returns the guarantee of the job. Its errors are usage errors where an accountant refuses the plan.
func (p *Plan) Report(acct dp.Accountant) (Report, error) {
	r := Report{SamplingRate: p.Rate, NoiseMultiplier: p.Noise, ProviderRate: p.ProviderRate, Hidden: p.Hidden,
		Target: p.Epsilon, RDPNoiseMultiplier: p.RDPNoise}
	events := []dp.Event{p.Event(p.Rounds)}
	var err error
	if r.Guarantee, err = accounting.Against(p.Observer())(events, p.Delta, acct); err != nil {
		if errors.Is(err, dp.ErrEvent) {
			return r, usage.Wrap(err)
		}
		return r, err
	}
	if p.Rate < 1 && r.Sampling != dp.SamplingVisible {
		v, err := accounting.VisibleEpsilon(events, p.Delta, acct)
		if err != nil {
			return r, err
		}
		r.Visible = &v
	}
	return r, nil
}

// protectedUnit is what the worlds that a guarantee compares differ in.
func protectedUnit(adjacency string) string {
	if adjacency == dp.AdjacencyProvider {
		return "one provider in a device"
	}
	return "one device"
}

// Print writes the guarantee, and the one against observers of who took part.
func (r Report) Print(w io.Writer) error {
	fmt.Fprintf(w, "epsilon           %.6g\n", r.Epsilon)
	if r.Accountant == dp.Tight {
		fmt.Fprintf(w, "  at least        %.6g (lower bound of the same accountant)\n", r.EpsilonLower)
	}
	if r.Accountant == dp.Tight && r.Epsilon > 1.001*r.EpsilonLower {
		fmt.Fprintf(w, "  note            the bounds are %.2g %% apart: rates this small are not resolved further;\n                  the truth may be lower by that much, never higher\n", 100*(r.Epsilon/r.EpsilonLower-1))
	}
	fmt.Fprintf(w, "delta             %.3g\n", r.Delta)
	fmt.Fprintf(w, "adjacency         %s\n", r.Adjacency)
	fmt.Fprintf(w, "accountant        %s (rdp alone: %.6g at order %.5g)\n", r.Accountant, r.RDPEpsilon, r.RDPOrder)
	fmt.Fprintf(w, "sampling          %s\n", r.Sampling)
	fmt.Fprintf(w, "rounds            %d\n", r.Rounds)
	if r.Visible != nil {
		sampling := "sampling"
		if r.ProviderRate > 0 {
			sampling = "the device's coin"
		}
		fmt.Fprintf(w, "\nAgainst someone who sees who took part in which round (shard peers, the\nnetwork), %s protects nobody and the same job is\n", sampling)
		fmt.Fprintf(w, "epsilon           %.6g at delta %.3g, %s adjacency, %s accountant\n", r.Visible.Epsilon, r.Visible.Delta, r.Visible.Adjacency, r.Visible.Accountant)
	}
	if r.Hidden {
		fmt.Fprint(w, "\n--participation-hidden holds only where each device has one provider at most: the\nsum of its others shows in the released model that a device took part.\n")
	}
	also := ""
	if r.Observer == dp.Participants {
		also = ", also\nif they see who takes part in every round"
	}
	fmt.Fprintf(w, "\nProtected: the presence of %s, from anyone who sees released models%s. Not from\nthe coordinator, which sees exact sums. \"starling privacy explain\" says more.\n",
		protectedUnit(r.Adjacency), also)
	if r.Curve != "" {
		fmt.Fprintf(w, "curve             %s\n", r.Curve)
	}
	return nil
}
