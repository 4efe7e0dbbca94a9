package job

import (
	"math"
	"sync"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/secagg"
)

// Draws is the largest number of rounds that a sampled job may draw, including rounds that are
// charged and release nothing. What floors add to delta is bounded for that many.
func (j Job) Draws() int { return j.Rounds + (j.Rounds+3)/4 }

// Sampled reports whether coins choose a round's cohort and the guarantee relies on their being
// hidden.
func (j Job) Sampled() bool { return j.Cohort.SamplingRate < 1 && !j.Privacy.None }

// Grouped reports whether each device of a round is dealt into a group independently; if not, the
// cohort is cut into shards of equal size.
func (j Job) Grouped() bool { return j.Sampled() || j.Shard.Groups > 0 }

// FloorDelta is the part of the job's delta set aside for rounds in which one device's coin decides
// more than what is in the sum; the accountant gets the rest. A tenth of it is for the test of the
// declared dropout: see Job.DropoutAlpha. Without coins it is for shards, trimmed, that chance
// deals more hostile devices than their noise is counted for: see Own.
func (j Job) FloorDelta() float64 {
	if !j.lossy() {
		return 0
	}
	return j.Delta() * dp.FloorShare
}

// lossy reports whether anything but the sum may show with a chance that delta must hold, in the
// deployment that a simulated population stands for as in any.
func (j Job) lossy() bool {
	if j.Simulated() {
		return j.BudgetRate() < 1 && !j.Privacy.None
	}
	return j.Sampled() || j.Shard.Trim > 0 && j.Privacy.Noise == NoiseDevices
}

// DropoutAlpha is the probability, over the whole job, of pausing it for dropout although devices
// drop out no more often than declared.
func (j Job) DropoutAlpha() float64 { return j.FloorDelta() / 10 }

// Loss is the largest declared share of a cohort that may be missing from its sum, if ready of
// active devices are there: because they drop out, or because hostile devices, all of which may be
// among those that are there, stay away.
func (j Job) Loss(active, ready int) float64 {
	hostile := min(1, float64(j.Hostile(active))/float64(max(1, ready-1)))
	return 1 - (1-j.Cohort.Dropout)*(1-hostile)
}

// Hostile is how many of so many active devices may be hostile by shard.corrupt, or of
// cohort.population, if that is more. A device that leaves the fleet for long is not one of them.
func (j Job) Hostile(active int) int {
	return int(math.Ceil(j.Shard.Corrupt * float64(max(active, j.Cohort.Population))))
}

// Quorum says when a round may be drawn, and with which hit probability each is accounted.
type Quorum struct {
	// Ready is the number of devices that must be there before a coin is flipped.
	Ready int
	// Hit bounds the probability that something other than the sum shows a device's coin, as in
	// [dp.Event]; 0 if that, over all draws, is within the floors' part of delta.
	Hit float64
	// Sees bounds the probability that the declared hostile share sees a device's coin by a roster:
	// see [dp.Coalition]. 0 if rosters show nothing.
	Sees float64
	// Simulated is the hit probability of the deployment that a simulated population stands for.
	Simulated float64
}

// Quorum finds the least number of devices that must be there before a round is drawn.
//
// A round that was drawn is charged, and a shard of it is released only if enough of its devices
// answer. That must not depend on a single device's coin. So enough devices must be there, before
// any coin is flipped, that the others decide it alone, except with a probability within the
// floors' part of delta. Who is there does not depend on coins, so waiting for them reveals
// nothing. If the population is too small for that, rounds are accounted with the probability that
// is left.
//
// The error wraps ErrInvalid if one device's coin would decide in every other round.
func (j Job) Quorum() (Quorum, error) {
	if !j.Sampled() {
		return Quorum{Ready: max(j.Shard.Floor, j.Cohort.Size), Simulated: j.SimulatedHit()}, nil
	}
	key := quorumKey{j.Cohort, j.Shard, j.Draws(), j.FloorDelta(), j.ExpectedCohort(), j.Privacy.Noise, j.Hides(), j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort}
	if found, ok := quorums.Load(key); ok {
		return found.(foundQuorum).Quorum, found.(foundQuorum).err
	}
	q, err := j.findQuorum()
	q.Simulated = j.SimulatedHit()
	if err == nil {
		q.Sees = j.sees(j.Cohort.Population, q.Ready)
	}
	quorums.Store(key, foundQuorum{q, err})
	return q, err
}

