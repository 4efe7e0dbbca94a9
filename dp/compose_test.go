package dp

import (
	"math"
	"math/big"
	"slices"
	"testing"
)

// discrete is an event as Release makes it.
func discrete(t *testing.T, r ReleaseSpec, dim int) Event {
	t.Helper()
	e, err := r.Event(dim)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// What an accountant sees of a ledger: rounds are merged only where all of coin, noise
// and seen coin are equal, and every question (delivered, visible, simulated) has parts
// of its own.
func TestComposedParts(t *testing.T) {
	plain := func(q, z float64, n int) Event { return Rounds(Mechanism{SamplingRate: q, NoiseMultiplier: z}, n) }
	group := func(client, provider, z float64, hidden bool, n int) Event {
		return GroupSampling{client, provider, hidden}.Rounds(z, n)
	}
	simulated := plain(0.5, 2, 3)
	simulated.NoiseScale, simulated.SimulatedRate = 0.25, 0.01
	for name, c := range map[string]struct {
		events             []Event
		visible, simulated bool
		want               composition
	}{
		"equal rounds": {
			events: []Event{plain(0.1, 1, 2), plain(0.1, 1, 5)},
			want:   composition{parts: []part{{0.1, 1, 7, 1, hit{}}}, rounds: 7, sampled: true, adjacency: AdjacencyAddRemove},
		},
		"another coin": {
			events: []Event{plain(0.1, 1, 2), plain(0.2, 1, 5), plain(0.1, 1, 1)},
			want:   composition{parts: []part{{0.1, 1, 3, 1, hit{}}, {0.2, 1, 5, 1, hit{}}}, rounds: 8, sampled: true, adjacency: AdjacencyAddRemove},
		},
		"other noise": {
			events: []Event{plain(0.1, 1, 2), plain(0.1, 1.5, 5)},
			want:   composition{parts: []part{{0.1, 1, 2, 1, hit{}}, {0.1, 1.5, 5, 1, hit{}}}, rounds: 7, sampled: true, adjacency: AdjacencyAddRemove},
		},
		"no coin": {
			events: []Event{plain(1, 1, 2)},
			want:   composition{parts: []part{{1, 1, 2, 1, hit{}}}, rounds: 2, adjacency: AdjacencyAddRemove},
		},
		"another seen coin": {
			events: []Event{group(0.1, 0.5, 1, false, 2), group(0.9, 0.5, 1, false, 5)},
			want:   composition{parts: []part{{0.5, 1, 2, 0.1, hit{}}, {0.5, 1, 5, 0.9, hit{}}}, rounds: 7, sampled: true, seen: true, adjacency: AdjacencyProvider},
		},
		"seen, and then not": {
			events: []Event{group(0.1, 0.5, 1, false, 2), group(1, 0.5, 1, false, 5)},
			want:   composition{parts: []part{{0.5, 1, 2, 0.1, hit{}}, {0.5, 1, 5, 1, hit{}}}, rounds: 7, sampled: true, seen: true, adjacency: AdjacencyProvider},
		},
		"hidden": {
			events: []Event{group(0.5, 0.5, 1, true, 2)},
			want:   composition{parts: []part{{math.Nextafter(0.25, 1), 1, 2, 1, hit{}}}, rounds: 2, sampled: true, adjacency: AdjacencyProvider},
		},
		"hidden, and somebody sees": {
			events: []Event{group(0.5, 0.25, 1, true, 2)}, visible: true,
			want: composition{parts: []part{{0.25, 1, 2, 0.5, hit{}}}, rounds: 2, sampled: true, seen: true, adjacency: AdjacencyProvider},
		},
		"seen by everybody": {
			events: []Event{plain(0.1, 1, 2)}, visible: true,
			want: composition{parts: []part{{1, 1, 2, 0.1, hit{}}}, rounds: 2, sampled: true, seen: true, adjacency: AdjacencyAddRemove},
		},
		"a simulation, as it is delivered": {
			events: []Event{simulated},
			want:   composition{parts: []part{{0.5, 0.5 * (1 - 0x1p-52), 3, 1, hit{}}}, rounds: 3, sampled: true, adjacency: AdjacencyAddRemove},
		},
		"a simulation, as it is simulated": {
			events: []Event{simulated}, simulated: true,
			want: composition{parts: []part{{0.01, 2, 3, 1, hit{}}}, rounds: 3, sampled: true, adjacency: AdjacencyAddRemove},
		},
	} {
		got, err := compose(c.events, query{visible: c.visible, simulated: c.simulated})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(got.parts, c.want.parts) {
			t.Errorf("%s: parts %+v, want %+v", name, got.parts, c.want.parts)
		}
		if got.parts, c.want.parts = nil, nil; got.rounds != c.want.rounds || got.sampled != c.want.sampled || got.seen != c.want.seen || got.adjacency != c.want.adjacency || got.eta != 0 || got.integerOnly {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	bare := Event{Mechanism: Mechanism{SamplingRate: 1}, Count: 1, Kind: KindUnnoised, NoiseScale: 1, Dim: 3}
	for _, events := range [][]Event{{bare}, {plain(1, 1, 1), bare}, {plain(1, 1, 1), group(1, 1, 1, false, 1)}, {{}}} {
		if _, err := compose(events, query{}); err == nil {
			t.Errorf("%+v were composed", events)
		}
	}
}

// Epsilon does not depend on the order of rounds, not even where they differ in the
// coin that is seen alone.
func TestOrderOfSeenCoins(t *testing.T) {
	often := GroupSampling{ClientRate: 0.9, ProviderRate: 0.5}.Rounds(1, 20)
	seldom := GroupSampling{ClientRate: 0.1, ProviderRate: 0.5}.Rounds(1, 20)
	var got []Guarantee
	for _, events := range [][]Event{{often, seldom}, {seldom, often}, {often, often}, {seldom, seldom}} {
		g, err := Epsilon(events, 1e-6, RDP)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, g)
	}
	if math.Abs(got[0].Epsilon/got[1].Epsilon-1) > 1e-9 || !(got[3].Epsilon < got[0].Epsilon && got[0].Epsilon < got[2].Epsilon) {
		t.Errorf("often and seldom %v, seldom and often %v, often %v, seldom %v", got[0].Epsilon, got[1].Epsilon, got[2].Epsilon, got[3].Epsilon)
	}
}

// Discrete noise: what it is accounted with (docs/PRIVACY.md, section 4), by the formula.
func TestComposedDiscreteNoise(t *testing.T) {
	eta := 4 * math.Exp(-8*math.Pi*math.Pi)
	wide := discrete(t, ReleaseSpec{SamplingRate: 0.1, NoiseMultiplier: 1, NoiseScale: 1, B2: 900}, 1<<40)
	wide.Count = 5
	other := discrete(t, ReleaseSpec{SamplingRate: 0.1, NoiseMultiplier: 2, NoiseScale: 1, B2: 900}, 1<<39)
	c, err := compose([]Event{wide, other}, query{})
	if err != nil {
		t.Fatal(err)
	}
	if want := 5.5 * float64(1<<40) * eta; !(c.eta >= want && c.eta < 1.001*want) || c.integerOnly {
		t.Errorf("eta %v, want %v", c.eta, want)
	}
	for i, want := range []float64{math.Sqrt((900 - 4) / 900.), math.Sqrt((3600 - 4) / 900.)} {
		if z := c.parts[i].z; !(z <= want && z > want*(1-1e-14)) {
			t.Errorf("accounted with z = %v, want %v and no more", z, want)
		}
	}
	// A larger population's noise is that of a larger cohort.
	scaled := discrete(t, ReleaseSpec{SamplingRate: 0.5, NoiseMultiplier: 1, NoiseScale: 0.5, SimulatedRate: 0.01, B2: 6400}, 10)
	for simulated, want := range map[bool]float64{false: 0.5 * math.Sqrt((1600-4)/1600.), true: math.Sqrt((6400 - 4) / 6400.)} {
		c, err := compose([]Event{scaled}, query{simulated: simulated})
		if err != nil || !(c.parts[0].z <= want && c.parts[0].z > want*(1-1e-13)) {
			t.Errorf("simulated %v: z = %v, want %v; %v", simulated, c.parts[0].z, want, err)
		}
	}
	// From 20 grid units on, and not below.
	for b2, integer := range map[int64]bool{399: true, 400: false} {
		e := discrete(t, ReleaseSpec{SamplingRate: 1, NoiseMultiplier: 1, NoiseScale: 1, B2: b2}, 10)
		c, err := compose([]Event{e}, query{})
		if err != nil || c.integerOnly != integer || (c.eta == 0) != integer {
			t.Errorf("sigma^2 = %d: %+v, %v", b2, c, err)
		}
		g, err := Epsilon([]Event{e}, 1e-6, Tight)
		if err != nil || (g.Accountant == RDP) != integer || integer && g.RDPOrder != math.Trunc(g.RDPOrder) {
			t.Errorf("sigma^2 = %d: %v at order %v, %v", b2, g, g.RDPOrder, err)
		}
	}
}

// What eta adds, where it is large enough to show: 2*eta on epsilon, on delta a factor
// exp(eta).
func TestEtaIsPaid(t *testing.T) {
	const eta, delta = 0.05, 1e-6
	for _, acct := range []Accountant{RDP, Tight} {
		c := composition{parts: []part{{1, 5, 3, 1, hit{}}}, rounds: 3, adjacency: AdjacencyAddRemove}
		without, err := c.account(delta*math.Exp(-eta), acct, query{})
		if err != nil {
			t.Fatal(err)
		}
		at := without.Delta
		c.eta = eta
		with, err := c.account(delta, acct, query{})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(with.Epsilon-without.Epsilon-2*eta) > 1e-9 || math.Abs(with.RDPEpsilon-without.RDPEpsilon-2*eta) > 1e-9 || with.Delta != delta || at >= delta {
			t.Errorf("%s: %v with eta, %v without; Rényi %v and %v", acct, with.Epsilon, without.Epsilon, with.RDPEpsilon, without.RDPEpsilon)
		}
	}
	// Where nothing tighter is found the Rényi bound is what it is called, and eta is
	// in it once.
	c := composition{parts: []part{{0.1, 0.04, 1, 1, hit{}}, {0.1, 0.041, 1, 1, hit{}}}, rounds: 2, eta: eta, adjacency: AdjacencyAddRemove}
	g, err := c.account(delta, Tight, query{})
	if err != nil || g.Accountant != RDP || g.Epsilon != g.RDPEpsilon {
		t.Errorf("%v, Rényi %v, %v", g, g.RDPEpsilon, err)
	}
}

// Every question is refused at a delta that is none, and where no epsilon is finite.
func TestNoEpsilon(t *testing.T) {
	fine := []Event{Rounds(Mechanism{SamplingRate: 0.1, NoiseMultiplier: 1}, 3)}
	for _, delta := range []float64{0, -1e-6, 1, 2, math.NaN()} {
		for name, f := range map[string]func([]Event, float64, Accountant) (Guarantee, error){
			"delivered": Epsilon, "visible": VisibleEpsilon, "simulated": SimulatedEpsilon,
			"Rényi": func(e []Event, d float64, _ Accountant) (Guarantee, error) { return RDPEpsilon(e, d) },
		} {
			if g, err := f(fine, delta, Tight); err == nil {
				t.Errorf("%s at delta %v: %v", name, delta, g)
			}
		}
	}
	if g, err := Epsilon([]Event{Rounds(Mechanism{SamplingRate: 1, NoiseMultiplier: 1e-200}, 1)}, 1e-6, RDP); err == nil {
		t.Errorf("of no noise: %v", g)
	}
}

// The tight bounds are near each other unless less is asked for.
func TestBoundsAreFine(t *testing.T) {
	c := composition{parts: []part{{0.02, 0.9, 300, 1, hit{}}}, rounds: 300, sampled: true, adjacency: AdjacencyAddRemove}
	fine, err := c.account(1e-6, Tight, query{})
	if err != nil || fine.Epsilon > fine.EpsilonLower*(1+1.5*fineGap) {
		t.Errorf("%v to %v, %v", fine.EpsilonLower, fine.Epsilon, err)
	}
	coarse, err := c.account(1e-6, Tight, query{coarse: true})
	if err != nil || coarse.Epsilon < fine.Epsilon || coarse.Epsilon-coarse.EpsilonLower < 2*(fine.Epsilon-fine.EpsilonLower) {
		t.Errorf("a coarse one is %v to %v, %v", coarse.EpsilonLower, coarse.Epsilon, err)
	}
}

// Noise on integers is accounted at integer orders alone.
func TestIntegerOrders(t *testing.T) {
	for _, p := range []part{{0.05, 0.7, 10, 1, hit{}}, {1, 3, 1, 1, hit{}}, {0.3, 0.4, 1, 1, hit{}}} {
		if _, order := rdpEpsilon([]part{p}, 1e-6, true); order != math.Trunc(order) || order < 2 {
			t.Errorf("%+v: order %v", p, order)
		}
	}
}

// Where both coins are hidden their product is what is accounted, never less.
func TestHiddenProduct(t *testing.T) {
	below := 0
	for i := 1; i < 60; i++ {
		a, b := float64(i)/61, 1/(1+float64(i)/7)
		q, seen := GroupSampling{a, b, true}.coins()
		exact := new(big.Float).SetPrec(200).Mul(new(big.Float).SetPrec(200).SetFloat64(a), new(big.Float).SetPrec(200).SetFloat64(b))
		if seen != 1 || exact.Cmp(new(big.Float).SetFloat64(q)) > 0 || q > a*b*(1+0x1p-51) {
			t.Errorf("%v * %v: %v, seen %v", a, b, q, seen)
		}
		if exact.Cmp(new(big.Float).SetFloat64(a*b)) > 0 {
			below++
		}
	}
	if below < 10 {
		t.Errorf("%d products are rounded down: the test says little", below)
	}
	if err := (Event{Mechanism: Mechanism{1, 1}, Count: 1, Kind: KindRelease, NoiseScale: 1, Hidden: true}).Check(); err == nil {
		t.Error("hidden participation without providers")
	}
}

// With a coin that is seen a round's moment is that without it, weighed: A = 1 - s + s*A0.
func TestRenyiOfASeenCoin(t *testing.T) {
	for _, p := range []part{{0.1, 1, 1, 0.3, hit{}}, {1, 2, 1, 0.01, hit{}}, {0.5, 0.8, 1, 0.9, hit{}}} {
		for _, a := range []float64{1.5, 2, 7, 12.5} {
			all := p
			all.seen = 1
			want := math.Log1p(p.seen*math.Expm1((a-1)*all.renyi(a))) / (a - 1)
			if got := p.renyi(a); math.Abs(got/want-1) > 1e-9 {
				t.Errorf("%+v at order %v: %v, want %v", p, a, got, want)
			}
		}
	}
}
