package jobs

import (
	"math"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
)

// renyi is the epsilon at delta of sampled Gaussian rounds by whole orders, computed here: of each
// round the moment of its mixture, shown with probability shown.
func renyi(delta float64, rounds ...func(a float64) float64) float64 {
	best := math.Inf(1)
	for a := 2.0; a <= 40; a++ { // beyond, a moment is no float64
		sum := 0.0
		for _, r := range rounds {
			sum += math.Log(r(a)) / (a - 1)
		}
		best = min(best, sum+math.Log((a-1)/a)-(math.Log(delta)+math.Log(a))/(a-1))
	}
	return best
}

// moment is E[(P/Q)^a] of a round of rate q and noise z, whose coin is shown with a probability.
func moment(q, z, shown float64) func(a float64) float64 {
	return func(a float64) float64 {
		hidden, choose := 0.0, 1.0
		for k := 0.0; k <= a; k++ {
			hidden += choose * math.Pow(q, k) * math.Pow(1-q, a-k) * math.Exp(k*(k-1)/(2*z*z))
			choose *= (a - k) / (k + 1)
		}
		return (1-shown)*hidden + shown*(1-q+q*math.Exp(a*(a-1)/(2*z*z)))
	}
}

func spends(epsilon, delta float64, jobs map[string]store.Bought) *store.Spent {
	s := &store.Spent{Epsilon: epsilon, Delta: delta, By: map[string]*store.Bought{}}
	for name, b := range jobs {
		s.By[name] = &b
	}
	return s
}

func roundsOf(events ...dp.Event) map[uint64]store.Cost {
	out := map[uint64]store.Cost{}
	for i, e := range events {
		e.Round = uint64(i + 1)
		out[e.Round] = store.Cost{Event: e, Charged: i%2 == 0} // one that is under way counts, too
	}
	return out
}

// TestTotalsAreTheExactComposition holds what the jobs of a pool cost against a second
// implementation, by whole orders: hits, what a coalition sees, other noise, the floors of each.
func TestTotalsAreTheExactComposition(t *testing.T) {
	plain := dp.Rounds(dp.Mechanism{SamplingRate: 0.02, NoiseMultiplier: 1.5}, 1)
	hit, seen, wide := plain, plain, plain
	hit.Hit, seen.Coalition, wide.NoiseMultiplier = 0.01, dp.Coalition{Share: 0.05, Sees: 0.3}, 3
	const delta, floor = 1e-6, 3e-7
	jobs := map[string]store.Bought{
		"a": {Pool: "p", Floor: floor, Rounds: roundsOf(plain, hit, hit, seen)},
		"b": {Pool: "p", Floor: floor, Rounds: roundsOf(plain, wide)},
		"c": {Pool: "q", Floor: floor, Rounds: roundsOf(plain)},
	}
	totals, err := Totals(spends(5, delta, jobs))
	if err != nil || len(totals) != 2 || totals[0].Guarantee == nil || totals[1].Guarantee == nil {
		t.Fatalf("%+v, %v", totals, err)
	}
	p, h, c, w := moment(0.02, 1.5, 0), moment(0.02, 1.5, 0.01), moment(0.02, 1.5, 0.3), moment(0.02, 3, 0)
	for i, want := range []float64{renyi(delta-2*floor, p, h, h, c, p, w), renyi(delta-floor, p)} {
		got := totals[i].Guarantee
		// Orders between whole ones are a little better.
		if !(want > 0) {
			t.Fatalf("pool %s: %v by whole orders: no test", totals[i].Pool, want)
		}
		if got.Epsilon > want*(1+1e-9) || got.Epsilon < want*0.9 || got.Delta != delta || math.Abs(got.FloorDelta-float64(2-i)*floor) > 1e-15 {
			t.Errorf("pool %s: %v, want about %v", totals[i].Pool, got, want)
		}
		if got.Rounds != []int{6, 1}[i] || totals[i].Rounds != got.Rounds || totals[i].Jobs != 2-i {
			t.Errorf("pool %s: %+v", totals[i].Pool, totals[i])
		}
	}
	// Without the hits, and without the coalition, it would be clearly less: the test sees them.
	for name, less := range map[string]float64{"hits": renyi(delta-2*floor, p, p, p, c, p, w), "coalition": renyi(delta-2*floor, p, h, h, p, p, w),
		"floors": renyi(delta, p, h, h, c, p, w), "a floor": renyi(delta-floor, p, h, h, c, p, w)} {
		if got := totals[0].Guarantee.Epsilon; !(got > less*1.005) {
			t.Errorf("%v is what it comes to without %s: %v", got, name, less)
		}
	}
}

