package job

import (
	"fmt"
	"math"
	"sync"

	"github.com/starling-fl/starling/dp"
)

// Whose noise an epsilon rests on: see [Privacy.Noise].
const (
	NoiseCentral = "central"
	NoiseDevices = "devices"
	NoiseSilo    = "silo"
)

// Own is the noise that a job's devices add themselves, and what a round needs for it to count.
type Own struct {
	dp.OwnNoise
	// Min is the number of devices whose updates a release needs. With fewer, nothing is released
	// and the round is charged. Whether there are enough does not depend on one device's coin,
	// except with a probability within the bound of [Quorum.Hit].
	Min int
	// Max is the number of devices whose noise every release contains, however many took part: the
	// coordinator adds what is missing, since the number would show how a device's coin fell. It is
	// 0 if no coin is to be hidden.
	Max int
}

// OwnNoise reports whether devices add noise themselves.
func (j Job) OwnNoise() bool { return j.Privacy.Noise == NoiseDevices || j.Privacy.Noise == NoiseSilo }

// Own is the noise that devices add if the noise multiplier of the job's target is z.
func (j Job) Own(z float64) Own {
	if !j.OwnNoise() {
		return Own{}
	}
	o := Own{OwnNoise: dp.OwnNoise{Honest: 1, Apart: uint32(j.honestApart())}, Min: j.leastRelease(), Max: j.mostShares()}
	if j.Privacy.Noise == NoiseDevices {
		o.Honest = uint32(j.honest())
	}
	o.Seen = j.Sampled() && j.Privacy.Noise == NoiseSilo && j.Providers.Max == 0
	// Seven digits, rounded up, and a little above for the rounding of variances.
	need := z * j.NoiseScale() / math.Sqrt(float64(o.Honest)) * (1 + 1e-8)
	if unit := math.Pow(10, math.Floor(math.Log10(need))-6); need > 0 {
		need = math.Ceil(need/unit) * unit
	}
	o.Multiplier = max(j.Privacy.OwnNoise, need)
	return o
}

// leastRelease is Own.Min.
func (j Job) leastRelease() int {
	switch {
	case j.Privacy.Noise != NoiseDevices, j.Shard.Trim > 0: // thresholds hold each shard to it
		return 0
	case j.Sampled():
		return j.honest()
	}
	return j.Cohort.Floor
}

// honest is the number of honest devices that a release surely has noise of. The declared
// hostile share is of all devices, and all of these may be among those that stay: of
// cohort.floor survivors they are taken off whole. Where coins choose the cohort the floor's
// share 1 - shard.corrupt is counted on, and a round is drawn only where so many honest devices
// will stay besides (see fewHonest).
//
// Where shards' sums are trimmed each stands for itself, since what is released is not a sum of
// all. A shard's threshold then includes the hostile that chance deals into it: no more than
// mostHostile.
func (j Job) honest() int {
	switch {
	case j.Shard.Trim > 0:
		hostile := j.Hostile(j.Cohort.Population)
		return j.leastOf(func(n, threshold int) int { return threshold - j.mostHostile(n, hostile) })
	case j.Sampled():
		return max(1, int(float64(j.Cohort.Floor)*(1-j.Shard.Corrupt)+1e-9))
	}
	return max(1, j.Cohort.Floor-j.Hostile(j.Cohort.Population))
}

// Needs is the number of devices that a release needs if so many are active: beyond the
// population a share shard.corrupt of them is hostile, too, and adds no noise.
func (o Own) Needs(j Job, active int) int {
	hostile := j.Hostile(j.Cohort.Population)
	if o.Honest < 2 || j.Sampled() || active <= j.Cohort.Population || hostile == 0 {
		return o.Min
	}
	if j.Shard.Trim > 0 { // as small a share of the cohort as shards' noise is counted for
		return int(math.Ceil(float64(j.Cohort.Floor) * float64(j.Hostile(active)) / float64(hostile)))
	}
	return max(o.Min, int(o.Honest)+j.Hostile(active))
}

// mostHostile is a number of hostile devices that no shard of n devices exceeds in all of the
// job's rounds, but with half of what is set aside of delta. Shards are cut by chance, in the
// worst case of a cohort of cohort.floor devices that has all of the hostile. A shard that is not
// broken has an honest device in any case.
func (j Job) mostHostile(n, hostile int) int {
	of := max(j.Cohort.Floor, n)
	hostile = min(hostile, of)
	shards := float64(j.Draws()) * math.Ceil(float64(max(j.Cohort.Population, j.Cohort.MaxEnrolled))/float64(max(1, j.Shard.Floor)))
	most, tail, limit := min(n, hostile), 0.0, j.FloorDelta()/2
	for most > 0 {
		if tail += dp.Hypergeometric(of, hostile, n, most); tail*shards > limit {
			break
		}
		most--
	}
	return most
}

