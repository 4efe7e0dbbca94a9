package accounting

import (
	"errors"
	"math"
	"testing"

	"github.com/starling-fl/starling/dp"
)

// The competition's baseline, noise multiplier 0.771484375 as printed: client rate 0.2, ten rounds, all of a client's
// providers in; eps 8 was claimed with the client's coin as amplification.
func TestVisibleParticipationVoidsTheProduct(t *testing.T) {
	const z, rounds, delta = 0.771484375, 10, 1e-5
	hidden := dp.GroupSampling{ClientRate: 0.2, ProviderRate: 1, Hidden: true}
	claimed, err := Epsilon([]dp.Event{hidden.Rounds(z, rounds)}, delta, dp.Tight)
	if err != nil {
		t.Fatal(err)
	}
	if claimed.Epsilon > 8 || claimed.Epsilon < 7.98 || claimed.Sampling != dp.SamplingPoisson || claimed.Adjacency != dp.AdjacencyProvider {
		t.Errorf("hidden: %v, want just below 8", claimed)
	}
	seen := dp.GroupSampling{ClientRate: 0.2, ProviderRate: 1}
	really, err := Epsilon([]dp.Event{seen.Rounds(z, rounds)}, delta, dp.Tight)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(really.Epsilon-14.4607) > 0.0002 || really.Sampling != dp.SamplingVisible || really.Adjacency != dp.AdjacencyProvider {
		t.Errorf("visible: %v, want 14.4607", really)
	}
	// Whoever sees who took part of a job that claims they are hidden has the same.
	shown, err := VisibleEpsilon([]dp.Event{hidden.Rounds(z, rounds)}, delta, dp.Tight)
	if err != nil || shown.Epsilon != really.Epsilon {
		t.Errorf("%v, %v, want %v", shown, err, really)
	}
}

// Nobody sees who takes part, and still the product of the rates is no bound: a
// client's other providers, known to the adversary, give the client away. The exact
// hockey-stick divergences of one round, by quadrature: with the rest of the client
// at distance rest along the provider's own direction (1), the worlds are
//
//	P = (1-c) N(0, z^2) + c ((1-p) N(rest, z^2) + p N(rest+1, z^2))
//	Q = (1-c) N(0, z^2) + c N(rest, z^2).
func TestTheReleaseShowsWhoTookPart(t *testing.T) {
	const z, client, provider, delta = 0.8, 0.2, 0.5, 1e-5
	density := func(x, at float64) float64 {
		return math.Exp(-(x-at)*(x-at)/(2*z*z)) / (z * math.Sqrt(2*math.Pi))
	}
	divergence := func(eps, rest float64) float64 { // the larger direction
		remove, add := 0.0, 0.0
		const h = 1e-3
		for x := -10.0; x < rest+12; x += h {
			q := (1-client)*density(x, 0) + client*density(x, rest)
			p := q + client*provider*(density(x, rest+1)-density(x, rest))
			remove += h * max(0, p-math.Exp(eps)*q)
			add += h * max(0, q-math.Exp(eps)*p)
		}
		return max(remove, add)
	}
	epsilon := func(hidden bool) float64 {
		g, err := Epsilon([]dp.Event{dp.GroupSampling{ClientRate: client, ProviderRate: provider, Hidden: hidden}.Rounds(z, 1)}, delta, dp.Tight)
		if err != nil {
			t.Fatal(err)
		}
		return g.Epsilon
	}
	product, seen := epsilon(true), epsilon(false)
	if alone := divergence(product, 0); alone > delta*(1+1e-3) || alone < delta*(1-1e-2) {
		t.Errorf("a client with one provider: delta %v at the product's epsilon %v, want %v", alone, product, delta)
	}
	if several := divergence(product, 12); several < 2*delta {
		t.Errorf("a client with thirteen providers: delta %v at the product's epsilon %v: it would do", several, product)
	}
	for _, rest := range []float64{-12, -1, 0, 0.5, 1, 2, 5, 12, 40} {
		if d := divergence(seen, rest); d > delta*(1+1e-3) {
			t.Errorf("rest at %v: delta %v at the seen coin's epsilon %v", rest, d, seen)
		}
	}
	if far := divergence(seen, 40); far < delta*(1-1e-2) {
		t.Errorf("the seen coin's epsilon is not reached: delta %v", far)
	}
}

