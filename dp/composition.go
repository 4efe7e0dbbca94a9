package dp

import (
	"fmt"
	"math"
	"slices"
)

// Part is a number of identical rounds as an accountant sees them.
type Part struct {
	Q      float64 // rate of the coin that amplifies, in (0, 1]
	Z      float64 // noise multiplier, above 0
	Rounds int     // at least 1
	// Seen is the probability of a second coin, which the adversary sees: with it
	// the round is one of a sampled Gaussian of rate Q, without it the round costs this
	// member nothing. 1 if there is no such coin.
	Seen float64
	Hit  Hit
}

// Hit is that something other than the sum shows how a member's coin fell: see
// [Event.Hit]. Which rounds are hit hangs on nothing that the member does, so that a
// round is the mixture of one without hits and, with probability Prob, of one of a
// sampled Gaussian of rate Q behind a coin of rate Seen that is seen.
type Hit struct{ Prob, Q, Seen float64 }

// Weighted is a round without hits and how often it happens.
type Weighted struct {
	Part
	Weight float64 // in (0, 1]; those of one round sum to 1
}

// Mixed returns the rounds without hits that a round is a mixture of.
func (p Part) Mixed() []Weighted {
	plain, shown := p, p
	plain.Hit, shown.Hit = Hit{}, Hit{}
	if p.Hit.Prob == 0 {
		return []Weighted{{plain, 1}}
	}
	shown.Q, shown.Seen = p.Hit.Q, p.Hit.Seen
	return []Weighted{{plain, 1 - p.Hit.Prob}, {shown, p.Hit.Prob}}
}

// minDiscreteSigma2: from 20 grid units on, noise on the integers is within
// exp(eta) of a post-processed continuous Gaussian of variance sigma^2 - 4.
const minDiscreteSigma2 = 400

// discreteEta is eta of one coordinate: 4*exp(-8 pi^2), a little above.
var discreteEta = 4.001 * math.Exp(-8*math.Pi*math.Pi)

// Composition is a list of events, merged: what an accountant composes. See [Compose].
type Composition struct {
	Parts       []Part  // no two alike but for their rounds
	Rounds      int     // of all parts
	Eta         float64 // sum over rounds of the discrete noise's log-ratio bound
	IntegerOnly bool    // some noise is too narrow for the continuous bound
	Sampled     bool    // some coin is below 1
	Seen        bool    // some coin below 1 is seen
	ZeroOut     bool    // absent is to be there and send zeros: whether a device is there shows
	Observer    Observer
	Coalition   float64 // share of the devices that collude, of a coalition's
	// Leaving bounds what it adds to delta if a device leaves rounds for reasons in its own data: if
	// its shard is then one short, the others' sum is not released. LeavesUnknown: the addition is
	// not known.
	Leaving       float64
	LeavesUnknown bool
	Simulated     bool   // the members are those of the simulated population
	Adjacency     string // what two adjacent worlds differ in
	// Separation is the least of the banded rounds', if all rounds are; else 0.
	Separation int
}

// View says against whom events are accounted. The zero value is the public.
type View struct {
	Observer  Observer // "" is Public; Untrusting counts the noise of honest devices alone
	Simulated bool     // the members are those of the simulated population
}

// Compose merges events as one view has them. The error is ErrEvent for an event that is invalid or
// about another unit of privacy than those before it, ErrUnnoised for one without noise, and
// ErrNoBound where the view needs devices' own noise and an event has none.
func Compose(events []Event, of View) (Composition, error) {
	c := Composition{Simulated: of.Simulated, Observer: of.Observer}
	if c.Observer == "" {
		c.Observer = Public
	}
	banded, bandedRounds := 0.0, 0 // squared distance of two worlds by banded rounds together, over the variance
	for i, e := range events {
		if err := e.Check(); err != nil {
			return c, fmt.Errorf("dp: event %d of %d: %w", i, len(events), err)
		}
		if e.Kind == KindUnnoised {
			return c, fmt.Errorf("dp: event %d of %d: %w", i, len(events), ErrUnnoised)
		}
		if of.Observer == Untrusting {
			var err error
			if e, err = e.apart(); err != nil {
				return c, fmt.Errorf("dp: event %d of %d: %w", i, len(events), err)
			}
		}
		p := Part{Q: e.SamplingRate, Z: e.NoiseMultiplier * e.NoiseScale * (1 - 0x1p-52), Rounds: int(e.Count), Seen: 1}
		if e.NoiseScale == 1 {
			p.Z = e.NoiseMultiplier
		}
		v, hits, coalition := e.Sigma2.Float(), e.Hit, e.Coalition
		if of.Simulated && e.SimulatedRate != 0 {
			// A coalition is one of those who really take part.
			p.Q, p.Z, hits, coalition = e.SimulatedRate, e.NoiseMultiplier, e.SimulatedHit, Coalition{}
			v = v / (e.NoiseScale * e.NoiseScale) * (1 - 0x1p-50) // the noise of that population
		}
		if e.B2 > 0 {
			if e.Banded != (Banded{}) {
				v = math.Ldexp(v, 2*coefficientBits) // as it is drawn, and the sensitivity with it
			}
			if v >= minDiscreteSigma2 {
				shrink := math.Sqrt((v - 4) / v)
				p.Z *= shrink * (1 - 0x1p-51)
				c.Eta += float64(e.Count) * float64(e.Dim) * discreteEta
			} else {
				c.IntegerOnly = true
			}
			if own, err := e.Own.Variance(e.B2); err == nil {
				c.Eta += float64(e.Count) * float64(e.Dim) * sumRatio(own.Float())
			}
		}
		// A ledger's rounds wait for a quorum, and thresholds count who is there: both show whether
		// a device is. So does its coin to those who see it, and a round without coins.
		// A provider's does not, where nothing counts who is there.
		deployed := e.B2 > 0 || p.Q == 1 || of.Observer == Participants
		c.ZeroOut = c.ZeroOut || deployed && e.ProviderRate == 0 || hits > 0 || e.Own.Multiplier > 0 || e.Fixed
		c.LeavesUnknown = c.LeavesUnknown || p.Q == 1 || of.Observer == Untrusting
		c.Leaving += float64(e.Count) * p.Q * hits
		adjacency := AdjacencyAddRemove
		hidden := GroupSampling{p.Q, 1, !e.Own.Seen}
		if e.ProviderRate != 0 {
			adjacency = AdjacencyProvider
			hidden = GroupSampling{p.Q, e.ProviderRate, e.Hidden}
		}
		shown := hidden
		shown.Hidden = false
		shows := c.Observer.shows(hits, coalition)
		if of.Observer == Participants || shows >= 1 {
			hidden = shown
		}
		if of.Observer == Colluding {
			c.Coalition = max(c.Coalition, coalition.Share)
		}
		p.Q, p.Seen = hidden.coins()
		if shows > 0 && hidden.Hidden { // a coin that is seen anyhow cannot be shown
			p.Hit.Prob = shows
			p.Hit.Q, p.Hit.Seen = shown.coins()
			c.ZeroOut = true
		}
		if i > 0 && adjacency != c.Adjacency {
			return c, fmt.Errorf("dp: event %d of %d is about %s, those before it about %s: they have no common guarantee: %w", i, len(events), adjacency, c.Adjacency, ErrEvent)
		}
		c.Adjacency = adjacency
		if e.Banded != (Banded{}) {
			banded, bandedRounds = banded+e.Banded.charge(e, p.Z), bandedRounds+p.Rounds
			c.Separation = leastSeparation(c.Separation, e.Banded)
			continue
		}
		c.Add(p)
	}
	if banded > 0 { // rows that share noise are one Gaussian, however their releases were adapted
		banded *= 1 + float64(len(events)+8)*0x1p-52 // for the rounding of sums
		c.Add(Part{Q: 1, Z: 1 / math.Sqrt(banded), Rounds: 1, Seen: 1})
		c.Rounds--
	}
	c.Rounds += bandedRounds
	if c.Rounds > bandedRounds {
		c.Separation = 0
	}
	return c, nil
}

