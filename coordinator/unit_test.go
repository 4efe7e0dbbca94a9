package coordinator

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/quant"
)

// TestProvidersAddUp: a device sends the sum of its providers' vectors, beyond
// one vector's symbols; the mean is over the expected number of providers, and
// the ledger is about one of them.
func TestProvidersAddUp(t *testing.T) {
	const n = 4
	j := loud(n, 2)
	j.Providers = job.Providers{Max: 7, Expected: 5, SamplingRate: 0.8}
	dir := t.TempDir()
	tb := setTable(t, Config{Job: j, Dir: dir}, n, func(i int, p *player) {
		p.delta, p.units = fixedDelta(0.05), []int{7, 7, 7, 3}[i]
	})
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	// 24 contributions a round over an expected 4*5*0.8 = 16.
	if got := moved(tb); math.Abs(got-2*0.05*24/16) > 0.012 {
		t.Errorf("moved by %v, want %v", got, 2*0.05*24/16)
	}
	l, err := store.ReadLedger(dir)
	if err != nil || len(l.Entries) != 2 {
		t.Fatal(err)
	}
	for _, e := range l.Entries {
		v, err := tb.c.t.vector(3, 1, [32]byte{})
		if err != nil {
			t.Fatal(err)
		}
		if e.Event.B2 != v.Lattice.B2() || e.Event.ProviderRate != 0.8 || e.Event.Hidden || e.Delivered.Adjacency != dp.AdjacencyProvider || e.Visible != nil {
			t.Errorf("entry %+v", e)
		}
	}
	plan := tb.players[0].plans[0]
	if j := tb.players[0].job; j.Providers != 7 || j.ProviderRate != 0.8 || plan.ClipNorm != 1 || plan.CountCoordinates != 0 {
		t.Errorf("devices are told %+v, %+v", j, plan)
	}
}

// TestProviderCoinOfTheLedger: the device's coin, which its providers share,
// amplifies only where nothing can show it: where a device holds one provider.
func TestProviderCoinOfTheLedger(t *testing.T) {
	noise := func(most int) float64 {
		j := tinyJob(40)
		j.Rounds = 10
		j.Cohort.SamplingRate, j.Cohort.Floor = 0.5, 3
		j.Providers = job.Providers{Max: most, SamplingRate: 0.2}
		terms, err := newTerms(j, tinyBase(t))
		if err != nil {
			t.Fatal(err)
		}
		hidden := most == 1
		coins := dp.GroupSampling{ClientRate: 0.5, ProviderRate: 0.2, Hidden: hidden}
		want, err := accounting.CalibrateEvent(2, j.Delta(), dp.Tight, func(z float64) dp.Event { return coins.Rounds(z, 10) })
		if err != nil || terms.z < want || terms.z > want*1.01 {
			t.Errorf("%d providers: noise multiplier %v, want about %v, %v", most, terms.z, want, err)
		}
		cert := dp.Certificate{Method: dp.MethodPoisson, Rate: 0.5, Population: 40}
		ev, err := terms.release(1, 1000, cert).Event(10)
		if err != nil || ev.SamplingRate != 0.5 || ev.ProviderRate != 0.2 || ev.Hidden != hidden {
			t.Errorf("%d providers: event %+v, %v", most, ev, err)
		}
		// A cohort that was not drawn by coins has no rate.
		cert.Method = "first come"
		if ev, err = terms.release(1, 1000, cert).Event(10); err != nil || ev.SamplingRate != 1 {
			t.Errorf("a cohort of those who came first is accounted with %v, %v", ev.SamplingRate, err)
		}
		return terms.z
	}
	if several, one := noise(4), noise(1); several < one*1.2 {
		t.Errorf("noise multiplier %v for several providers in a device, %v for one", several, one)
	}
	// N of delta is the number of providers.
	j := tinyJob(1000)
	if j = j.Derived(); j.Delta() != dp.DefaultDelta(1000) {
		t.Errorf("delta %v", j.Delta())
	}
	j.Providers = job.Providers{Max: 2000, Expected: 1500, SamplingRate: 1}
	if j = j.Derived(); j.Delta() != dp.DefaultDelta(1_500_000) {
		t.Errorf("delta %v for 1.5 million providers", j.Delta())
	}
}

// adaptiveJob's clip norm moves by a step that the noise hardly changes.
func adaptiveJob(n, rounds int) Job {
	j := loud(n, rounds)
	j.Clipping = job.Clipping{Adaptive: true, Quantile: 0.5, Rate: 0.2, CountNoise: 1e-3}
	return j
}