// A provider's own coin is flipped inside its device: it amplifies in either case.
func TestProviderCoins(t *testing.T) {
	const z, rounds, delta = 1.1, 50, 1e-6
	for _, c := range []struct {
		g    dp.GroupSampling
		like dp.Event // a plain sampled Gaussian with the same cost
	}{
		{dp.GroupSampling{ClientRate: 1, ProviderRate: 0.05, Hidden: false}, dp.Rounds(dp.Mechanism{SamplingRate: 0.05, NoiseMultiplier: z}, rounds)},
		{dp.GroupSampling{ClientRate: 1, ProviderRate: 0.05, Hidden: true}, dp.Rounds(dp.Mechanism{SamplingRate: 0.05, NoiseMultiplier: z}, rounds)},
		{dp.GroupSampling{ClientRate: 0.25, ProviderRate: 0.2, Hidden: true}, dp.Rounds(dp.Mechanism{SamplingRate: 0.25 * 0.2, NoiseMultiplier: z}, rounds)},
	} {
		for _, acct := range []dp.Accountant{dp.Tight, dp.RDP} {
			got, err := Epsilon([]dp.Event{c.g.Rounds(z, rounds)}, delta, acct)
			if err != nil {
				t.Fatal(err)
			}
			want, err := Epsilon([]dp.Event{c.like}, delta, acct)
			if err != nil || math.Abs(got.Epsilon/want.Epsilon-1) > 1e-9 {
				t.Errorf("%+v: %v, want %v, %v", c.g, got, want, err)
			}
		}
	}
	// A seen coin lies between no coin at all and a hidden one.
	order := []dp.GroupSampling{{ClientRate: 0.25, ProviderRate: 0.2, Hidden: true}, {ClientRate: 0.25, ProviderRate: 0.2, Hidden: false}, {ClientRate: 1, ProviderRate: 0.2, Hidden: false}}
	last := 0.0
	for _, g := range order {
		e, err := Epsilon([]dp.Event{g.Rounds(z, rounds)}, delta, dp.Tight)
		if err != nil || e.Epsilon <= last*1.01 {
			t.Errorf("%+v: %v after %v, %v", g, e, last, err)
		}
		last = e.Epsilon
	}
	// Calibrated as it is accounted.
	g := dp.GroupSampling{ClientRate: 0.25, ProviderRate: 0.2, Hidden: false}
	noise, err := CalibrateEvent(2, delta, dp.Tight, dp.Public, func(z float64) dp.Event { return g.Rounds(z, rounds) })
	if err != nil {
		t.Fatal(err)
	}
	e, err := Epsilon([]dp.Event{g.Rounds(noise, rounds)}, delta, dp.Tight)
	if err != nil || e.Epsilon > 2 || e.Epsilon < 2*(1-1e-4) {
		t.Errorf("calibrated to %v: %v, %v", noise, e, err)
	}
	if n, err := CalibrateCount(2, delta, dp.Tight, func(n int) dp.Event { return g.Rounds(noise, n) }); err != nil || n < rounds || n > rounds+1 {
		t.Errorf("%d rounds at the noise that was calibrated for %d, %v", n, rounds, err)
	}
}