// TestAffordCountsAllOfTheNextRound: what a budget must hold is the next round with all that its job
// brings: its hits, and the part of delta that its floors have if it had none before.
func TestAffordCountsAllOfTheNextRound(t *testing.T) {
	plain := dp.Rounds(dp.Mechanism{SamplingRate: 0.02, NoiseMultiplier: 1.5}, 1)
	hit := plain
	hit.Hit = 0.05
	const delta, floor = 1e-6, 4e-7
	spent := func(epsilon float64) *store.Spent {
		return spends(epsilon, delta, map[string]store.Bought{"a": {Pool: "p", Floor: floor, Rounds: roundsOf(plain, plain)},
			"other": {Pool: "q", Floor: delta, Rounds: roundsOf(hit, hit, hit)}})
	}
	for name, c := range map[string]struct {
		job  string
		next coordinator.Price
		need float64
	}{
		"a round more":         {"a", coordinator.Price{Event: plain, Floor: floor}, 0},
		"one with hits":        {"a", coordinator.Price{Event: hit, Floor: floor}, 0},
		"of another job":       {"b", coordinator.Price{Event: plain, Floor: floor}, 0},
		"whose floors are few": {"b", coordinator.Price{Event: plain, Floor: floor / 4}, 0},
		"of larger floors":     {"a", coordinator.Price{Event: plain, Floor: floor * 2}, 0},
	} {
		had := floor
		switch c.job {
		case "a":
			had = max(floor, c.next.Floor)
		case "b":
			had = floor + c.next.Floor
		}
		events := []dp.Event{plain, plain, c.next.Event}
		g, why, err := compose(events, delta, had)
		if err != nil || why != "" {
			t.Fatal(why, err)
		}
		for _, budget := range []struct {
			epsilon float64
			holds   bool
		}{{g.Epsilon * (1 + 1e-9), true}, {g.Epsilon * (1 - 1e-9), false}} {
			why, err := afford(spent(budget.epsilon), c.job, "p", c.next)
			if err != nil || (why == "") != budget.holds {
				t.Errorf("%s: at a budget of %v: %q, %v", name, budget.epsilon, why, err)
			}
		}
	}
	if why, err := afford(spent(100), "b", "p", coordinator.Price{Event: plain, Floor: delta - floor}); err != nil || !strings.Contains(why, "floors") {
		t.Errorf("floors that have all of delta: %q, %v", why, err)
	}
	if why, err := afford(spent(0), "b", "p", coordinator.Price{Event: hit, Floor: 1}); err != nil || why != "" {
		t.Errorf("a fleet without a budget: %q, %v", why, err)
	}
}