// TestAdaptiveClip: the clip norm of each round follows from the noisy count of
// the one before, over the fixed denominator; devices are told, and a restart
// goes on from it.
func TestAdaptiveClip(t *testing.T) {
	const n = 4
	dir := t.TempDir()
	var keys []*player
	norms := []float64{1}
	for start := range 2 {
		job := adaptiveJob(n, 4)
		tb := setTable(t, Config{Job: job, Dir: dir}, n, func(i int, p *player) {
			p.delta = fixedDelta(10) // beyond any norm here
			if start == 1 {
				p.key = keys[i].key
			}
			p.before = func(p *player, turn int, m wire.Message) (wire.Message, bool) {
				// In the second round one device goes before it sends its update.
				gone := i == 0 && turn == 3 && p.plan.Version == 1
				return m, gone
			}
		})
		keys = tb.players
		if start == 0 {
			tb.onProgress = func(p monitor.Status) {
				if p.State == monitor.StateCommitted && p.Version == 2 {
					tb.stop()
				}
			}
		}
		if got := tb.c.core.clip; math.Abs(got-norms[len(norms)-1]) > 0.003 {
			t.Errorf("start %d: clip norm %v, want %v", start, got, norms[len(norms)-1])
		}
		if err := tb.run(); start == 1 && err != nil {
			t.Fatal(err)
		}
		// Nobody was within. With all four in, b = 0: C grows by exp(0.2*0.5). With
		// one absent, who counts as a half, b = 1/8: by exp(0.2*0.375). A mean over the
		// realised three would make b = 0 again.
		if start == 0 {
			norms = append(norms, math.Exp(0.1), math.Exp(0.1+0.075))
		} else {
			norms = append(norms, math.Exp(0.2+0.075), math.Exp(0.3+0.075))
		}
		if got := tb.c.core.clip; math.Abs(got-norms[len(norms)-1]) > 0.003 {
			t.Errorf("start %d: clip norm %v in the end, want %v", start, got, norms[len(norms)-1])
		}
		for _, p := range tb.players[1:] {
			for _, plan := range p.plans {
				if math.Abs(plan.ClipNorm-norms[plan.Version]) > 0.003 || plan.CountCoordinates == 0 {
					t.Errorf("plan of step %d has clip norm %v, want %v", plan.Version, plan.ClipNorm, norms[plan.Version])
				}
			}
		}
	}
	l, err := store.ReadLedger(dir)
	if err != nil || len(l.Entries) != 4 {
		t.Fatalf("%d entries, %v", len(l.Entries), err)
	}
	for _, e := range l.Entries { // the count is inside the one release
		if e.Event.Kind != dp.KindRelease || int(e.Event.Dim) <= 128 {
			t.Errorf("event %+v", e.Event)
		}
	}
}

// TestAdaptiveBudgetSplit: the count takes its part of one Gaussian, as Andrew et
// al. 2021 say; leaving its sensitivity out would release more than is accounted.
func TestAdaptiveBudgetSplit(t *testing.T) {
	for name, edit := range map[string]func(*Job){
		"default":   func(*Job) {},
		"given":     func(j *Job) { j.Clipping.CountNoise = 0.5 },
		"tern":      func(j *Job) { j.Wire.Uplink = "tern" },
		"fixed32":   func(j *Job) { j.Wire.Uplink = "fixed32" },
		"simulated": func(j *Job) { j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort = 1_000_000, 10_000 },
		"providers": func(j *Job) { j.Providers = job.Providers{Max: 10, SamplingRate: 0.5} },
	} {
		j := tinyJob(24)
		j.Clipping.Adaptive = true
		edit(&j)
		terms, err := newTerms(j, tinyBase(t))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		v, err := terms.vector(2, 1, [32]byte{})
		if err != nil {
			t.Fatal(err)
		}
		ev, err := terms.release(1, v.B2(), dp.Certificate{Method: dp.MethodPoisson, Rate: 1, Population: 24}).Event(v.Size())
		if err != nil {
			t.Fatal(err)
		}
		// What the released vector is worth, each part by itself, in the budget's
		// population: z of the update, and noise of the count in contributions.
		sigma := math.Sqrt(ev.Sigma2.Float()) / j.NoiseScale()
		zUpdate := sigma / math.Sqrt(float64(v.Lattice.B2()))
		count := sigma / (2 * math.Sqrt(float64(v.Count.B2())))
		if together := 1 / math.Sqrt(1/(zUpdate*zUpdate)+1/(4*count*count)); math.Abs(together/terms.z-1) > 1e-6 {
			t.Errorf("%s: update and count compose to a noise multiplier of %v, accounted is %v", name, together, terms.z)
		}
		if most := terms.countNoise(); count > most*(1+1e-9) {
			t.Errorf("%s: count noise %v, want at most %v", name, count, most)
		}
		if j.Clipping.CountNoise == 0 && zUpdate > terms.z*1.06 {
			t.Errorf("%s: the count costs the update %v of %v", name, zUpdate, terms.z)
		}
	}
	j := tinyJob(24)
	j.Clipping = job.Clipping{Adaptive: true, Quantile: 0.5, Rate: 0.2, CountNoise: 0.01}
	if _, err := newTerms(j, tinyBase(t)); !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), "clipping.count_noise") {
		t.Errorf("a count that takes more than there is: %v", err)
	}
}

