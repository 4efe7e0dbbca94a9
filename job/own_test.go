package job

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// owned is a job whose devices add noise.
func owned(noise string, population int, rate float64, change ...func(*Job)) Job {
	j := Default()
	j.Name, j.Labels = "x", []string{"a", "b"}
	j.Cohort.Population, j.Cohort.SamplingRate, j.Cohort.MaxEnrolled = population, rate, max(population, 100_000)
	j.Privacy.Noise = noise
	for _, f := range change {
		f(&j)
	}
	return j.Derived()
}

// TestOwnNoise: what each device adds, and what a release needs for it, at every kind.
func TestOwnNoise(t *testing.T) {
	const z = 0.84
	for name, c := range map[string]struct {
		j                          Job
		v                          float64
		honest, apart, least, most int
		seen                       bool
	}{
		"central": {owned("central", 200, 1), 0, 0, 0, 0, 0, false},
		// Half of 200 devices; a twentieth of the 200 are hostile, and all of these stay.
		"devices": {owned("devices", 200, 1), z / math.Sqrt(90), 90, 1, 100, 0, false},
		"more":    {owned("devices", 200, 1, func(j *Job) { j.Privacy.OwnNoise = 0.2 }), 0.2, 90, 1, 100, 0, false},
		"less":    {owned("devices", 200, 1, func(j *Job) { j.Privacy.OwnNoise = 0.01 }), z / math.Sqrt(90), 90, 1, 100, 0, false},
		"silo":    {owned("silo", 200, 1), z, 1, 1, 0, 0, false},
		// At 2 % of 40,000 a cohort of 400 with 380 honest; more than 979 are drawn with a chance of 4e-10.
		"sampled":      {owned("devices", 40_000, 0.02, func(j *Job) { j.Cohort.Floor = 400 }), z / math.Sqrt(380), 380, 1, 380, 979, false},
		"silo sampled": {owned("silo", 40_000, 0.02), z, 1, 1, 0, 0, true},
		"providers": {owned("devices", 40_000, 0.02, func(j *Job) { j.Cohort.Floor, j.Providers.Max = 400, 4 }),
			z / math.Sqrt(380), 380, 1, 380, 0, false},
		// Each shard stands for itself: of 16 to 20 devices 12 answer, and chance may deal ten hostile into one.
		"trimmed": {owned("devices", 200, 1, func(j *Job) {
			j.Shard.Trim, j.Shard.Size, j.Shard.Floor, j.Shard.BreachBits = 1, 20, 16, 10
		}), z / math.Sqrt(2), 2, 5, 0, 0, false},
	} {
		if err := c.j.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		o := c.j.Own(z)
		if o.Multiplier < c.v || o.Multiplier > c.v*(1+1e-6) || int(o.Honest) != c.honest || int(o.Apart) != c.apart || o.Min != c.least || o.Max != c.most || o.Seen != c.seen {
			t.Errorf("%s: %+v, want v %.6f, honest %d, apart %d, least %d, most %d", name, o, c.v, c.honest, c.apart, c.least, c.most)
		}
		if o.Multiplier == 0 {
			continue
		}
		// Whatever arrives, from the least that is released on: honest noise is what is claimed.
		if have := o.Multiplier * o.Multiplier * float64(o.Honest); have < z*z {
			t.Errorf("%s: %v honest devices have z^2 = %v, want %v", name, o.Honest, have, z*z)
		}
		if e := c.j.BudgetRounds(Quorum{})(z); e.Check() != nil {
			t.Errorf("%s: %v", name, e.Check())
		}
	}
}

