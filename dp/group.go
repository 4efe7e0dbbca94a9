package dp

import (
	"errors"
	"fmt"
	"math"
)

// ErrNorm reports a vector above its integer norm bound.
var ErrNorm = errors.New("norm above the bound")

// GroupSampling describes privacy of groups (providers) that live inside
// clients as virtual clients: a client takes part by a coin of its own, and inside it
// each provider by another. All providers of a client share the client's coin. Two
// adjacent worlds differ in one provider.
//
// The product of the two rates may be used only where nothing shows which clients took part. Anyone
// who sees that knows the first coin; only the second, flipped inside the client, still hides a
// provider. And the release itself shows it where a client holds several providers: an adversary
// who knows all others (which differential privacy grants) sees the sum move by the client's other
// contributions, which the noise for one provider does not hide. The published competition baseline
// with noise multiplier 0.7715 reaches epsilon 14.46 instead of 8 that way. See
// docs/privacy/proofs.md, section 8.
type GroupSampling struct {
	ClientRate   float64 // in (0, 1]
	ProviderRate float64 // in (0, 1]
	// Hidden states that neither an observer nor the releases show which clients
	// took part in which round. The second is true only where every client holds at
	// most one provider.
	Hidden bool
}

// coins returns what an accountant makes of the two: the rate of the coin that
// amplifies, and that of a coin whose outcome is seen (1: there is none). A seen coin
// does not amplify, but the rounds that it keeps a client out of cost nothing.
func (g GroupSampling) coins() (q, seen float64) {
	if !g.Hidden {
		return g.ProviderRate, g.ClientRate
	}
	q = g.ClientRate * g.ProviderRate
	if g.ClientRate < 1 && g.ProviderRate < 1 {
		q = math.Nextafter(q, 1) // the product may have been rounded down
	}
	return q, 1
}

// Rounds makes an event of count identical rounds of a continuous Gaussian of
// noise multiplier z over one provider's sensitivity, for planning: its epsilon is
// the guarantee of one provider.
func (g GroupSampling) Rounds(z float64, count int) Event {
	e := Rounds(Mechanism{SamplingRate: g.ClientRate, NoiseMultiplier: z}, count)
	e.ProviderRate, e.Hidden = g.ProviderRate, g.Hidden
	return e
}

// AddUnit adds the symbols of one unit of privacy (a provider's, or a device's whole data) to the
// device's vector, after checking that their sum of squares is at most b2. This bound per unit is
// the sensitivity; the vector of a device with several units has no bound as a whole. On an error
// sum is unchanged.
func AddUnit(sum []int32, symbols []int32, b2 int64) error {
	if len(sum) != len(symbols) {
		return fmt.Errorf("dp: a unit has %d symbols, the device's vector %d", len(symbols), len(sum))
	}
	norm2 := int64(0)
	for i, s := range symbols {
		v := int64(s)
		if norm2 += v * v; norm2 > b2 || norm2 < 0 {
			return fmt.Errorf("dp: a unit's squared norm passes %d at symbol %d: %w", b2, i, ErrNorm)
		}
		if x := int64(sum[i]) + v; x != int64(int32(x)) {
			return fmt.Errorf("dp: the device's sum overflows at symbol %d: %w", i, ErrNorm)
		}
	}
	for i, s := range symbols {
		sum[i] += s
	}
	return nil
}
