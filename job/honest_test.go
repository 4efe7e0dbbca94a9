package job

import (
	"math"
	"math/big"
	"testing"
)

// TestHonestNoise counts the noise of honest devices from outside: in the worst of the cohorts
// that a job without coins may release, the declared share of all its devices is hostile, and
// every one of these stays.
func TestHonestNoise(t *testing.T) {
	const z = 0.84
	for _, c := range []struct {
		population, floor int
		corrupt           float64
	}{{200, 100, 0.05}, {200, 60, 0.1}, {1000, 501, 0.25}, {30, 15, 0}} {
		j := owned("devices", c.population, 1, func(j *Job) {
			j.Cohort.Floor, j.Shard.Corrupt, j.Shard.BreachBits, j.Shard.SemiHonest = c.floor, c.corrupt, 0, true
		})
		if err := j.Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		o := j.Own(z)
		for active := c.population; active <= 3*c.population; active += c.population / 2 {
			hostile := int(math.Ceil(c.corrupt * float64(active)))
			survivors := o.Needs(j, active)
			if survivors < c.floor {
				t.Errorf("%+v: of %d active devices %d are enough", c, active, survivors)
			}
			// The hostile add nothing; their peers' noise is what is left.
			if have := float64(survivors-hostile) * o.Multiplier * o.Multiplier; have < z*z {
				t.Errorf("%+v: %d survivors of %d active have z^2 = %v, sold %v", c, survivors, active, have, z*z)
			}
		}
	}
	few := owned("devices", 200, 1, func(j *Job) { j.Cohort.Floor = 10 })
	if err := few.Validate(); err == nil {
		t.Error("ten survivors, all of whom may be hostile, are taken to add noise")
	}
}

// TestHonestNoiseOfTrimmedShards: in each shard as many honest devices stay as noise is counted
// for, but with what is set aside of delta. The law of a shard's hostile is summed up here in
// fractions.
func TestHonestNoiseOfTrimmedShards(t *testing.T) {
	for _, c := range []struct {
		population, size, floor int
		corrupt                 float64
	}{{200, 20, 16, 0.05}, {2000, 64, 48, 0.05}, {2000, 64, 48, 0.01}} {
		j := owned("devices", c.population, 1, func(j *Job) {
			j.Shard.Trim, j.Shard.Size, j.Shard.Floor, j.Shard.BreachBits, j.Shard.Corrupt = 1, c.size, c.floor, 10, c.corrupt
		})
		if err := j.Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		honest := int64(j.Own(1).Honest)
		n, hostile := int64(j.Cohort.Floor), int64(math.Ceil(c.corrupt*float64(c.population)))
		worst := 0.0
		for g := int64(c.floor); g <= int64(c.size); g++ {
			threshold := int64(thresholdOf(j.Masking(), int(g)))
			if threshold == 0 {
				continue
			}
			bad := new(big.Int)
			for k := threshold - honest + 1; k <= min(g, hostile); k++ { // fewer than honest are left
				bad.Add(bad, new(big.Int).Mul(new(big.Int).Binomial(hostile, k), new(big.Int).Binomial(n-hostile, g-k)))
			}
			p, _ := new(big.Rat).SetFrac(bad, new(big.Int).Binomial(n, g)).Float64()
			worst = max(worst, p*float64(j.Rounds)*math.Ceil(float64(n)/float64(c.floor)))
		}
		if worst > j.FloorDelta() || j.FloorDelta() == 0 {
			t.Errorf("%+v: some shard of the job has fewer than %d honest with probability %.3g, set aside is %.3g", c, honest, worst, j.FloorDelta())
		}
		if honest < 1 || j.FloorDelta() > j.Delta()/50 {
			t.Errorf("%+v: %d honest, %v of delta %v", c, honest, j.FloorDelta(), j.Delta())
		}
		t.Logf("%+v: %d honest, missed with %.3g", c, honest, worst)
	}
}
