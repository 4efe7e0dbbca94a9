package dp

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// The competition's baseline, noise multiplier 0.771484375 as printed: client rate 0.2, ten rounds, all of a client's
// providers in; eps 8 was claimed with the client's coin as amplification.
func TestVisibleParticipationVoidsTheProduct(t *testing.T) {
	const z, rounds, delta = 0.771484375, 10, 1e-5
	hidden := GroupSampling{ClientRate: 0.2, ProviderRate: 1, Hidden: true}
	claimed, err := Epsilon([]Event{hidden.Rounds(z, rounds)}, delta, Tight)
	if err != nil {
		t.Fatal(err)
	}
	if claimed.Epsilon > 8 || claimed.Epsilon < 7.98 || claimed.Sampling != SamplingPoisson || claimed.Adjacency != AdjacencyProvider {
		t.Errorf("hidden: %v, want just below 8", claimed)
	}
	seen := GroupSampling{ClientRate: 0.2, ProviderRate: 1}
	really, err := Epsilon([]Event{seen.Rounds(z, rounds)}, delta, Tight)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(really.Epsilon-14.4607) > 0.0002 || really.Sampling != SamplingVisible || really.Adjacency != AdjacencyProvider {
		t.Errorf("visible: %v, want 14.4607", really)
	}
	// Whoever sees who took part of a job that claims they are hidden has the same.
	shown, err := VisibleEpsilon([]Event{hidden.Rounds(z, rounds)}, delta, Tight)
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
		g, err := Epsilon([]Event{GroupSampling{client, provider, hidden}.Rounds(z, 1)}, delta, Tight)
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
		g    GroupSampling
		like Event // a plain sampled Gaussian with the same cost
	}{
		{GroupSampling{1, 0.05, false}, Rounds(Mechanism{0.05, z}, rounds)},
		{GroupSampling{1, 0.05, true}, Rounds(Mechanism{0.05, z}, rounds)},
		{GroupSampling{0.25, 0.2, true}, Rounds(Mechanism{0.25 * 0.2, z}, rounds)},
	} {
		for _, acct := range []Accountant{Tight, RDP} {
			got, err := Epsilon([]Event{c.g.Rounds(z, rounds)}, delta, acct)
			if err != nil {
				t.Fatal(err)
			}
			want, err := Epsilon([]Event{c.like}, delta, acct)
			if err != nil || math.Abs(got.Epsilon/want.Epsilon-1) > 1e-9 {
				t.Errorf("%+v: %v, want %v, %v", c.g, got, want, err)
			}
		}
	}
	// A seen coin lies between no coin at all and a hidden one.
	order := []GroupSampling{{0.25, 0.2, true}, {0.25, 0.2, false}, {1, 0.2, false}}
	last := 0.0
	for _, g := range order {
		e, err := Epsilon([]Event{g.Rounds(z, rounds)}, delta, Tight)
		if err != nil || e.Epsilon <= last*1.01 {
			t.Errorf("%+v: %v after %v, %v", g, e, last, err)
		}
		last = e.Epsilon
	}
	// Calibrated as it is accounted.
	g := GroupSampling{0.25, 0.2, false}
	noise, err := g.CalibrateNoise(2, delta, rounds, Tight)
	if err != nil {
		t.Fatal(err)
	}
	e, err := Epsilon([]Event{g.Rounds(noise, rounds)}, delta, Tight)
	if err != nil || e.Epsilon > 2 || e.Epsilon < 2*(1-1e-4) {
		t.Errorf("calibrated to %v: %v, %v", noise, e, err)
	}
	if n, err := g.CalibrateRounds(2, delta, noise, Tight); err != nil || n < rounds || n > rounds+1 {
		t.Errorf("%d rounds at the noise that was calibrated for %d, %v", n, rounds, err)
	}
	if _, err := (GroupSampling{ClientRate: 1}).CalibrateRounds(2, delta, 1, Tight); err == nil {
		t.Error("a provider rate of 0 was calibrated")
	}
	if _, err := (GroupSampling{ClientRate: 1}).CalibrateNoise(2, delta, rounds, Tight); err == nil {
		t.Error("a provider rate of 0 was calibrated")
	}
}

