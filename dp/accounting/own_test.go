package accounting

import (
	"errors"
	"testing"

	"github.com/starling-fl/starling/dp"
)

// TestOwnEpsilon: what own noise is worth with trust in the coordinator and without,
// against lab/bench/dp/own.py.
func TestOwnEpsilon(t *testing.T) {
	rounds := func(o dp.OwnNoise, z float64, n uint32) []dp.Event {
		e := dp.Rounds(dp.Mechanism{SamplingRate: 0.01, NoiseMultiplier: z}, int(n))
		e.Own = o
		return []dp.Event{e}
	}
	near := func(name string, f func([]dp.Event, float64, dp.Accountant) (dp.Guarantee, error), events []dp.Event, want float64) {
		t.Helper()
		for _, acct := range []dp.Accountant{dp.Tight, dp.RDP} {
			g, err := f(events, 1e-6, acct)
			if err != nil || g.Epsilon < want*(1-1e-4) || acct == dp.Tight && g.Epsilon > want*(1+5e-4) || g.Epsilon > want*1.4 {
				t.Errorf("%s, %s: %v (%v), want %v", name, acct, g.Epsilon, err, want)
			}
			if g.Adjacency != dp.ZeroOut(dp.AdjacencyAddRemove) {
				t.Errorf("%s: adjacency %q", name, g.Adjacency)
			}
		}
	}
	hidden := dp.OwnNoise{Multiplier: 0.2, Honest: 20, Apart: 21}
	near("trusted, coins hidden", Epsilon, rounds(hidden, 0.83751, 200), 1.99999)
	near("trusted, coins seen", VisibleEpsilon, rounds(hidden, 0.83751, 200), 16.4527)
	near("trusted, noise shows the coins", Epsilon, rounds(dp.OwnNoise{Multiplier: 0.84, Honest: 1, Apart: 1, Seen: true}, 0.83751, 200), 16.4527)
	near("untrusted, 1 round", UntrustedEpsilon, rounds(hidden, 0.83751, 1), 5.3978)
	near("untrusted, 200 rounds", UntrustedEpsilon, rounds(hidden, 0.83751, 200), 191.523)
	near("untrusted, alone", UntrustedEpsilon, rounds(dp.OwnNoise{Multiplier: 0.2, Honest: 20, Apart: 1, Seen: false}, 0.83751, 200), 2835.150)
	near("untrusted, silo", UntrustedEpsilon, rounds(dp.OwnNoise{Multiplier: 0.84, Honest: 1, Apart: 1, Seen: true}, 0.83751, 1), 5.9663)

	// The discrete noise costs next to nothing more; one event without own noise, everything.
	discrete := ownEvent(t, dp.OwnNoise{Multiplier: 0.05, Honest: 700, Apart: 21, Seen: false})
	g, err := UntrustedEpsilon([]dp.Event{discrete}, 1e-6, dp.Tight)
	like, _ := UntrustedEpsilon([]dp.Event{func() dp.Event { e := dp.Rounds(discrete.Mechanism, 1); e.Own = discrete.Own; return e }()}, 1e-6, dp.Tight)
	if err != nil || g.Epsilon < like.Epsilon || g.Epsilon > like.Epsilon*1.001 {
		t.Errorf("discrete %v (%v), continuous %v", g.Epsilon, err, like.Epsilon)
	}
	if _, err := UntrustedEpsilon([]dp.Event{discrete, testEvent(t, 2)}, 1e-6, dp.Tight); !errors.Is(err, dp.ErrNoBound) {
		t.Errorf("central noise: %v", err)
	}
	// Providers' own coins are flipped in the device, and hide them from the coordinator too.
	coin := discrete
	coin.ProviderRate = 0.1
	if with, err := UntrustedEpsilon([]dp.Event{coin}, 1e-6, dp.Tight); err != nil || with.Epsilon >= g.Epsilon {
		t.Errorf("with a provider's coin %v (%v), without %v", with.Epsilon, err, g.Epsilon)
	}
}