// quorumKey is what a quorum follows from. A program knows few jobs.
type quorumKey struct {
	cohort   Cohort
	shard    Shard
	draws    int
	limit    float64
	expected float64
	noise    string
	hides    bool
	of, each int // of a simulated population
}

// foundQuorum is what a search came to.
type foundQuorum struct {
	Quorum
	err error
}

var quorums sync.Map // of foundQuorum by quorumKey

func (j Job) findQuorum() (Quorum, error) {
	co := j.Cohort
	draws, limit := float64(j.Draws())*co.SamplingRate, 0.9*j.FloorDelta()
	hits := map[int]float64{}
	hit := func(ready int) float64 {
		if _, ok := hits[ready]; !ok {
			_, hits[ready] = j.Groups(ready)
		}
		return hits[ready]
	}
	least := func(limit float64) int {
		return leastReady(max(2, co.Quorum), co.Population, func(n int) bool { return draws*hit(n) <= limit })
	}
	if n := least(limit); n > 0 && (co.Quorum == 0 || n == max(2, co.Quorum)) {
		return Quorum{Ready: n}, nil
	}
	// More noise, then. As many are waited for as the job says, or as keep it small, but
	// by default not for more than four fifths, who may never be there together.
	q := Quorum{Ready: co.Quorum}
	if most := max(2, co.Population*4/5); q.Ready == 0 {
		if q.Ready = least(10 * j.Delta()); q.Ready == 0 || q.Ready > most {
			q.Ready = most
		}
	}
	q.Hit = hit(q.Ready)
	for n := co.Population; n > q.Ready; n = min(n-1, n*49/50) {
		q.Hit = max(q.Hit, hit(n))
	}
	if q.Hit *= 1.05; q.Hit >= 0.5 { // the steps may have missed a little
		return Quorum{}, refuse("cohort.population = %d at sampling_rate %v with shards of %d to %d: at a dropout of %v and a share of %v that is hostile, one device's coin "+
			"decides with probability %.3g whether its shard is released",
			co.Population, co.SamplingRate, j.Shard.Floor, j.Shard.Size, co.Dropout, j.Shard.Corrupt, min(q.Hit, 1))
	}
	return q, nil
}

// Cheaper suggests a shard size, or the semi-honest profile, with which the same fleet and dropout
// would cost less noise, or none. ok is false if there is none.
func (j Job) Cheaper() (shard Shard, q Quorum, ok bool) {
	now, err := j.Quorum()
	if err != nil || now.Hit == 0 {
		return Shard{}, Quorum{}, false
	}
	for _, semiHonest := range []bool{j.Shard.SemiHonest, true} {
		k := j
		k.Cohort.Quorum, k.Shard.Size, k.Shard.Floor, k.Shard.SemiHonest = 0, 0, 0, semiHonest
		k.Shard.Size, k.Shard.Floor = k.fitShard()
		if q, err := k.Quorum(); err == nil && q.Hit < now.Hit/2 {
			return k.Shard, q, true
		}
	}
	return Shard{}, Quorum{}, false
}

// Allows reports whether a round may be drawn now, with ready of active devices there, and the
// number of groups that they are dealt into.
func (q Quorum) Allows(j Job, active, ready int) (groups int, ok bool) {
	if ready < q.Ready || !j.Sampled() {
		return max(1, j.Shard.Groups), ready >= q.Ready
	}
	groups, hit := j.groups(active, ready)
	if j.sees(active, ready) > q.Sees {
		return groups, false
	}
	if q.Hit == 0 {
		return groups, float64(j.Draws())*j.Cohort.SamplingRate*hit <= 0.9*j.FloorDelta()
	}
	return groups, hit <= q.Hit
}

// Groups returns the best number of groups to deal ready devices into, and the probability that one
// device's coin then decides something visible: whether enough are drawn, whether enough stay, or
// whether its shard is released.
func (j Job) Groups(ready int) (groups int, hit float64) {
	return j.groups(max(ready, j.Cohort.Population), ready)
}