// TestDevicesAndProvidersAreKeptApart, and jobs without noise: they have no guarantee in common with others,
// whichever came first.
func TestDevicesAndProvidersAreKeptApart(t *testing.T) {
	device := dp.Rounds(dp.Mechanism{SamplingRate: 0.02, NoiseMultiplier: 1.5}, 1)
	provider := dp.GroupSampling{ClientRate: 0.02, ProviderRate: 0.5}.Rounds(1.5, 1)
	bare := dp.Event{Mechanism: dp.Mechanism{SamplingRate: 1}, Count: 1, Kind: dp.KindUnnoised, NoiseScale: 1, Dim: 3}
	for name, c := range map[string]struct {
		had, next dp.Event
		why       string
	}{
		"a provider after devices":  {device, provider, "no guarantee in common"},
		"a device after providers":  {provider, device, "no guarantee in common"},
		"no noise after noise":      {device, bare, "adds no noise"},
		"noise after none":          {bare, device, "adds no noise"},
		"devices after devices":     {device, device, ""},
		"providers after providers": {provider, provider, ""},
	} {
		s := spends(50, 1e-6, map[string]store.Bought{"a": {Pool: "p", Rounds: roundsOf(c.had)}})
		why, err := afford(s, "b", "p", coordinator.Price{Event: c.next})
		if err != nil || (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: %q, %v", name, why, err)
		}
		s.By["b"] = &store.Bought{Pool: "p", Rounds: roundsOf(c.next)}
		totals, err := Totals(s)
		if err != nil || (totals[0].Guarantee == nil) != (c.why != "") || !strings.Contains(totals[0].Why, c.why) {
			t.Errorf("%s: %+v, %v", name, totals, err)
		}
	}
}

// Rows of banded noise are told apart: two jobs' first rows are not one job's first two, and a row
// that was charged alone costs another amount.
func TestMergedKeepsBandedRows(t *testing.T) {
	row := func(n uint64) dp.Event {
		e := dp.Rounds(dp.Mechanism{SamplingRate: 1, NoiseMultiplier: 4}, 1)
		e.Fixed, e.Banded = true, dp.Banded{Band: 3, Separation: 5, Eighths: 4, Row: n}
		return e
	}
	charged := row(3)
	charged.Kind = dp.KindCharged
	events := []dp.Event{row(1), row(2), row(3), charged, row(1), row(2)} // of two jobs
	want, err := dp.RDPEpsilon(events, 1e-6)
	if err != nil {
		t.Fatal(err)
	}
	got, err := dp.RDPEpsilon(merged(events), 1e-6)
	if err != nil || math.Abs(got.Epsilon-want.Epsilon) > 1e-12*want.Epsilon {
		t.Errorf("together %v, want %v (%v)", got.Epsilon, want.Epsilon, err)
	}
	g, why, err := compose(events, 1e-6, 0)
	if err != nil || why != "" || math.Abs(g.Epsilon-want.Epsilon) > 1e-12*want.Epsilon {
		t.Errorf("a fleet spent %v, want %v (%s, %v)", g.Epsilon, want.Epsilon, why, err)
	}
}

// TestMergedCostsTheSame: rounds are counted together only where all that costs is the same.
func TestMergedCostsTheSame(t *testing.T) {
	plain := dp.Rounds(dp.Mechanism{SamplingRate: 0.02, NoiseMultiplier: 1.5}, 2)
	again, charged := plain, plain
	again.Round, again.Certificate = 7, [32]byte{1}
	charged.Kind = dp.KindCharged
	if got := merged([]dp.Event{plain, again, charged}); len(got) != 1 || got[0].Count != 6 {
		t.Errorf("equal rounds: %+v", got)
	}
	bare := dp.Event{Mechanism: dp.Mechanism{SamplingRate: 1}, Count: 1, Kind: dp.KindUnnoised, NoiseScale: 1, Dim: 3}
	if got := merged([]dp.Event{plain, bare, bare}); len(got) != 2 || got[1].Kind != dp.KindUnnoised || got[1].Count != 2 || got[1].NoiseMultiplier != 0 {
		t.Errorf("rounds without noise: %+v", got)
	}
	for name, change := range map[string]func(*dp.Event){
		"hit": func(e *dp.Event) { e.Hit = 0.1 }, "rate": func(e *dp.Event) { e.SamplingRate = 0.1 }, "noise": func(e *dp.Event) { e.NoiseMultiplier = 2 },
		"coalition": func(e *dp.Event) { e.Coalition = dp.Coalition{Share: 0.1, Sees: 0.1} }, "none": func(e *dp.Event) { e.Kind = dp.KindUnnoised },
	} {
		other := plain
		change(&other)
		if got := merged([]dp.Event{plain, other}); len(got) != 2 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
