package job

import (
	"math"
	"time"

	"github.com/starling-fl/starling/dp"
)

// usualSlow is the share of devices that no turn awaits where a job declares none.
const usualSlow = 0.1

// mostShardFailure is the chance, in a round, that a shard is dealt more slow devices than it can lack.
const mostShardFailure = 0.01

// Unawaited is how many of n devices a turn of a round need not await: the declared share, or a
// tenth; at least 1.
func (d Deadlines) Unawaited(n int) int {
	share := d.Slow
	if share == 0 {
		share = usualSlow
	}
	return max(1, int(share*float64(n)+1e-9))
}

// CheckSlow refuses a share of slow devices without whom rounds release nothing.
//
// A turn closes by time, never at a number of answers. Even so the number decides how long the next
// turns stay open. Where coins choose the cohort, a share above a tenth would let one more device in
// it decide over many others.
func (j Job) CheckSlow() error {
	slow := j.Deadlines.Slow
	switch {
	case slow == 0:
		return nil
	case !(slow > 0 && slow < 0.5):
		return refuse("deadlines.slow is %v, must be in [0, 0.5), 0 being 0.1", slow)
	case j.Sampled() && slow > usualSlow:
		return refuse("deadlines.slow is %v, must be at most %v where coins choose the cohort (cohort.sampling_rate %v): with more, one device's coin "+
			"moves when others are cut off; a cohort that is not sampled may have more (cohort.sampling_rate: 1, or cohort.sampling: fixed)",
			slow, usualSlow, j.Cohort.SamplingRate)
	case j.Sampled() && slow > j.Cohort.Dropout:
		return refuse("deadlines.slow is %v, above cohort.dropout = %v, which epsilon is computed for: slow devices leave the round, too; "+
			"raise cohort.dropout, or lower deadlines.slow", slow, j.Cohort.Dropout)
	case j.Sampled():
		return nil
	}
	for _, n := range j.slowCohorts() {
		if err := j.slowIn(n); err != nil {
			return err
		}
	}
	return nil
}

// slowCohorts are the sizes of cohorts that have the least room for slow devices: the smallest, the
// largest, and between them those that are just cut into one more shard.
func (j Job) slowCohorts() []int {
	least, most := j.StartsWith(), j.Cohort.Population
	if j.Fixed() {
		least, most = j.Cohort.Size, j.Cohort.Size
	}
	sizes := []int{least, most}
	if j.Shard.Groups > 0 {
		return sizes
	}
	for k := (least + j.Shard.Size - 1) / j.Shard.Size; k*j.Shard.Size < most && len(sizes) < 8; k++ {
		sizes = append(sizes, k*j.Shard.Size+1)
	}
	return sizes
}

// slowIn refuses the declared share in a cohort of n devices: its shards must reach their
// thresholds, and what is left the numbers that a release needs.
func (j Job) slowIn(n int) error {
	slow := j.Deadlines.Unawaited(n)
	left := n - slow
	need, key := j.Shard.Floor, "shard.floor"
	if least := j.leastRelease(); least > need {
		need, key = least, "cohort.floor, whose noise is counted (privacy.noise: devices)"
	}
	if left < need {
		return refuse("deadlines.slow is %v: without the slow ones %d of %d devices are left, and a release needs %d (%s); lower it to %v, or the floor to %d",
			j.Deadlines.Slow, left, n, need, key, j.shareOf(n-need, n), left)
	}
	shards := j.Shard.Groups
	if shards == 0 {
		shards = (n + j.Shard.Size - 1) / j.Shard.Size
	}
	size := n / shards
	threshold := thresholdOf(j.Masking(), size)
	if threshold == 0 || j.dealt(n, slow, size, shards, threshold) {
		return nil // of a size that has no threshold there is no shard
	}
	most := slow
	for most > 0 && !j.dealt(n, most, size, shards, threshold) {
		most--
	}
	instead := ""
	if follows := j; !j.Shard.SemiHonest {
		follows.Shard.SemiHonest = true
		if follows.CheckSlow() == nil {
			instead = ", or set shard.semi_honest: true, which trusts the coordinator to follow the protocol"
		}
	}
	return refuse("deadlines.slow is %v, but of a shard of %d devices %d must answer (shard.corrupt %v, shard.breach_bits %d), and of a cohort of %d at most "+
		"%d may be slow; lower it to %v%s", j.Deadlines.Slow, size, threshold, j.Shard.Corrupt, j.Shard.BreachBits,
		n, most, j.shareOf(most, n), instead)
}

// dealt reports whether shards of size that are cut by chance from n devices, slow of which are
// slow, hold their thresholds.
func (j Job) dealt(n, slow, size, shards, threshold int) bool {
	most := size - threshold
	if shards == 1 {
		return slow <= most
	}
	tail := 0.0
	for k := most + 1; k <= min(slow, size); k++ {
		tail += dp.Hypergeometric(n, slow, size, k)
	}
	return float64(shards)*tail <= mostShardFailure
}

// shareOf is a share of n devices that makes no more than k of them, in hundredths.
func (j Job) shareOf(k, n int) float64 { return math.Floor(100*float64(max(0, k))/float64(n)) / 100 }

// PaceFactor is how many times longer than the awaited devices needed in the last rounds a state may last.
const PaceFactor = 3

// Paced is how long a state may last whose own deadline is own, where the awaited devices needed so long.
func (d Deadlines) Paced(own, needed time.Duration) time.Duration {
	return min(own, max(d.Min, PaceFactor*needed))
}

// Stragglers foretells the state in which devices train, once deadlines follow them: how long it
// lasts where slow of n devices take factor times as long as the others' train, and whether it ends
// without the slow ones.
func (d Deadlines) Stragglers(n, slow int, train time.Duration, factor float64) (lasts time.Duration, without bool) {
	if slow == 0 {
		return min(train, d.Collect), train > d.Collect
	}
	theirs := time.Duration(min(factor*float64(train), float64(100*d.Collect)))
	needed := train
	if slow > d.Unawaited(n) {
		needed = theirs
	}
	limit := d.Paced(d.Collect, needed)
	return min(theirs, limit), theirs > limit
}