// honestApart is the number of honest devices in any sum that the coordinator comes to see,
// while fewer devices of a shard are corrupted than break it (docs/PROTOCOL.md, section 8).
func (j Job) honestApart() int {
	return j.leastOf(func(n, threshold int) int {
		if j.Shard.SemiHonest {
			return 1
		}
		return min(threshold, n-threshold+1)
	})
}

// leastOf is the least of something, at least 1, over all sizes that a shard may have.
func (j Job) leastOf(of func(n, threshold int) int) int {
	least, masking := math.MaxInt, j.Masking()
	for n := j.Shard.Floor; n <= j.Shard.Size; n++ {
		if t := thresholdOf(masking, n); t > 0 {
			least = min(least, of(n, t))
		}
	}
	if least == math.MaxInt {
		return 1
	}
	return max(1, least)
}

// mostShares is a number of devices that a cohort does not exceed, but with a fiftieth of
// what the floors have of delta.
func (j Job) mostShares() int {
	if !j.OwnNoise() || !j.Sampled() || !j.Hides() || !(j.Cohort.SamplingRate > 0) {
		return 0
	}
	n, q := j.Cohort.Population, j.Cohort.SamplingRate
	limit := 0.02 * j.FloorDelta() / (float64(j.Draws()) * q)
	return most(mostKey{n, q, limit, int(j.ExpectedCohort())})
}

// mostKey is what the largest cohort follows from.
type mostKey struct {
	n           int
	rate, limit float64
	expected    int
}

// mosts are of int by mostKey. A search for a quorum asks for the same one thousands of times, and of
// a million devices one takes a second.
var mosts sync.Map

func most(k mostKey) int {
	if found, ok := mosts.Load(k); ok {
		return found.(int)
	}
	lo, hi := k.expected, k.n
	for lo < hi {
		if mid := lo + (hi-lo)/2; dp.BinomialTail(k.n-1, k.rate, mid) <= k.limit {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	mosts.Store(k, hi)
	return hi
}

// fewHonest bounds the probability that others than one device make no release of a
// round's honest devices: that fewer of them are drawn and stay than the noise is counted
// for, also where whole shards are lost, or that more are drawn than noise is made up for.
func (j Job) fewHonest(a dp.Attendance, active int) float64 {
	least := j.leastRelease()
	most := 0.0
	if n := j.mostShares(); n > 0 {
		most = dp.BinomialTail(active-1, j.Cohort.SamplingRate, n)
	}
	if a.Groups == 1 { // where it is lost nothing is released anyhow
		return min(1, most+a.Short(max(j.Shard.Floor, least)))
	}
	few := 1.0
	for lost := range min(a.Groups, 4) {
		few = min(few, a.Short(max(j.Shard.Floor, least+lost*j.Shard.Size))+a.Lost(lost))
	}
	return min(1, most+few)
}

// validateOwn checks whose noise is counted.
func (j Job) validateOwn() error {
	p := j.Privacy
	switch p.Noise {
	case "", NoiseCentral, NoiseDevices, NoiseSilo:
	default:
		return refuse("privacy.noise is %.40q, must be central (the coordinator adds it), devices (they do, together) or silo (each does, for itself)", p.Noise)
	}
	if !(p.OwnNoise >= 0) || math.IsInf(p.OwnNoise, 1) {
		return refuse("privacy.own_noise is %v, must be positive, or 0 for what the target needs", p.OwnNoise)
	}
	if p.OwnNoise != 0 && !j.OwnNoise() {
		return refuse("privacy.own_noise is %v and privacy.noise central: devices add none then; set privacy.noise: devices", p.OwnNoise)
	}
	if p.Noise == NoiseDevices && j.Shard.Trim == 0 && !j.Sampled() && !p.None && j.Cohort.Floor <= j.Hostile(j.Cohort.Population) {
		return refuse("privacy.noise is devices and cohort.floor %d: of %d devices %d may be hostile (shard.corrupt = %v) and add no noise, "+
			"so that no honest one's is sure; raise cohort.floor, or lower shard.corrupt",
			j.Cohort.Floor, j.Cohort.Population, j.Hostile(j.Cohort.Population), j.Shard.Corrupt)
	}
	if p.None && j.OwnNoise() {
		return refuse("privacy.none is set, and privacy.noise %s as well: without noise there is none to choose", p.Noise)
	}
	if j.OwnNoise() && j.Simulated() {
		instead := "what the target needs is about what so many would add"
		if p.OwnNoise > 0 {
			instead = fmt.Sprintf("what %d devices add is privacy.noise_multiplier: %.4g", p.SimulatedCohort, p.OwnNoise*math.Sqrt(float64(p.SimulatedCohort)))
		}
		return refuse("privacy.noise is %s, and a cohort here stands for one of %d (privacy.simulated_cohort): few devices' own noise is not that of many. Simulate it as privacy.noise: central; %s",
			p.Noise, p.SimulatedCohort, instead)
	}
	return nil
}