// TestOwnNoiseIsRefused where it means nothing.
func TestOwnNoiseIsRefused(t *testing.T) {
	for want, change := range map[string]func(*Job){
		"privacy.noise is":         func(j *Job) { j.Privacy.Noise = "local" },
		"privacy.own_noise is -1":  func(j *Job) { j.Privacy.Noise, j.Privacy.OwnNoise = "devices", -1 },
		"privacy.own_noise is NaN": func(j *Job) { j.Privacy.Noise, j.Privacy.OwnNoise = "devices", math.NaN() },
		"devices add none then":    func(j *Job) { j.Privacy.OwnNoise = 0.1 },
		"central; what 10000 devices add is privacy.noise_multiplier: 10": func(j *Job) {
			j.Privacy.Noise, j.Privacy.OwnNoise, j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort = "devices", 0.1, 1_000_000, 10_000
		},
		"central; what the target needs": func(j *Job) {
			j.Privacy.Noise, j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort = "devices", 1_000_000, 10_000
		},
		"privacy.none is set, and privacy.noise": func(j *Job) { j.Privacy.None, j.Privacy.Noise = true, "devices" },
	} {
		if err := owned("", 200, 1, change).Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestQuorumOfOwnNoise: no coin is flipped before so many are there that the others' noise
// is what is counted on, whatever one device's coin says; a higher cohort.floor, which
// takes less noise, needs more of them there.
func TestQuorumOfOwnNoise(t *testing.T) {
	ready := 0
	for _, floor := range []int{300, 450, 550} {
		j := owned("devices", 40_000, 0.02, func(j *Job) { j.Cohort.Floor = floor })
		q, err := j.Quorum()
		if err != nil || q.Hit != 0 || q.Ready <= ready {
			t.Fatalf("floor %d: %+v (%v) after %d", floor, q, err, ready)
		}
		ready = q.Ready
		o := j.Own(1)
		// Those who are drawn and stay, all others being hostile, are fewer with a chance that
		// over all draws is within the floors' part of delta: a tail of more than 5 of them.
		honest := float64(ready-1) - 0.05*40_000
		mean := honest * 0.02 * 0.9
		if sigmas := (mean - float64(o.Min)) / math.Sqrt(mean); sigmas < 5.1 || sigmas > 12 {
			t.Errorf("floor %d: %d of %v expected with %d there, %.1f standard deviations", floor, o.Min, mean, ready, sigmas)
		}
		if _, ok := q.Allows(j, 40_000, ready-400); ok {
			t.Errorf("floor %d: a round may be drawn of %d", floor, ready-400)
		}
		// And no more than the noise is made up for.
		if _, ok := q.Allows(j, 60_000, 40_000); ok {
			t.Error("60,000 active devices make cohorts beyond what noise is made up for")
		}
	}
	central := owned("", 40_000, 0.02, func(j *Job) { j.Cohort.Floor = 550 })
	if q, err := central.Quorum(); err != nil || q.Ready >= ready {
		t.Errorf("central noise needs %+v (%v), devices' %d", q, err, ready)
	}
}

// TestLostGroups holds the bound on lost groups against exact binomials of single groups.
func TestLostGroups(t *testing.T) {
	a := dp.Attendance{Ready: 8000, Hostile: 500, Rate: 0.02, Groups: 4, Dropout: 0.1, Floor: 8, Most: 64, Threshold: func(n int) int { return n*2/3 + 1 }}
	one, two := a.Lost(0), a.Lost(1)
	if hit := a.Hit(); one < 4*hit || one > 1000*hit || two > one || two <= 0 {
		t.Errorf("one lost %.3g, two %.3g, one device's shard hit %.3g", one, two, hit)
	}
	if a.Lost(4) != 0 {
		t.Error("more groups are lost than there are")
	}
}

// The search for a quorum asks a million times what a cohort does not exceed, and the answer is the
// same: a job of a million devices that add their own noise is read in some seconds of processor time.
func TestLargeFleetsOfOwnNoise(t *testing.T) {
	j := owned(NoiseDevices, 1_000_000, 0.01)
	watchdog.Within(t, time.Minute, "a job of a million devices", func() {
		if q, err := j.Quorum(); err != nil || q.Ready == 0 {
			t.Errorf("%+v, %v", q, err)
		}
	})
	// What is kept is what would be found.
	for _, n := range []int{50, 1000, 1_000_000} {
		k := owned(NoiseDevices, n, 0.5)
		most := k.mostShares()
		limit := 0.02 * k.FloorDelta() / (float64(k.Draws()) * 0.5)
		if again := k.mostShares(); again != most || dp.BinomialTail(n-1, 0.5, most) > limit || dp.BinomialTail(n-1, 0.5, most-1) <= limit {
			t.Errorf("of %d devices at most %d, then %d", n, most, again)
		}
	}
}
