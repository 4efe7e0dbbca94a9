package accounting

import (
	"math"
	"testing"

	"github.com/starling-fl/starling/dp"
)

// Epsilon does not depend on the order of rounds, not even where they differ in the
// coin that is seen alone.
func TestOrderOfSeenCoins(t *testing.T) {
	often := dp.GroupSampling{ClientRate: 0.9, ProviderRate: 0.5}.Rounds(1, 20)
	seldom := dp.GroupSampling{ClientRate: 0.1, ProviderRate: 0.5}.Rounds(1, 20)
	var got []dp.Guarantee
	for _, events := range [][]dp.Event{{often, seldom}, {seldom, often}, {often, often}, {seldom, seldom}} {
		g, err := Epsilon(events, 1e-6, dp.RDP)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, g)
	}
	if math.Abs(got[0].Epsilon/got[1].Epsilon-1) > 1e-9 || !(got[3].Epsilon < got[0].Epsilon && got[0].Epsilon < got[2].Epsilon) {
		t.Errorf("often and seldom %v, seldom and often %v, often %v, seldom %v", got[0].Epsilon, got[1].Epsilon, got[2].Epsilon, got[3].Epsilon)
	}
}

// What eta adds, where it is large enough to show: 2*eta on epsilon, on delta a factor
// exp(eta).
func TestEtaIsPaid(t *testing.T) {
	const eta, delta = 0.05, 1e-6
	for _, acct := range []dp.Accountant{dp.RDP, dp.Tight} {
		c := dp.Composition{Parts: []dp.Part{{Q: 1, Z: 5, Rounds: 3, Seen: 1, Hit: dp.Hit{}}}, Rounds: 3, Adjacency: dp.AdjacencyAddRemove}
		without, err := bound(c, delta*math.Exp(-eta), acct, query{})
		if err != nil {
			t.Fatal(err)
		}
		at := without.Delta
		c.Eta = eta
		with, err := bound(c, delta, acct, query{})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(with.Epsilon-without.Epsilon-2*eta) > 1e-9 || math.Abs(with.RDPEpsilon-without.RDPEpsilon-2*eta) > 1e-9 || with.Delta != delta || at >= delta {
			t.Errorf("%s: %v with eta, %v without; Rényi %v and %v", acct, with.Epsilon, without.Epsilon, with.RDPEpsilon, without.RDPEpsilon)
		}
	}
	// Where nothing tighter is found the Rényi bound is what it is called, and eta is
	// in it once.
	c := dp.Composition{Parts: []dp.Part{{Q: 0.1, Z: 0.04, Rounds: 1, Seen: 1, Hit: dp.Hit{}}, {Q: 0.1, Z: 0.041, Rounds: 1, Seen: 1, Hit: dp.Hit{}}}, Rounds: 2, Eta: eta, Adjacency: dp.AdjacencyAddRemove}
	g, err := bound(c, delta, dp.Tight, query{})
	if err != nil || g.Accountant != dp.RDP || g.Epsilon != g.RDPEpsilon {
		t.Errorf("%v, Rényi %v, %v", g, g.RDPEpsilon, err)
	}
}

// Every question is refused at a delta that is none, and where no epsilon is finite.
func TestNoEpsilon(t *testing.T) {
	fine := []dp.Event{dp.Rounds(dp.Mechanism{SamplingRate: 0.1, NoiseMultiplier: 1}, 3)}
	for _, delta := range []float64{0, -1e-6, 1, 2, math.NaN()} {
		for name, f := range map[string]func([]dp.Event, float64, dp.Accountant) (dp.Guarantee, error){
			"delivered": Epsilon, "visible": VisibleEpsilon, "simulated": SimulatedEpsilon,
			"Rényi": func(e []dp.Event, d float64, _ dp.Accountant) (dp.Guarantee, error) { return dp.RDPEpsilon(e, d) },
		} {
			if g, err := f(fine, delta, dp.Tight); err == nil {
				t.Errorf("%s at delta %v: %v", name, delta, g)
			}
		}
	}
	if g, err := Epsilon([]dp.Event{dp.Rounds(dp.Mechanism{SamplingRate: 1, NoiseMultiplier: 1e-200}, 1)}, 1e-6, dp.RDP); err == nil {
		t.Errorf("of no noise: %v", g)
	}
}

// The tight bounds are near each other unless less is asked for.
func TestBoundsAreFine(t *testing.T) {
	c := dp.Composition{Parts: []dp.Part{{Q: 0.02, Z: 0.9, Rounds: 300, Seen: 1, Hit: dp.Hit{}}}, Rounds: 300, Sampled: true, Adjacency: dp.AdjacencyAddRemove}
	fine, err := bound(c, 1e-6, dp.Tight, query{})
	if err != nil || fine.Epsilon > fine.EpsilonLower*(1+1.5*fineGap) {
		t.Errorf("%v to %v, %v", fine.EpsilonLower, fine.Epsilon, err)
	}
	coarse, err := bound(c, 1e-6, dp.Tight, query{coarse: true})
	if err != nil || coarse.Epsilon < fine.Epsilon || coarse.Epsilon-coarse.EpsilonLower < 2*(fine.Epsilon-fine.EpsilonLower) {
		t.Errorf("a coarse one is %v to %v, %v", coarse.EpsilonLower, coarse.Epsilon, err)
	}
}