// A mixture over the seen coin, by its definition: delta averaged over the
// binomial number of rounds that the client was in.
func TestSeenCoinByDefinition(t *testing.T) {
	const z, rounds, delta, client, provider = 0.9, 5, 1e-6, 0.3, 0.1
	g, err := Epsilon([]dp.Event{dp.GroupSampling{ClientRate: client, ProviderRate: provider, Hidden: false}.Rounds(z, rounds)}, delta, dp.Tight)
	if err != nil {
		t.Fatal(err)
	}
	mean := func(eps float64) (lo, hi float64) {
		for k := 1; k <= rounds; k++ {
			w := math.Exp(lchoose(rounds, k) + float64(k)*math.Log(client) + float64(rounds-k)*math.Log1p(-client))
			c := dp.Composition{}
			c.Add(dp.Part{Q: provider, Z: z, Rounds: k, Seen: 1})
			// The deltas of k rounds are found from their epsilons by bisection.
			a, b := math.Log(1e-30), 0.0
			for range 40 {
				m := (a + b) / 2
				e, err := bound(c, math.Exp(m), dp.Tight, query{})
				if err != nil {
					t.Fatal(err)
				}
				if e.Epsilon > eps {
					a = m
				} else {
					b = m
				}
			}
			lo, hi = lo+w*math.Exp(a)*(1-1e-3), hi+w*math.Exp(b)*(1+1e-3)
		}
		return lo, hi
	}
	if lo, hi := mean(g.Epsilon); lo > delta*1.002 || hi < delta*0.995 {
		t.Errorf("at %v the average delta is in [%v, %v], want %v", g, lo, hi, delta)
	}
}

func TestUnitsDoNotMix(t *testing.T) {
	device := dp.Rounds(dp.Mechanism{SamplingRate: 0.1, NoiseMultiplier: 1}, 3)
	provider := dp.GroupSampling{ClientRate: 0.1, ProviderRate: 0.5, Hidden: false}.Rounds(1, 3)
	if g, err := Epsilon([]dp.Event{device, provider}, 1e-6, dp.Tight); !errors.Is(err, dp.ErrEvent) {
		t.Errorf("%v, %v", g, err)
	}
	for _, bad := range []func(*dp.Event){
		func(e *dp.Event) { e.ProviderRate = -0.1 },
		func(e *dp.Event) { e.ProviderRate = 1.1 },
		func(e *dp.Event) { e.ProviderRate = math.NaN() },
		func(e *dp.Event) { e.ProviderRate = math.Copysign(0, -1) },
		func(e *dp.Event) { e.ProviderRate, e.Hidden = 0, true },
	} {
		e := provider
		bad(&e)
		if err := e.Check(); !errors.Is(err, dp.ErrEvent) {
			t.Errorf("%+v: %v", e, err)
		}
	}
}

// Both numbers of the design: eps 2 at T = 100, 200, 2000 with everybody's
// participation seen.
func TestVisibleGoldens(t *testing.T) {
	for _, c := range []struct {
		z      float64
		rounds int
		want   float64
	}{{0.801816, 100, 13.7}, {0.837510, 200, 16.5}, {1.245736, 2000, 27.8}} {
		g, err := VisibleEpsilon([]dp.Event{dp.Rounds(dp.Mechanism{SamplingRate: 0.01, NoiseMultiplier: c.z}, c.rounds)}, 1e-6, dp.Tight)
		if err != nil {
			t.Fatal(err)
		}
		// The same by the definition: an average over Binomial(T, q) participations.
		f := func(eps float64) float64 {
			sum := 0.0
			for k := 1; k <= c.rounds; k++ {
				l := lchoose(c.rounds, k) + float64(k)*math.Log(0.01) + float64(c.rounds-k)*math.Log1p(-0.01)
				sum += math.Exp(l + gaussianLogDelta(eps, math.Sqrt(float64(k))/c.z))
			}
			return sum
		}
		if lo, hi := f(g.EpsilonLower), f(g.Epsilon); lo < 1e-6 || hi > 1e-6 || g.Epsilon/g.EpsilonLower > 1+1e-4 {
			t.Errorf("T=%d: [%v, %v] has delta [%v, %v], want around 1e-6", c.rounds, g.EpsilonLower, g.Epsilon, lo, hi)
		}
		if math.Abs(g.Epsilon-c.want) > 0.06 {
			t.Errorf("T=%d: %v, want %v", c.rounds, g, c.want)
		}
	}
}
