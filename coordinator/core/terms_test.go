package core

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/quant"
)

// TestProviderCoinOfTheLedger: the device's coin, which its providers share,
// amplifies only where nothing can show it: where a device holds one provider.
func TestProviderCoinOfTheLedger(t *testing.T) {
	noise := func(most int) float64 {
		j := tinyJob(40)
		j.Rounds = 10
		j.Cohort.SamplingRate, j.Cohort.Floor = 0.5, 3
		j.Providers = job.Providers{Max: most, SamplingRate: 0.2}
		terms, err := NewTerms(j, tinyBase(t))
		if err != nil {
			t.Fatal(err)
		}
		hidden := most == 1
		coins := dp.GroupSampling{ClientRate: 0.5, ProviderRate: 0.2, Hidden: hidden}
		want, err := accounting.CalibrateEvent(2, j.Delta(), dp.Tight, dp.Public, func(z float64) dp.Event { return coins.Rounds(z, 10) })
		if err != nil || terms.NoiseMultiplier < want || terms.NoiseMultiplier > want*1.01 {
			t.Errorf("%d providers: noise multiplier %v, want about %v, %v", most, terms.NoiseMultiplier, want, err)
		}
		cert := dp.Certificate{Method: dp.MethodPoisson, Rate: 0.5, Population: 40}
		ev, err := terms.ReleaseSpec(1, 1000, cert).Event(10)
		if err != nil || ev.SamplingRate != 0.5 || ev.ProviderRate != 0.2 || ev.Hidden != hidden {
			t.Errorf("%d providers: event %+v, %v", most, ev, err)
		}
		// A cohort that was not drawn by coins has no rate.
		cert.Method = "first come"
		if ev, err = terms.ReleaseSpec(1, 1000, cert).Event(10); err != nil || ev.SamplingRate != 1 {
			t.Errorf("a cohort of those who came first is accounted with %v, %v", ev.SamplingRate, err)
		}
		return terms.NoiseMultiplier
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

// TestAdaptiveBudgetSplit: the count takes its part of one Gaussian, as Andrew et
// al. 2021 say; leaving its sensitivity out would release more than is accounted.
func TestAdaptiveBudgetSplit(t *testing.T) {
	for name, edit := range map[string]func(*job.Job){
		"default":   func(*job.Job) {},
		"given":     func(j *job.Job) { j.Clipping.CountNoise = 0.5 },
		"tern":      func(j *job.Job) { j.Wire.Uplink = "tern" },
		"fixed32":   func(j *job.Job) { j.Wire.Uplink = "fixed32" },
		"simulated": func(j *job.Job) { j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort = 1_000_000, 10_000 },
		"providers": func(j *job.Job) { j.Providers = job.Providers{Max: 10, SamplingRate: 0.5} },
	} {
		j := tinyJob(24)
		j.Clipping.Adaptive = true
		edit(&j)
		terms, err := NewTerms(j, tinyBase(t))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		v, err := terms.Vector(2, 1, [32]byte{})
		if err != nil {
			t.Fatal(err)
		}
		ev, err := terms.ReleaseSpec(1, v.B2(), dp.Certificate{Method: dp.MethodPoisson, Rate: 1, Population: 24}).Event(v.Size())
		if err != nil {
			t.Fatal(err)
		}
		// What the released vector is worth, each part by itself, in the budget's
		// population: z of the update, and noise of the count in contributions.
		sigma := math.Sqrt(ev.Sigma2.Float()) / j.NoiseScale()
		zUpdate := sigma / math.Sqrt(float64(v.Lattice.B2()))
		count := sigma / (2 * math.Sqrt(float64(v.Count.B2())))
		if together := 1 / math.Sqrt(1/(zUpdate*zUpdate)+1/(4*count*count)); math.Abs(together/terms.NoiseMultiplier-1) > 1e-6 {
			t.Errorf("%s: update and count compose to a noise multiplier of %v, accounted is %v", name, together, terms.NoiseMultiplier)
		}
		if most := terms.countNoise(); count > most*(1+1e-9) {
			t.Errorf("%s: count noise %v, want at most %v", name, count, most)
		}
		if j.Clipping.CountNoise == 0 && zUpdate > terms.NoiseMultiplier*1.06 {
			t.Errorf("%s: the count costs the update %v of %v", name, zUpdate, terms.NoiseMultiplier)
		}
	}
	j := tinyJob(24)
	j.Clipping = job.Clipping{Adaptive: true, Quantile: 0.5, Rate: 0.2, CountNoise: 0.01}
	if _, err := NewTerms(j, tinyBase(t)); !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), "clipping.count_noise") {
		t.Errorf("a count that takes more than there is: %v", err)
	}
}

// TestNormsWithoutALattice: a clip norm may only go where devices can follow. One
// that had no lattice would end the job in its middle, for good.
func TestNormsWithoutALattice(t *testing.T) {
	for key, edit := range map[string]func(*job.Job){
		"clipping.max":      func(j *job.Job) { j.Clipping.Max = 1e300 },
		"clipping.min":      func(j *job.Job) { j.Clipping.Min = 1e-300 },
		"privacy.clip_norm": func(j *job.Job) { j.Privacy.ClipNorm, j.Clipping.Adaptive = 4e-23, false }, // it has one at 64 values
	} {
		j := tinyJob(24)
		j.Clipping.Adaptive = true
		edit(&j)
		if _, err := NewTerms(j, tinyBase(t)); !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), key) {
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
	terms, err := NewTerms(j, tinyBase(t))
	if err != nil {
		t.Fatal(err)
	}
	coins := dp.GroupSampling{ClientRate: 0.01, ProviderRate: 0.5}
	want, err := accounting.CalibrateEvent(2, j.Delta(), dp.Tight, dp.Public, func(z float64) dp.Event { return coins.Rounds(z, j.Rounds) })
	if err != nil || terms.NoiseMultiplier < want || terms.NoiseMultiplier > want*1.01 {
		t.Errorf("noise multiplier %v, want %v, %v", terms.NoiseMultiplier, want, err)
	}
	// 10,000 devices of 4 providers that win their coin half the time.
	if got := terms.countNoise(); math.Abs(got-0.05*20_000) > 1e-6 {
		t.Errorf("count noise %v contributions, want 1000", got)
	}
}

