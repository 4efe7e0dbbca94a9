package accounting

import "github.com/starling-fl/starling/dp"

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
func Epsilon(events []dp.Event, delta float64, acct dp.Accountant) (dp.Guarantee, error) {
	return account(events, delta, acct, query{})
}

// VisibleEpsilon is Epsilon against an adversary who sees in which rounds each member took part, as
// an observer of the network does.
func VisibleEpsilon(events []dp.Event, delta float64, acct dp.Accountant) (dp.Guarantee, error) {
	return account(events, delta, acct, query{View: dp.View{Observer: dp.Participants}})
}

// CoalitionEpsilon is Epsilon against the share of the devices that each event takes to collude:
// see [dp.Coalition].
func CoalitionEpsilon(events []dp.Event, delta float64, acct dp.Accountant) (dp.Guarantee, error) {
	return account(events, delta, acct, query{View: dp.View{Observer: dp.Colluding}})
}

// Against returns the accountant of an observer: Epsilon, CoalitionEpsilon or VisibleEpsilon.
func Against(o dp.Observer) func([]dp.Event, float64, dp.Accountant) (dp.Guarantee, error) {
	switch o {
	case dp.Colluding:
		return CoalitionEpsilon
	case dp.Participants:
		return VisibleEpsilon
	}
	return Epsilon
}

// SimulatedEpsilon is the epsilon that the simulated population would have had. It protects nobody:
// those who really took part have Epsilon.
func SimulatedEpsilon(events []dp.Event, delta float64, acct dp.Accountant) (dp.Guarantee, error) {
	return account(events, delta, acct, query{View: dp.View{Simulated: true}})
}

// query says which of the epsilons of some events is wanted.
type query struct {
	dp.View
	coarse bool    // a bound that may be 2e-3 too high will do
	near   float64 // and a rough one where it is far from this; 0: nowhere
}

func account(events []dp.Event, delta float64, acct dp.Accountant, want query) (dp.Guarantee, error) {
	if _, err := dp.CheckDelta(delta, 0); err != nil {
		return dp.Guarantee{}, err
	}
	acct, err := dp.ParseAccountant(string(acct))
	if err != nil {
		return dp.Guarantee{}, err
	}
	c, err := dp.Compose(events, want.View)
	if err != nil {
		return dp.Guarantee{}, err
	}
	return bound(c, delta, acct, want)
}

// bound bounds epsilon of a composition.
func bound(c dp.Composition, delta float64, acct dp.Accountant, want query) (dp.Guarantee, error) {
	g, inner, err := c.RDP(delta)
	if err != nil {
		return dp.Guarantee{}, err
	}
	if acct == dp.RDP || c.IntegerOnly || len(c.Parts) == 0 {
		if len(c.Parts) == 0 {
			g.Accountant = acct
		}
		return g, nil
	}
	gap := fineGap
	if want.coarse {
		gap = coarseGap
	}
	eps := g.Epsilon
	b, err := tightEpsilon(c.Parts, inner, eps, goal{gap, want.near})
	if err != nil {
		return dp.Guarantee{}, err
	}
	g.Accountant = acct
	g.EpsilonLower = b.lower
	g.Epsilon = min(b.upper+2*c.Eta, eps)
	if g.Epsilon == eps && b.lower < eps { // nothing tighter was found
		g.Accountant = dp.RDP
	}
	return g, nil
}

// UntrustedEpsilon is the guarantee against the coordinator itself, which may add no noise, choose
// who takes part, and see the sum of every shard. It counts only the noise of the honest devices of
// one shard, for a device that was in every round. The error is ErrNoBound if devices added none.
func UntrustedEpsilon(events []dp.Event, delta float64, acct dp.Accountant) (dp.Guarantee, error) {
	return account(events, delta, acct, query{View: dp.View{Observer: dp.Untrusting}})
}