// TestVectorRange: the alarm knows how many providers a shard's devices hold, and
// looks at the count too.
func TestVectorRange(t *testing.T) {
	job := tinyJob(4)
	job.Clipping.Adaptive = true
	terms, err := newTerms(job, tinyBase(t))
	if err != nil {
		t.Fatal(err)
	}
	v, err := terms.vector(1, 1, [32]byte{})
	if err != nil {
		t.Fatal(err)
	}
	d, q, s := v.Lattice.D(), int64(v.Lattice.MaxSymbol()), int64(v.Count.Symbol)
	for _, c := range []struct {
		at   int
		x    int64
		good bool
	}{{0, 20 * q, true}, {0, -20 * q, true}, {d - 1, 20*q + 1, false}, {d, 20 * s, true}, {v.Size() - 1, -20*s - 1, false}, {d, 20*s + 1, false}} {
		sum := make([]int64, v.Size())
		if sum[c.at] = c.x; c.at >= d { // all coordinates of a count are alike
			for i := d; i < len(sum); i++ {
				sum[i] = c.x
			}
		}
		if err := v.CheckSum(sum, 20, 20); c.good != (err == nil) || !c.good && !errors.Is(err, quant.ErrRange) {
			t.Errorf("%d at coordinate %d of %d+%d: %v", c.x, c.at, d, v.Count.Coordinates, err)
		}
	}
	if err := v.CheckSum(make([]int64, d), 20, 20); err == nil {
		t.Error("a sum without its count was taken")
	}
}

// TestNormsWithoutALattice: a clip norm may only go where devices can follow. One
// that had no lattice would end the job in its middle, for good.
func TestNormsWithoutALattice(t *testing.T) {
	for key, edit := range map[string]func(*Job){
		"clipping.max":      func(j *Job) { j.Clipping.Max = 1e300 },
		"clipping.min":      func(j *Job) { j.Clipping.Min = 1e-300 },
		"privacy.clip_norm": func(j *Job) { j.Privacy.ClipNorm, j.Clipping.Adaptive = 4e-23, false }, // it has one at 64 values
	} {
		j := tinyJob(24)
		j.Clipping.Adaptive = true
		edit(&j)
		if _, err := newTerms(j, tinyBase(t)); !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// TestDeltaOfManyUnits: delta is held against all of them, however many.
func TestDeltaOfManyUnits(t *testing.T) {
	job := tinyJob(24)
	job.Privacy.SimulatedPopulation, job.Privacy.SimulatedCohort, job.Privacy.Delta = 10_000_000_000, 100_000, 2e-10
	if err := job.Derived().Validate(); !errors.Is(err, dp.ErrDelta) {
		t.Errorf("delta 2e-10 for 10^10 devices: %v", err)
	}
	job.Privacy.Delta = 0
	if d := job.Delta(); d >= 1e-10 {
		t.Errorf("default delta %v for 10^10 devices", d)
	}
}

// TestSimulatedProviders: noise and count are made for the budget's population,
// whose coin and cohort are not those of the devices here.
func TestSimulatedProviders(t *testing.T) {
	j := tinyJob(24)
	j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort = 1_000_000, 10_000
	j.Providers = job.Providers{Max: 6, Expected: 4, SamplingRate: 0.5}
	j.Clipping.Adaptive, j.Clipping.CountNoise = true, 0.05
	terms, err := newTerms(j, tinyBase(t))
	if err != nil {
		t.Fatal(err)
	}
	coins := dp.GroupSampling{ClientRate: 0.01, ProviderRate: 0.5}
	want, err := accounting.CalibrateEvent(2, j.Delta(), dp.Tight, func(z float64) dp.Event { return coins.Rounds(z, j.Rounds) })
	if err != nil || terms.z < want || terms.z > want*1.01 {
		t.Errorf("noise multiplier %v, want %v, %v", terms.z, want, err)
	}
	// 10,000 devices of 4 providers that win their coin half the time.
	if got := terms.countNoise(); math.Abs(got-0.05*20_000) > 1e-6 {
		t.Errorf("count noise %v contributions, want 1000", got)
	}
}

// counted is what a counter has come to.
func counted(t *testing.T, c prometheus.Counter) int64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return int64(m.GetCounter().GetValue())
}
