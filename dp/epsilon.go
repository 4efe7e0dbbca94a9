package dp

import (
	"fmt"
	"math"
	"slices"
)

// part is a number of identical rounds as an accountant sees them.
type part struct {
	q, z   float64
	rounds int
	// seen is the probability of a second coin, which the adversary sees: with it
	// the round is one of a sampled Gaussian of rate q, without it the round costs this
	// member nothing. 1 if there is no such coin.
	seen float64
	hit  hit
}

// hit is that something other than the sum shows how a member's coin fell: see
// [Event.Hit]. Which rounds are hit hangs on nothing that the member does, so that a
// round is the mixture of one without hits and, with probability prob, of one of a
// sampled Gaussian of rate q behind a coin of rate seen that is seen.
type hit struct{ prob, q, seen float64 }

// weighted is a round without hits and how often it happens.
type weighted struct {
	part
	weight float64
}

// mixed are the rounds without hits that a round is a mixture of.
func (p part) mixed() []weighted {
	plain, shown := p, p
	plain.hit, shown.hit = hit{}, hit{}
	if p.hit.prob == 0 {
		return []weighted{{plain, 1}}
	}
	shown.q, shown.seen = p.hit.q, p.hit.seen
	return []weighted{{plain, 1 - p.hit.prob}, {shown, p.hit.prob}}
}

// minDiscreteSigma2: from 20 grid units on, noise on the integers is within
// exp(eta) of a post-processed continuous Gaussian of variance sigma^2 - 4.
const minDiscreteSigma2 = 400

// discreteEta is eta of one coordinate: 4*exp(-8 pi^2), a little above.
var discreteEta = 4.001 * math.Exp(-8*math.Pi*math.Pi)

// composition is a list of events, merged.
type composition struct {
	parts       []part
	rounds      int
	eta         float64 // sum over rounds of the discrete noise's log-ratio bound
	integerOnly bool    // some noise is too narrow for the continuous bound
	sampled     bool    // some coin is below 1
	seen        bool    // some coin below 1 is seen
	zeroOut     bool    // absent is to be there and send zeros: some coin may be shown, devices add noise themselves, or cohorts are of a fixed size
	adjacency   string
}

func compose(events []Event, want query) (composition, error) {
	var c composition
	for i, e := range events {
		if err := e.Check(); err != nil {
			return c, fmt.Errorf("dp: event %d of %d: %w", i, len(events), err)
		}
		if e.Kind == KindUnnoised {
			return c, fmt.Errorf("dp: event %d of %d: %w", i, len(events), ErrUnnoised)
		}
		if want.untrusted {
			var err error
			if e, err = e.apart(); err != nil {
				return c, fmt.Errorf("dp: event %d of %d: %w", i, len(events), err)
			}
		}
		p := part{q: e.SamplingRate, z: e.NoiseMultiplier * e.NoiseScale * (1 - 0x1p-52), rounds: int(e.Count), seen: 1}
		if e.NoiseScale == 1 {
			p.z = e.NoiseMultiplier
		}
		v, hits := e.Sigma2.Float(), e.Hit
		if want.simulated && e.SimulatedRate != 0 {
			p.q, p.z, hits = e.SimulatedRate, e.NoiseMultiplier, 0 // that population's shards are as large as it takes
			v = v / (e.NoiseScale * e.NoiseScale) * (1 - 0x1p-50)  // the noise of that population
		}
		if e.B2 > 0 {
			if v >= minDiscreteSigma2 {
				shrink := math.Sqrt((v - 4) / v)
				p.z *= shrink * (1 - 0x1p-51)
				c.eta += float64(e.Count) * float64(e.Dim) * discreteEta
			} else {
				c.integerOnly = true
			}
			if own, err := e.Own.Variance(e.B2); err == nil {
				c.eta += float64(e.Count) * float64(e.Dim) * sumRatio(own.Float())
			}
		}
		c.zeroOut = c.zeroOut || e.Own.Multiplier > 0 || e.Fixed
		adjacency := AdjacencyAddRemove
		hidden := GroupSampling{p.q, 1, !e.Own.Seen}
		if e.ProviderRate != 0 {
			adjacency = AdjacencyProvider
			hidden = GroupSampling{p.q, e.ProviderRate, e.Hidden}
		}
		shown := hidden
		shown.Hidden = false
		if want.visible {
			hidden = shown
		}
		p.q, p.seen = hidden.coins()
		if hits > 0 && hidden.Hidden { // a coin that is seen anyhow cannot be shown
			p.hit.prob = hits
			p.hit.q, p.hit.seen = shown.coins()
			c.zeroOut = true
		}
		if i > 0 && adjacency != c.adjacency {
			return c, fmt.Errorf("dp: event %d of %d is about %s, those before it about %s: they have no common guarantee: %w", i, len(events), adjacency, c.adjacency, ErrEvent)
		}
		c.adjacency = adjacency
		c.add(p)
	}
	return c, nil
}