// Add merges a part with an equal one.
func (c *Composition) Add(p Part) {
	c.Rounds += p.Rounds
	c.Sampled = c.Sampled || p.Q < 1 || p.Seen < 1
	c.Seen = c.Seen || p.Seen < 1
	at := slices.IndexFunc(c.Parts, func(x Part) bool {
		return x.Q == p.Q && x.Z == p.Z && x.Seen == p.Seen && x.Hit == p.Hit
	})
	if at >= 0 {
		c.Parts[at].Rounds += p.Rounds
		return
	}
	c.Parts = append(c.Parts, p)
}

// RDPEpsilon composes the events and returns the guarantee at delta by the Rényi accountant: an upper
// bound, whatever the order of the events and however later ones depend on earlier results. It is
// what devices check a job by; package accounting has tighter bounds.
func RDPEpsilon(events []Event, delta float64) (Guarantee, error) {
	if _, err := CheckDelta(delta, 0); err != nil {
		return Guarantee{}, err
	}
	c, err := Compose(events, View{})
	if err != nil {
		return Guarantee{}, err
	}
	g, _, err := c.RDP(delta)
	return g, err
}

// RDP bounds epsilon of a composition at delta by Rényi divergences; inner is the delta that is left
// for a bound of the parts alone where the noise is discrete. It is an error if no finite epsilon holds.
func (c Composition) RDP(delta float64) (g Guarantee, inner float64, err error) {
	g = Guarantee{
		Delta:      delta,
		Adjacency:  c.Adjacency,
		Accountant: RDP,
		Sampling:   SamplingNone,
		Rounds:     c.Rounds,
		Simulated:  c.Simulated,
		Observer:   c.Observer,
		Coalition:  c.Coalition,
	}
	switch {
	case c.LeavesUnknown:
		g.Assumes = assumesStaying
	case c.Leaving > 0:
		g.Assumes, g.LeavingDelta = assumesStaying, min(1, c.Leaving)
	}
	if c.ZeroOut {
		g.Adjacency = ZeroOut(c.Adjacency)
	}
	if c.Separation > 0 {
		g.Sampling = fmt.Sprintf("%s, a device at most once in %d rounds", SamplingNone, c.Separation)
	}
	if c.Sampled {
		g.Sampling = SamplingPoisson
		switch {
		case c.Seen:
			g.Sampling = SamplingVisible
		case c.Coalition > 0:
			g.Sampling = SamplingCoalition
		}
	}
	if len(c.Parts) == 0 {
		g.Adjacency = AdjacencyAddRemove
		return g, delta, nil
	}
	// exp(eta) closeness of every round turns (eps, d) into (eps + 2 eta, d*exp(eta)).
	inner = delta * math.Exp(-c.Eta) * (1 - 0x1p-51)
	if c.Eta == 0 {
		inner = delta
	}
	eps, order := rdpEpsilon(c.Parts, inner, c.IntegerOnly)
	if math.IsInf(eps, 1) || math.IsNaN(eps) {
		return Guarantee{}, 0, fmt.Errorf("dp: no finite epsilon at delta %v over %d rounds", delta, c.Rounds)
	}
	g.RDPEpsilon, g.RDPOrder = eps+2*c.Eta, order
	g.Epsilon = g.RDPEpsilon
	return g, inner, nil
}
