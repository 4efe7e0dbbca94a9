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
		want               Composition
	}{
		"equal rounds": {
			events: []Event{plain(0.1, 1, 2), plain(0.1, 1, 5)},
			want:   Composition{Parts: []Part{{0.1, 1, 7, 1, Hit{}}}, Rounds: 7, Sampled: true, Adjacency: AdjacencyAddRemove},
		},
		"another coin": {
			events: []Event{plain(0.1, 1, 2), plain(0.2, 1, 5), plain(0.1, 1, 1)},
			want:   Composition{Parts: []Part{{0.1, 1, 3, 1, Hit{}}, {0.2, 1, 5, 1, Hit{}}}, Rounds: 8, Sampled: true, Adjacency: AdjacencyAddRemove},
		},
		"other noise": {
			events: []Event{plain(0.1, 1, 2), plain(0.1, 1.5, 5)},
			want:   Composition{Parts: []Part{{0.1, 1, 2, 1, Hit{}}, {0.1, 1.5, 5, 1, Hit{}}}, Rounds: 7, Sampled: true, Adjacency: AdjacencyAddRemove},
		},
		"no coin": {
			events: []Event{plain(1, 1, 2)},
			want:   Composition{Parts: []Part{{1, 1, 2, 1, Hit{}}}, Rounds: 2, Adjacency: AdjacencyAddRemove},
		},
		"another seen coin": {
			events: []Event{group(0.1, 0.5, 1, false, 2), group(0.9, 0.5, 1, false, 5)},
			want:   Composition{Parts: []Part{{0.5, 1, 2, 0.1, Hit{}}, {0.5, 1, 5, 0.9, Hit{}}}, Rounds: 7, Sampled: true, Seen: true, Adjacency: AdjacencyProvider},
		},
		"seen, and then not": {
			events: []Event{group(0.1, 0.5, 1, false, 2), group(1, 0.5, 1, false, 5)},
			want:   Composition{Parts: []Part{{0.5, 1, 2, 0.1, Hit{}}, {0.5, 1, 5, 1, Hit{}}}, Rounds: 7, Sampled: true, Seen: true, Adjacency: AdjacencyProvider},
		},
		"hidden": {
			events: []Event{group(0.5, 0.5, 1, true, 2)},
			want:   Composition{Parts: []Part{{math.Nextafter(0.25, 1), 1, 2, 1, Hit{}}}, Rounds: 2, Sampled: true, Adjacency: AdjacencyProvider},
		},
		"hidden, and somebody sees": {
			events: []Event{group(0.5, 0.25, 1, true, 2)}, visible: true,
			want: Composition{Parts: []Part{{0.25, 1, 2, 0.5, Hit{}}}, Rounds: 2, Sampled: true, Seen: true, Adjacency: AdjacencyProvider},
		},
		"seen by everybody": {
			events: []Event{plain(0.1, 1, 2)}, visible: true,
			want: Composition{Parts: []Part{{1, 1, 2, 0.1, Hit{}}}, Rounds: 2, Sampled: true, Seen: true, Adjacency: AdjacencyAddRemove},
		},
		"a simulation, as it is delivered": {
			events: []Event{simulated},
			want:   Composition{Parts: []Part{{0.5, 0.5 * (1 - 0x1p-52), 3, 1, Hit{}}}, Rounds: 3, Sampled: true, Adjacency: AdjacencyAddRemove},
		},
		"a simulation, as it is simulated": {
			events: []Event{simulated}, simulated: true,
			want: Composition{Parts: []Part{{0.01, 2, 3, 1, Hit{}}}, Rounds: 3, Sampled: true, Adjacency: AdjacencyAddRemove},
		},
	} {
		of := View{Simulated: c.simulated}
		if c.visible {
			of.Observer = Participants
		}
		got, err := Compose(c.events, of)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(got.Parts, c.want.Parts) {
			t.Errorf("%s: parts %+v, want %+v", name, got.Parts, c.want.Parts)
		}
		if got.Parts, c.want.Parts = nil, nil; got.Rounds != c.want.Rounds || got.Sampled != c.want.Sampled || got.Seen != c.want.Seen || got.Adjacency != c.want.Adjacency || got.Eta != 0 || got.IntegerOnly {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	bare := Event{Mechanism: Mechanism{SamplingRate: 1}, Count: 1, Kind: KindUnnoised, NoiseScale: 1, Dim: 3}
	for _, events := range [][]Event{{bare}, {plain(1, 1, 1), bare}, {plain(1, 1, 1), group(1, 1, 1, false, 1)}, {{}}} {
		if _, err := Compose(events, View{}); err == nil {
			t.Errorf("%+v were composed", events)
		}
	}
}

// Discrete noise: what it is accounted with (docs/privacy/proofs.md, section 4), by the formula.
func TestComposedDiscreteNoise(t *testing.T) {
	eta := 4 * math.Exp(-8*math.Pi*math.Pi)
	wide := discrete(t, ReleaseSpec{SamplingRate: 0.1, NoiseMultiplier: 1, NoiseScale: 1, B2: 900}, 1<<40)
	wide.Count = 5
	other := discrete(t, ReleaseSpec{SamplingRate: 0.1, NoiseMultiplier: 2, NoiseScale: 1, B2: 900}, 1<<39)
	c, err := Compose([]Event{wide, other}, View{})
	if err != nil {
		t.Fatal(err)
	}
	if want := 5.5 * float64(1<<40) * eta; !(c.Eta >= want && c.Eta < 1.001*want) || c.IntegerOnly {
		t.Errorf("eta %v, want %v", c.Eta, want)
	}
	for i, want := range []float64{math.Sqrt((900 - 4) / 900.), math.Sqrt((3600 - 4) / 900.)} {
		if z := c.Parts[i].Z; !(z <= want && z > want*(1-1e-14)) {
			t.Errorf("accounted with z = %v, want %v and no more", z, want)
		}
	}
	// A larger population's noise is that of a larger cohort.
	scaled := discrete(t, ReleaseSpec{SamplingRate: 0.5, NoiseMultiplier: 1, NoiseScale: 0.5, SimulatedRate: 0.01, B2: 6400}, 10)
	for simulated, want := range map[bool]float64{false: 0.5 * math.Sqrt((1600-4)/1600.), true: math.Sqrt((6400 - 4) / 6400.)} {
		c, err := Compose([]Event{scaled}, View{Simulated: simulated})
		if err != nil || !(c.Parts[0].Z <= want && c.Parts[0].Z > want*(1-1e-13)) {
			t.Errorf("simulated %v: z = %v, want %v; %v", simulated, c.Parts[0].Z, want, err)
		}
	}
	// From 20 grid units on, and not below.
	for b2, integer := range map[int64]bool{399: true, 400: false} {
		e := discrete(t, ReleaseSpec{SamplingRate: 1, NoiseMultiplier: 1, NoiseScale: 1, B2: b2}, 10)
		c, err := Compose([]Event{e}, View{})
		if err != nil || c.IntegerOnly != integer || (c.Eta == 0) != integer {
			t.Errorf("sigma^2 = %d: %+v, %v", b2, c, err)
		}
		g, err := RDPEpsilon([]Event{e}, 1e-6)
		if err != nil || integer && g.RDPOrder != math.Trunc(g.RDPOrder) {
			t.Errorf("sigma^2 = %d: %v at order %v, %v", b2, g, g.RDPOrder, err)
		}
	}
}

// Noise on integers is accounted at integer orders alone.
func TestIntegerOrders(t *testing.T) {
	for _, p := range []Part{{0.05, 0.7, 10, 1, Hit{}}, {1, 3, 1, 1, Hit{}}, {0.3, 0.4, 1, 1, Hit{}}} {
		if _, order := rdpEpsilon([]Part{p}, 1e-6, true); order != math.Trunc(order) || order < 2 {
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
	for _, p := range []Part{{0.1, 1, 1, 0.3, Hit{}}, {1, 2, 1, 0.01, Hit{}}, {0.5, 0.8, 1, 0.9, Hit{}}} {
		for _, a := range []float64{1.5, 2, 7, 12.5} {
			all := p
			all.Seen = 1
			want := math.Log1p(p.Seen*math.Expm1((a-1)*all.renyi(a))) / (a - 1)
			if got := p.renyi(a); math.Abs(got/want-1) > 1e-9 {
				t.Errorf("%+v at order %v: %v, want %v", p, a, got, want)
			}
		}
	}
}