// A mixture over the seen coin, by its definition: delta averaged over the
// binomial number of rounds that the client was in.
func TestSeenCoinByDefinition(t *testing.T) {
	const z, rounds, delta, client, provider = 0.9, 5, 1e-6, 0.3, 0.1
	g, err := Epsilon([]Event{GroupSampling{client, provider, false}.Rounds(z, rounds)}, delta, Tight)
	if err != nil {
		t.Fatal(err)
	}
	mean := func(eps float64) (lo, hi float64) {
		for k := 1; k <= rounds; k++ {
			w := math.Exp(lchoose(rounds, k) + float64(k)*math.Log(client) + float64(rounds-k)*math.Log1p(-client))
			c := composition{}
			c.add(part{q: provider, z: z, rounds: k, seen: 1})
			// The deltas of k rounds are found from their epsilons by bisection.
			a, b := math.Log(1e-30), 0.0
			for range 40 {
				m := (a + b) / 2
				e, err := c.account(math.Exp(m), Tight, query{})
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
	device := Rounds(Mechanism{0.1, 1}, 3)
	provider := GroupSampling{0.1, 0.5, false}.Rounds(1, 3)
	if g, err := Epsilon([]Event{device, provider}, 1e-6, Tight); !errors.Is(err, ErrEvent) {
		t.Errorf("%v, %v", g, err)
	}
	for _, bad := range []func(*Event){
		func(e *Event) { e.ProviderRate = -0.1 },
		func(e *Event) { e.ProviderRate = 1.1 },
		func(e *Event) { e.ProviderRate = math.NaN() },
		func(e *Event) { e.ProviderRate = math.Copysign(0, -1) },
		func(e *Event) { e.ProviderRate, e.Hidden = 0, true },
	} {
		e := provider
		bad(&e)
		if err := e.Check(); !errors.Is(err, ErrEvent) {
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
		g, err := VisibleEpsilon([]Event{Rounds(Mechanism{0.01, c.z}, c.rounds)}, 1e-6, Tight)
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

func lchoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

func TestAddUnitHoldsEachUnitToItsOwnBound(t *testing.T) {
	sum := make([]int32, 3)
	for range 5 { // five providers at the bound: the client is far above it
		if err := AddUnit(sum, []int32{3, -4, 0}, 25); err != nil {
			t.Fatal(err)
		}
	}
	if sum[0] != 15 || sum[1] != -20 || sum[2] != 0 {
		t.Errorf("sum %v", sum)
	}
	if err := AddUnit(sum, []int32{3, -4, 1}, 25); !errors.Is(err, ErrNorm) || sum[0] != 15 {
		t.Errorf("a provider above its bound: %v, sum %v", err, sum)
	}
	if err := AddUnit([]int32{math.MaxInt32}, []int32{1}, 25); !errors.Is(err, ErrNorm) {
		t.Errorf("overflow: %v", err)
	}
	if err := AddUnit(sum, []int32{1}, 25); err == nil {
		t.Error("a shorter vector was added")
	}
}

func TestSplitNoise(t *testing.T) {
	for _, z := range []float64{0.3, 1, 7} {
		for _, sb := range []float64{z, 5 * z, 100 * z} {
			zd, err := SplitNoise(z, sb)
			if err != nil {
				t.Fatal(err)
			}
			// Both mechanisms together are one Gaussian of multiplier z.
			if got := 1 / math.Sqrt(1/(zd*zd)+1/(4*sb*sb)); math.Abs(got/z-1) > 1e-12 {
				t.Errorf("z=%v sigma_b=%v: the parts compose to %v", z, sb, got)
			}
			const b2 = 1_000_000
			for _, q := range []int32{1, 12, 1 << 20} {
				c, err := NewCountCode(b2, q, z, sb)
				if err != nil {
					t.Fatal(err)
				}
				sigma := z * math.Sqrt(float64(b2+c.B2()))
				if noise := sigma / (2 * math.Sqrt(float64(c.B2()))); noise > sb*(1+1e-12) {
					t.Errorf("z=%v sigma_b=%v: %+v leaves count noise %v", z, sb, c, noise)
				}
				if c.Symbol < 1 || c.Symbol > q || c.Coordinates < 1 {
					t.Errorf("%+v with symbols up to %d", c, q)
				}
				// Symbols are whole numbers: a little more than asked for is spent.
				if own := sigma / math.Sqrt(b2); own < zd*(1-1e-12) || own/zd-1 > 3/math.Sqrt(float64(c.B2())) {
					t.Errorf("z=%v sigma_b=%v: the update gets %v, SplitNoise says %v", z, sb, own, zd)
				}
			}
		}
		if _, err := SplitNoise(z, z/2); err == nil {
			t.Error("a count that takes the whole budget was accepted")
		}
	}
	if c, err := NewCountCode(1<<60, 1, 1, 1); err == nil {
		t.Errorf("%+v for a weight of 2^58 in ternary symbols", c)
	}
	for _, bad := range []int32{0, -1} {
		if c, err := NewCountCode(100, bad, 1, 1); err == nil {
			t.Errorf("%+v for a largest symbol of %d", c, bad)
		}
	}
}

// The count of devices that are in, whatever the symbols.
func TestCountCode(t *testing.T) {
	for _, c := range []CountCode{{1, 1}, {3, 12}, {40, 7}} {
		sum, dst := make([]int64, c.Coordinates), make([]int32, c.Coordinates)
		want := 0.0
		for i := range 10 {
			norm2 := int64(0)
			c.Encode(dst, i < 7)
			for j, s := range dst {
				sum[j] += int64(s)
				norm2 += int64(s) * int64(s)
			}
			if norm2 != c.B2() {
				t.Fatalf("%+v: squared norm %d, B2 %d", c, norm2, c.B2())
			}
			if want--; i < 7 {
				want += 2
			}
		}
		if got := c.Decode(sum); got != want/2 {
			t.Errorf("%+v: count %v, want %v", c, got, want/2)
		}
	}
	if got := (CountCode{}).Decode(nil); got != 0 {
		t.Errorf("no count is %v", got)
	}
}

// Noise in the count must not move the place where the norm settles: of devices
// with norms spread over (0, 10), and a count as noisy as a small cohort's.
func TestAdaptiveClipUnderNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const devices, noise, rounds = 24, 0.42, 4000
	for _, quantile := range []float64{0.1, 0.5, 0.8, 0.9} {
		a := AdaptiveClip{Quantile: quantile, Rate: 0.05, Min: 1e-3, Max: 1e3}
		c, within := 10*quantile, 0.0
		for range rounds {
			b := min(c/10, 1)
			within += b / rounds
			var err error
			if c, err = a.Next(c, devices*(b-0.5+noise*rng.NormFloat64()), devices); err != nil {
				t.Fatal(err)
			}
		}
		if math.Abs(within-quantile) > 0.05 {
			t.Errorf("quantile %v: %.3f of the devices are within the norm on average, which ends at %.4g", quantile, within, c)
		}
	}
}

// The step is the paper's formula, whatever the noise; the range ends it.
func TestAdaptiveClipStep(t *testing.T) {
	a := AdaptiveClip{Quantile: 0.9, Rate: 0.2, Min: 1e-3, Max: 1e3}
	for count, want := range map[float64]float64{
		5: math.Exp(-0.2 * (1 - 0.9)), -5: math.Exp(0.2 * 0.9), 20: math.Exp(-0.2 * (2.5 - 0.9)), -20: math.Exp(0.2 * (1.5 + 0.9)),
		1e9: 1e-3, -1e9: 1e3,
	} {
		if got, err := a.Next(1, count, 10); err != nil || math.Abs(got-want) > 1e-12 {
			t.Errorf("a count of %v moves the norm by %v, %v, want %v", count, got, err, want)
		}
	}
}

// The rule settles where the wanted fraction of norms is within the clip norm.
func TestAdaptiveClipFindsTheQuantile(t *testing.T) {
	a := AdaptiveClip{Quantile: 0.7, Rate: 0.2, Min: 1e-3, Max: 1e3}
	c := 100.0
	norms := make([]float64, 100) // 0.1, 0.2, ..., 10
	for i := range norms {
		norms[i] = float64(i+1) / 10
	}
	for range 300 {
		count := 0.0
		for _, n := range norms {
			if n <= c {
				count += 0.5
			} else {
				count -= 0.5
			}
		}
		var err error
		if c, err = a.Next(c, count, float64(len(norms))); err != nil {
			t.Fatal(err)
		}
	}
	if math.Abs(c-7) > 0.2 {
		t.Errorf("clip norm %v, want about 7", c)
	}
	one, err := a.Next(2, 0.25*100, 100) // b = 0.75
	if want := 2 * math.Exp(-0.2*0.05); err != nil || math.Abs(one-want) > 1e-12 {
		t.Errorf("one step gives %v, %v, want %v", one, err, want)
	}
	if c, _ := a.Next(1e3, -1e9, 100); c != 1e3 {
		t.Errorf("noise carried the norm to %v", c)
	}
	for _, bad := range []AdaptiveClip{{}, {Quantile: 1, Rate: 1, Min: 1, Max: 1}, {Quantile: 0.5, Rate: 0.2, Min: 2, Max: 1}} {
		if _, err := bad.Next(1, 0, 10); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
	if _, err := a.Next(1, math.NaN(), 10); err == nil {
		t.Error("a NaN count was accepted")
	}
}