// add merges a part with an equal one.
func (c *composition) add(p part) {
	c.rounds += p.rounds
	c.sampled = c.sampled || p.q < 1 || p.seen < 1
	c.seen = c.seen || p.seen < 1
	at := slices.IndexFunc(c.parts, func(x part) bool {
		return x.q == p.q && x.z == p.z && x.seen == p.seen && x.hit == p.hit
	})
	if at >= 0 {
		c.parts[at].rounds += p.rounds
		return
	}
	c.parts = append(c.parts, p)
}

// Epsilon composes the events and returns the guarantee at delta: an upper
// bound, whatever the order of the events and however later ones depend on
// earlier results. No events give epsilon 0. Delivered noise is accounted; see
// [SimulatedEpsilon] for a simulated population and [VisibleEpsilon] for
// adversaries who see who took part.
//
// Tight needs noise of at least 20 grid units in every event with discrete
// noise; where one has less, the result is the Rényi bound at integer orders and
// its Accountant says RDP.
//
// Events about providers and events about devices have no common guarantee:
// together they are ErrEvent.
func Epsilon(events []Event, delta float64, acct Accountant) (Guarantee, error) {
	return account(events, delta, acct, query{})
}

// RDPEpsilon is Epsilon by the Rényi accountant. It is a function of its own so that a browser's
// program need not link the other accountant.
func RDPEpsilon(events []Event, delta float64) (Guarantee, error) {
	if _, err := CheckDelta(delta, 0); err != nil {
		return Guarantee{}, err
	}
	c, err := compose(events, query{})
	if err != nil {
		return Guarantee{}, err
	}
	g, _, err := c.rdp(delta, query{})
	return g, err
}

// VisibleEpsilon is Epsilon against an adversary who sees in which rounds each
// member took part, as shard peers and network observers do.
func VisibleEpsilon(events []Event, delta float64, acct Accountant) (Guarantee, error) {
	return account(events, delta, acct, query{visible: true})
}

// SimulatedEpsilon is the epsilon that the simulated population would have had. It protects nobody:
// those who really took part have Epsilon.
func SimulatedEpsilon(events []Event, delta float64, acct Accountant) (Guarantee, error) {
	return account(events, delta, acct, query{simulated: true})
}

// query says which of the epsilons of some events is wanted.
type query struct {
	visible, simulated bool
	untrusted          bool    // against the coordinator
	coarse             bool    // a bound that may be 2e-3 too high will do
	near               float64 // and a rough one where it is far from this; 0: nowhere
}

func account(events []Event, delta float64, acct Accountant, want query) (Guarantee, error) {
	if _, err := CheckDelta(delta, 0); err != nil {
		return Guarantee{}, err
	}
	acct, err := ParseAccountant(string(acct))
	if err != nil {
		return Guarantee{}, err
	}
	c, err := compose(events, want)
	if err != nil {
		return Guarantee{}, err
	}
	return c.account(delta, acct, want)
}

// account bounds epsilon of a composition.
func (c composition) account(delta float64, acct Accountant, want query) (Guarantee, error) {
	g, inner, err := c.rdp(delta, want)
	if err != nil {
		return Guarantee{}, err
	}
	if acct == RDP || c.integerOnly || len(c.parts) == 0 {
		if len(c.parts) == 0 {
			g.Accountant = acct
		}
		return g, nil
	}
	gap := fineGap
	if want.coarse {
		gap = coarseGap
	}
	eps := g.Epsilon
	b, err := tightEpsilon(c.parts, inner, eps, goal{gap, want.near})
	if err != nil {
		return Guarantee{}, err
	}
	g.Accountant = acct
	g.EpsilonLower = b.lower
	g.Epsilon = min(b.upper+2*c.eta, eps)
	if g.Epsilon == eps && b.lower < eps { // nothing tighter was found
		g.Accountant = RDP
	}
	return g, nil
}

// rdp bounds epsilon of a composition by Rényi divergences; inner is the delta
// that is left for it where the noise is discrete.
func (c composition) rdp(delta float64, want query) (g Guarantee, inner float64, err error) {
	g = Guarantee{
		Delta:      delta,
		Adjacency:  c.adjacency,
		Accountant: RDP,
		Sampling:   SamplingNone,
		Rounds:     c.rounds,
		Simulated:  want.simulated,
	}
	if c.zeroOut {
		g.Adjacency = ZeroOut(c.adjacency)
	}
	if c.sampled {
		g.Sampling = SamplingPoisson
		if c.seen {
			g.Sampling = SamplingVisible
		}
	}
	if len(c.parts) == 0 {
		g.Adjacency = AdjacencyAddRemove
		return g, delta, nil
	}
	// exp(eta) closeness of every round turns (eps, d) into (eps + 2 eta, d*exp(eta)).
	inner = delta * math.Exp(-c.eta) * (1 - 0x1p-51)
	if c.eta == 0 {
		inner = delta
	}
	eps, order := rdpEpsilon(c.parts, inner, c.integerOnly)
	if math.IsInf(eps, 1) || math.IsNaN(eps) {
		return Guarantee{}, 0, fmt.Errorf("dp: no finite epsilon at delta %v over %d rounds", delta, c.rounds)
	}
	g.RDPEpsilon, g.RDPOrder = eps+2*c.eta, order
	g.Epsilon = g.RDPEpsilon
	return g, inner, nil
}
