package accounting

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/starling-fl/starling/dp"
)

// Vectors by contour integration in 45-digit arithmetic (testdata/vectors.py), which
// shares no step with this package. The rows that need the precise composition
// on two million points are left to the script's reader; one of them stays.
func TestArbitraryPrecisionVectors(t *testing.T) {
	f, err := os.Open(filepath.Join("testdata", "vectors.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) < 9 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, r := range rows[1:] {
		var v [5]float64
		for i := range v {
			if v[i], err = strconv.ParseFloat(r[i], 64); err != nil {
				t.Fatal(err)
			}
		}
		q, z, rounds, delta, want := v[0], v[1], int(v[2]), v[3], v[4]
		// Coarse bounds are as rigorous as fine ones, and enough for a comparison.
		g, err := account([]dp.Event{dp.Rounds(dp.Mechanism{SamplingRate: q, NoiseMultiplier: z}, rounds)}, delta, dp.Tight, query{coarse: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%v: [%.9g, %.9g]", r[:5], g.EpsilonLower, g.Epsilon)
		if g.EpsilonLower > want*(1+1e-9) || g.Epsilon < want*(1-1e-9) || g.Epsilon > want*(1+3e-3) {
			t.Errorf("q=%v z=%v T=%d delta=%v: [%v, %v], truth %v", q, z, rounds, delta, g.EpsilonLower, g.Epsilon, want)
		}
	}
}

func TestGoldenRDP(t *testing.T) {
	for _, g := range readGoldens(t) {
		if g["kind"] != "eps" {
			continue
		}
		q, z, delta := g.num(t, "q"), g.num(t, "sigma"), g.num(t, "delta")
		p := []dp.Part{{Q: q, Z: z, Rounds: int(g.num(t, "T")), Seen: 1}}
		for _, c := range []struct{ eps, order string }{{"eps_rdp_go", "order_go"}, {"eps_rdp_opacus_orders", "order_opacus"}} {
			want, order := g.num(t, c.eps), g.num(t, c.order)
			if got := dp.RDPToEpsilon(dp.Composition{Parts: p}.Divergence(order), order, delta); math.Abs(got/want-1) > 1e-6 {
				t.Errorf("q=%v z=%v T=%d order %v: %v, golden %v", q, z, p[0].Rounds, order, got, want)
			}
		}
		// The search finds the best real order.
		want := g.num(t, "eps_rdp_real_orders")
		if got, order := renyi(t, dp.Composition{Parts: p}, delta); math.Abs(got/want-1) > 1e-6 {
			t.Errorf("q=%v z=%v T=%d: %v at order %v, golden %v", q, z, p[0].Rounds, got, order, want)
		}
	}
}

// q = 1 for any number of rounds, and one round for any q, have closed forms; the
// loss distributions must agree with them without being told.
func TestClosedForms(t *testing.T) {
	for _, c := range []struct {
		p     dp.Part
		delta float64
	}{
		{dp.Part{Q: 1, Z: 3, Rounds: 4, Seen: 1}, 1e-6}, {dp.Part{Q: 1, Z: 20, Rounds: 100, Seen: 1}, 1e-12}, {dp.Part{Q: 1, Z: 0.5, Rounds: 1, Seen: 1}, 1e-5},
		{dp.Part{Q: 0.01, Z: 1, Rounds: 1, Seen: 1}, 1e-5}, {dp.Part{Q: 0.5, Z: 1, Rounds: 1, Seen: 1}, 1e-9}, {dp.Part{Q: 1e-4, Z: 0.3, Rounds: 1, Seen: 1}, 1e-6},
		{dp.Part{Q: 0.999999, Z: 2, Rounds: 1, Seen: 1}, 1e-6},
	} {
		parts := []dp.Part{c.p}
		want, ok := closedForm(parts, c.delta)
		if !ok {
			t.Fatalf("%+v has no closed form", c.p)
		}
		rdp, _ := renyi(t, dp.Composition{Parts: parts}, c.delta)
		got, err := direction(parts, c.delta, false, rdp, 0, goal{gap: 1e-4})
		if err != nil {
			t.Fatal(err)
		}
		if got.lower > want.upper || got.upper < want.lower || got.upper > want.upper*(1+1e-4) {
			t.Errorf("%+v at %v: [%v, %v], closed form %v", c.p, c.delta, got.lower, got.upper, want)
		}
		if want.upper > rdp {
			t.Errorf("%+v at %v: closed form %v above the Rényi bound %v", c.p, c.delta, want.upper, rdp)
		}
	}
	// Balle and Wang's theorem by plain evaluation where nothing cancels.
	for _, mu := range []float64{0.5, 1, 3} {
		for _, eps := range []float64{0, 0.3, 2, 6} {
			phi := func(x float64) float64 { return upperTail(-x) }
			want := phi(mu/2-eps/mu) - math.Exp(eps)*phi(-mu/2-eps/mu)
			if got := math.Exp(gaussianLogDelta(eps, mu)); math.Abs(got/want-1) > 1e-9 {
				t.Errorf("mu=%v eps=%v: delta %v, want %v", mu, eps, got, want)
			}
		}
	}
}

// tight evaluates with gaps of 1e-3, which is all that the properties need.
func tight(t *testing.T, delta float64, events ...dp.Event) dp.Guarantee {
	t.Helper()
	g, err := account(events, delta, dp.Tight, query{coarse: true})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// More noise, fewer rounds, rarer sampling, larger delta: never a larger epsilon.
func TestMonotonicity(t *testing.T) {
	base := dp.Mechanism{SamplingRate: 0.05, NoiseMultiplier: 1.1}
	ladder := func(name string, f func(i int) dp.Guarantee) {
		last := math.Inf(1)
		for i := range 4 {
			g := f(i)
			if g.EpsilonLower > last || g.EpsilonLower > g.Epsilon || g.Epsilon > g.RDPEpsilon {
				t.Errorf("%s, step %d: %v after %v", name, i, g, last)
			}
			last = g.Epsilon
		}
	}
	ladder("noise", func(i int) dp.Guarantee {
		return tight(t, 1e-6, dp.Rounds(dp.Mechanism{SamplingRate: base.SamplingRate, NoiseMultiplier: base.NoiseMultiplier * (1 + 0.2*float64(i))}, 50))
	})
	ladder("rounds", func(i int) dp.Guarantee { return tight(t, 1e-6, dp.Rounds(base, 60-15*i)) })
	ladder("rate", func(i int) dp.Guarantee {
		return tight(t, 1e-6, dp.Rounds(dp.Mechanism{SamplingRate: base.SamplingRate / (1 + float64(i)), NoiseMultiplier: base.NoiseMultiplier}, 50))
	})
	ladder("delta", func(i int) dp.Guarantee { return tight(t, math.Pow(10, float64(2*i-9)), dp.Rounds(base, 50)) })
}

// Composition of different mechanisms: order and grouping do not matter, every
// further event costs, and nothing costs more than the worst mechanism throughout.
func TestComposition(t *testing.T) {
	a, b, c := dp.Mechanism{SamplingRate: 0.02, NoiseMultiplier: 1}, dp.Mechanism{SamplingRate: 0.1, NoiseMultiplier: 2.5}, dp.Mechanism{SamplingRate: 1, NoiseMultiplier: 12}
	whole := tight(t, 1e-7, dp.Rounds(a, 100), dp.Rounds(b, 40), dp.Rounds(c, 5))
	cut := tight(t, 1e-7, dp.Rounds(c, 2), dp.Rounds(a, 60), dp.Rounds(b, 40), dp.Rounds(c, 3), dp.Rounds(a, 40))
	if whole.Epsilon/cut.Epsilon > 1+1e-2 || cut.Epsilon/whole.Epsilon > 1+1e-2 || cut.EpsilonLower > whole.Epsilon || whole.EpsilonLower > cut.Epsilon {
		t.Errorf("grouping matters: %v and %v", whole, cut)
	}
	if whole.Rounds != 145 || whole.EpsilonLower < 0.9*whole.Epsilon {
		t.Errorf("%v", whole)
	}
	less := tight(t, 1e-7, dp.Rounds(a, 100), dp.Rounds(b, 40))
	if less.Epsilon >= whole.EpsilonLower {
		t.Errorf("five more rounds cost nothing: %v and %v", less, whole)
	}
	if g, err := Epsilon(nil, 1e-6, dp.Tight); err != nil || g.Epsilon != 0 || g.Rounds != 0 {
		t.Errorf("no events: %v, %v", g, err)
	}
	// Two halves with the same mechanism, told apart, are the whole.
	same := dp.Composition{Parts: []dp.Part{{Q: 0.05, Z: 1.1, Rounds: 20, Seen: 1}, {Q: 0.05, Z: 1.1, Rounds: 30, Seen: 1}}}
	one := dp.Composition{}
	one.Add(dp.Part{Q: 0.05, Z: 1.1, Rounds: 50, Seen: 1})
	x, err1 := bound(same, 1e-6, dp.Tight, query{})
	y, err2 := bound(one, 1e-6, dp.Tight, query{})
	if err1 != nil || err2 != nil || math.Abs(x.Epsilon/y.Epsilon-1) > 5e-5 {
		t.Errorf("two halves %v (%v), whole %v (%v)", x, err1, y, err2)
	}
}

// Discrete noise: from 20 grid units on the tight bound at z' holds, with the cost
// that the analysis says; below, integer-order Rényi.
func TestDiscreteNoise(t *testing.T) {
	event := func(b2 int64, z float64) dp.Event {
		e, err := dp.ReleaseSpec{SamplingRate: 0.05, B2: b2, NoiseMultiplier: z, NoiseScale: 1}.Event(1_000_000)
		if err != nil {
			t.Fatal(err)
		}
		e.Count = 50
		return e
	}
	plain := tight(t, 1e-6, dp.Rounds(dp.Mechanism{SamplingRate: 0.05, NoiseMultiplier: 1.1}, 50))
	wide := tight(t, 1e-6, event(90_000, 1.1)) // sigma 330
	if r := wide.Epsilon/plain.Epsilon - 1; r < -2e-3 || r > 2e-3 || wide.Accountant != dp.Tight {
		t.Errorf("sigma 330: %v, continuous %v", wide, plain)
	}
	c, err := dp.Compose([]dp.Event{event(90_000, 1.1)}, dp.View{})
	if err != nil || c.Parts[0].Z >= 1.1 || c.Parts[0].Z < 1.1*(1-2.1/(330*330)) || c.Eta <= 0 || c.Eta > 1e-20 {
		t.Errorf("sigma 330: %+v, %v", c, err)
	}
	narrow := tight(t, 1e-6, event(100, 1.1)) // sigma 11
	if narrow.Accountant != dp.RDP || narrow.RDPOrder != math.Trunc(narrow.RDPOrder) || narrow.Epsilon < plain.Epsilon {
		t.Errorf("sigma 11: %v", narrow)
	}
}

// The pessimistic pair dominates, the optimistic one is dominated: both keep the
// probabilities, and their hockey-stick curves enclose the true one.
func TestCellsEncloseTheTruth(t *testing.T) {
	for _, p := range []dp.Part{{Q: 0.01, Z: 1, Seen: 1}, {Q: 0.3, Z: 0.4, Seen: 1}, {Q: 1e-4, Z: 3, Seen: 1}, {Q: 1, Z: 2, Seen: 1}, {Q: 0.2, Z: 1, Seen: 0.3}} {
		for _, h := range []float64{0.3, 0.01} {
			c, err := newCells(p, h, 1e-18, 1e-18)
			if err != nil {
				t.Fatal(err)
			}
			for _, flip := range []bool{false, true} {
				g := newGrid(c, 1, flip)
				curve := func(mass []float64, eps float64) float64 {
					d := 0.0
					for i, m := range mass {
						if l := g.base + float64(i)*h; l > eps {
							d += m * -math.Expm1(eps-l)
						}
					}
					return d
				}
				totalP, totalO := g.infinite, 0.0
				for i := range g.pess {
					totalP += g.pess[i]
					totalO += g.opt[i]
				}
				if math.Abs(totalP-1) > 1e-9 || totalO > 1+1e-9 || totalO < 1-1e-6 {
					t.Errorf("%+v h=%v flip=%v: masses %v and %v", p, h, flip, totalP, totalO)
				}
				for eps := 0.0; eps < 2; eps += 0.037 {
					want := trueDelta(p, eps, flip)
					up, lo := curve(g.pess, eps)+g.infinite, curve(g.opt, eps)
					if up < want*(1-1e-9)-1e-15 || lo > want*(1+1e-9)+1e-15 {
						t.Errorf("%+v h=%v flip=%v eps=%v: [%v, %v], truth %v", p, h, flip, eps, lo, up, want)
					}
				}
			}
		}
	}
}

// trueDelta is delta(eps) of one round by its formula.
func trueDelta(p dp.Part, eps float64, flip bool) float64 {
	mu := 1 / p.Z
	switch {
	case p.Q == 1:
		return p.Seen * math.Exp(gaussianLogDelta(eps, mu))
	case !flip:
		inner := math.Log1p(math.Expm1(eps) / p.Q)
		return p.Seen * p.Q * math.Exp(gaussianLogDelta(inner, mu))
	}
	c := -math.Expm1(eps + math.Log1p(-p.Q))
	if c <= 0 {
		return 0
	}
	return p.Seen * c * math.Exp(gaussianLogDelta(eps+math.Log(p.Q/c), mu))
}

// Noise far too small, as a simulated cohort's is for the real one: a finite bound,
// at once.
func TestTinyNoise(t *testing.T) {
	for _, z := range []float64{0.04, 0.003} {
		g := tight(t, 1e-6, dp.Rounds(dp.Mechanism{SamplingRate: 0.1, NoiseMultiplier: z}, 200))
		if math.IsInf(g.Epsilon, 0) || g.Epsilon < 100 || g.Epsilon > 200/(2*z*z)*1.2 {
			t.Errorf("z=%v: %v", z, g)
		}
	}
}

func TestCalibrations(t *testing.T) {
	const eps, delta = 2.0, 1e-6
	for _, acct := range []dp.Accountant{dp.Tight, dp.RDP} {
		z, err := CalibrateNoise(eps, delta, 0.05, 50, acct)
		if err != nil {
			t.Fatal(err)
		}
		check := func(name string, m dp.Mechanism, rounds int, within bool) {
			e, err := epsilonOf(dp.Rounds(m, rounds), delta, acct)
			if err != nil || (e <= eps) != within {
				t.Errorf("%s %s: epsilon %v (%v), want within %v: %v", acct, name, e, err, eps, within)
			}
		}
		check("noise", dp.Mechanism{SamplingRate: 0.05, NoiseMultiplier: z}, 50, true)
		check("less noise", dp.Mechanism{SamplingRate: 0.05, NoiseMultiplier: z * (1 - 1e-4)}, 50, false)
		n, err := CalibrateRounds(eps, delta, dp.Mechanism{SamplingRate: 0.05, NoiseMultiplier: z}, acct)
		if err != nil || n != 50 {
			t.Errorf("%s: %d rounds, %v", acct, n, err)
		}
		q, err := CalibrateSamplingRate(eps, delta, z, 50, acct)
		if err != nil || math.Abs(q/0.05-1) > 1e-4 {
			t.Errorf("%s: rate %v, %v", acct, q, err)
		}
		check("rate", dp.Mechanism{SamplingRate: q, NoiseMultiplier: z}, 50, true)
		if q, err := CalibrateSamplingRate(eps, delta, 1000, 50, acct); err != nil || q != 1 {
			t.Errorf("%s: noise enough for everybody: rate %v, %v", acct, q, err)
		}
		if n, err := CalibrateRounds(0.01, delta, dp.Mechanism{SamplingRate: 1, NoiseMultiplier: 0.5}, acct); err != nil || n != 0 {
			t.Errorf("%s: not even one round: %d, %v", acct, n, err)
		}
	}
	for _, bad := range []func() error{
		func() error { _, err := CalibrateNoise(0, delta, 0.1, 10, dp.Tight); return err },
		func() error { _, err := CalibrateNoise(1, 0, 0.1, 10, dp.Tight); return err },
		func() error { _, err := CalibrateNoise(1, delta, 0, 10, dp.Tight); return err },
		func() error { _, err := CalibrateNoise(1, delta, 0.1, 0, dp.Tight); return err },
		func() error { _, err := CalibrateNoise(1, delta, 0.1, 10, "moments"); return err },
		func() error { _, err := CalibrateSamplingRate(1, delta, -1, 10, dp.Tight); return err },
		func() error {
			_, err := CalibrateRounds(1, delta, dp.Mechanism{SamplingRate: 0.1, NoiseMultiplier: math.NaN()}, dp.RDP)
			return err
		},
	} {
		if bad() == nil {
			t.Error("a calibration without meaning was answered")
		}
	}
}

// renyi is the Rényi accountant's epsilon of a composition, and the order that gives it.
func renyi(t *testing.T, c dp.Composition, delta float64) (eps, order float64) {
	t.Helper()
	g, _, err := c.RDP(delta)
	if err != nil {
		t.Fatal(err)
	}
	return g.RDPEpsilon, g.RDPOrder
}
