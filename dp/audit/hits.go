package audit

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/starling-fl/starling/job"
)

// tries is how many rounds the check of hits deals.
const tries = 100_000

// hits deals rounds by the definition of a hit (docs/privacy/proofs.md, section 5): of the others in
// a device's group so few honest ones stay, at the declared dropout, that hostile ones and the
// device decide over its shard. That must not be more often than the ledger says.
func hits(j job.Job, groups, ready int, charged float64, seed uint64) Check {
	if !j.Sampled() {
		return skipped(CheckHits, "no coin is hidden")
	}
	rng := rand.New(rand.NewPCG(seed, 0x6869))
	masking := j.Masking()
	hostile := min(ready-1, int(math.Ceil(j.Shard.Corrupt*float64(j.Cohort.Population))))
	in := j.Cohort.SamplingRate / float64(groups)
	binomial := func(n int, p float64) int {
		if n <= 0 || p <= 0 {
			return 0
		}
		if p >= 1 {
			return n
		}
		return int(distuv.Binomial{N: float64(n), P: p, Src: rng}.Rand())
	}
	thresholds := map[int]int{}
	hit := 0
	for range tries {
		bad, good := binomial(hostile, in), binomial(ready-1-hostile, in)
		n := bad + good + 1
		if n < j.Shard.Floor || n > j.Shard.Size {
			hit++
			continue
		}
		t, known := thresholds[n]
		if !known {
			var err error
			if t, err = masking.Threshold(n); err != nil {
				t = math.MaxInt
			}
			thresholds[n] = t
		}
		if binomial(good, 1-j.Cohort.Dropout) < max(t, j.Shard.Floor) {
			hit++
		}
	}
	// Without hits in the ledger they must be so few that the floors' part of delta holds them.
	most := max(charged, j.FloorDelta()/(float64(j.Rounds)*j.Cohort.SamplingRate))
	return within(CheckHits, fmt.Sprintf("share of hits that is sure, of %d in %d dealt rounds; the ledger has %.3g", hit, tries, charged),
		rateAtLeast(tries, hit, checkLevel), 0, most, checkLevel)
}