// TestVectorRange: the alarm knows how many providers a shard's devices hold, and
// looks at the count too.
func TestVectorRange(t *testing.T) {
	job := tinyJob(4)
	job.Clipping.Adaptive = true
	terms, err := NewTerms(job, tinyBase(t))
	if err != nil {
		t.Fatal(err)
	}
	v, err := terms.Vector(1, 1, [32]byte{})
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

// TestFloorsAreInDelta: a sampled job accounts at delta less the floors' part, says
// so beside every guarantee, and a job whose floors need more is refused.
func TestFloorsAreInDelta(t *testing.T) {
	j := sampledJob(100, 5)
	j.Privacy.NoiseMultiplier, j.Privacy.Epsilon = 0, 2
	terms, err := NewTerms(j, tinyBase(t))
	if err != nil {
		t.Fatal(err)
	}
	delta := terms.Budget.Delta
	if terms.Budget.Floor != delta*dp.FloorShare {
		t.Errorf("floor %v of delta %v", terms.Budget.Floor, delta)
	}
	all, err := terms.Costliest()
	if err != nil {
		t.Fatal(err)
	}
	all.Count = 5
	g, err := terms.Guarantees([]dp.Event{all})
	if err != nil {
		t.Fatal(err)
	}
	want, err := accounting.Epsilon([]dp.Event{all}, delta*(1-dp.FloorShare), dp.Tight)
	if err != nil {
		t.Fatal(err)
	}
	if g.Delivered.Epsilon != want.Epsilon || g.Delivered.Delta != delta || g.Delivered.Epsilon > 2 || g.Delivered.Epsilon < 1.99 ||
		math.Abs(g.Delivered.FloorDelta/terms.Budget.Floor-1) > 1e-6 || !strings.Contains(g.Delivered.String(), "for small cohorts") {
		t.Errorf("%v, want epsilon %v", g.Delivered, want.Epsilon)
	}
	// What a device's coin decides, at the least number of devices, is what is accounted.
	if _, hit := terms.Job.Groups(terms.Quorum.Ready); terms.Quorum.Hit == 0 && hit*0.8*float64(j.Draws()) > terms.Budget.Floor || terms.Quorum.Hit > 0 && hit > terms.Quorum.Hit {
		t.Errorf("%d devices are enough, and the coin decides with probability %v", terms.Quorum.Ready, hit)
	}
	if all.Hit != terms.Quorum.Hit {
		t.Errorf("the ledger has hits of %v, the quorum %v", all.Hit, terms.Quorum.Hit)
	}
	everybody := tinyJob(100)
	if terms, err = NewTerms(everybody, tinyBase(t)); err != nil || terms.Budget.Floor != 0 || terms.Quorum != (job.Quorum{Ready: 3}) {
		t.Errorf("without coins: %+v, quorum %v, %v", terms.Budget, terms.Quorum, err)
	}
	few := sampledJob(100, 5)
	few.Cohort.SamplingRate, few.Cohort.Floor = 0.2, 3
	if _, err := NewTerms(few, tinyBase(t)); !errors.Is(err, job.ErrInvalid) {
		t.Errorf("a cohort of 20 with a floor of 3: %v", err)
	}
}

// TestCalibration: the noise that will be drawn keeps all rounds within the
// budget, and is not wastefully large.
func TestCalibration(t *testing.T) {
	for name, edit := range map[string]func(*job.Job){
		"delivered": func(*job.Job) {},
		"simulated": func(j *job.Job) { j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort = 1_000_000, 10_000 },
		"rdp":       func(j *job.Job) { j.Privacy.Accountant = "rdp" },
		"one round": func(j *job.Job) { j.Rounds = 1 },
		"adaptive":  func(j *job.Job) { j.Clipping.Adaptive = true },
		"providers": func(j *job.Job) {
			j.Providers = job.Providers{Max: 8, Expected: 4, SamplingRate: 0.25} // one of a device in expectation
		},
		"one provider": func(j *job.Job) {
			j.Cohort.Population, j.Cohort.SamplingRate, j.Cohort.Floor = 48, 0.5, 3
			j.Providers = job.Providers{Max: 1, SamplingRate: 0.5}
		},
	} {
		j := tinyJob(24)
		j.Rounds = 20
		edit(&j)
		terms, err := NewTerms(j, tinyBase(t))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := terms.verifyBudget(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		terms.NoiseMultiplier *= 0.999
		if err := terms.verifyBudget(); !errors.Is(err, accounting.ErrBudget) {
			t.Errorf("%s: a thousandth less noise would do, too (%v)", name, err)
		}
		if name == "one provider" {
			terms.Units *= 2
		}
		if terms.Units != 24 {
			t.Errorf("%s: denominator %v", name, terms.Units)
		}
	}
}