// groups is Groups with so many active devices.
func (j Job) groups(active, ready int) (groups int, hit float64) {
	co, sh := j.Cohort, j.Shard
	a := dp.Attendance{
		Ready: ready, Hostile: j.Hostile(max(active, ready)), Rate: co.SamplingRate,
		Dropout: co.Dropout, Floor: sh.Floor, Most: sh.Size,
	}
	masking := j.Masking()
	a.Threshold = func(n int) int { return thresholdOf(masking, n) }
	groups, hit = 1, 1
	expected, last := float64(ready)*co.SamplingRate, 0
	for _, fill := range []float64{mostFill, 0.8, 0.7, 0.6, 0.5} {
		if a.Groups = max(1, int(math.Ceil(expected/(fill*float64(sh.Size))))); a.Groups == last {
			continue
		}
		last = a.Groups
		if h := a.Hit(); h < hit {
			groups, hit = a.Groups, h
		}
	}
	few := 0.0
	if co.Floor > sh.Floor { // else a cohort drawn too small is among those too few of which stay
		few = dp.FloorDelta(active, co.SamplingRate, co.Floor, 1) / co.SamplingRate
	}
	if j.OwnNoise() {
		a.Groups = groups
		return groups, min(1, few+j.fewHonest(a, active)+hit)
	}
	return groups, min(1, few+a.Short(sh.Floor)+hit)
}

// mostFill is the largest share of shard.size that is expected in a group.
const mostFill = 0.9

// thresholdOf is a configuration's threshold for n devices, 0 for none. It takes exact
// sums, and the same ones are asked for again and again.
func thresholdOf(c secagg.Config, n int) int {
	key := thresholdKey{c.CorruptPPM, c.BreachBits, c.SemiHonest, n}
	if t, ok := thresholds.Load(key); ok {
		return t.(int)
	}
	t, err := c.Threshold(n)
	if err != nil {
		t = 0
	}
	thresholds.Store(key, t)
	return t
}

type thresholdKey struct {
	corrupt    uint32
	bits       int
	semiHonest bool
	n          int
}

var thresholds sync.Map // of int by thresholdKey

// leastReady is the least number from least to most from which on fits holds, as far
// as steps of a fiftieth show; 0 if it does not hold for most.
func leastReady(least, most int, fits func(ready int) bool) int {
	lo, hi := least-1, 0
	for n := most; n >= least; n = min(n-1, n*49/50) {
		if !fits(n) {
			lo = n
			break
		}
		hi = n
	}
	for hi-lo > 1 && hi > 0 {
		if mid := lo + (hi-lo)/2; fits(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// shardSizes are what is tried where shard.size is left out: from the usual one up to
// where every peer's keys cost a small model more than its update.
var shardSizes = []int{64, 96, 128, 170, 256, 341, 512}

// fitShard chooses shard.size, and with it shard.floor where that is left out: the
// least with which three quarters of the population are a quorum that costs no noise,
// else the one that costs least.
func (j Job) fitShard() (size, floor int) {
	leastFloor := func(size int) int {
		j.Shard.Size = size
		if j.Shard.Floor != 0 {
			return j.Shard.Floor
		}
		return j.leastShard(max(2, min(8, j.Cohort.Floor)))
	}
	co := j.Cohort
	size, floor = shardSizes[0], leastFloor(shardSizes[0])
	if !j.Sampled() || !(co.SamplingRate > 0) || co.Population < 2 || co.Population > 1<<26 || j.Rounds < 1 ||
		!(co.Dropout >= 0 && co.Dropout < 1) || !(j.Shard.Corrupt >= 0 && j.Shard.Corrupt < 1) {
		return size, floor
	}
	best := Quorum{Ready: co.Population + 1, Hit: 1}
	for _, n := range shardSizes {
		k := j
		k.Shard.Floor = leastFloor(n)
		k.Shard.Size = n
		q, err := k.Quorum()
		if err == nil {
			_, err = k.contract().Terms()
		}
		if err != nil {
			continue // too few are there, or the uplink's ring too narrow
		}
		if q.Hit < 0.8*best.Hit || q.Hit == 0 && q.Ready < best.Ready {
			best, size, floor = q, n, k.Shard.Floor
		}
		if q.Hit == 0 && 4*q.Ready <= 3*co.Population {
			break
		}
	}
	return size, floor
}
