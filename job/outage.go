package job

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/starling-fl/starling/dp"
)

// Outages tests the hit probability at the losses that were observed against what the declared
// dropout explains, over all rounds. Hits are convex in the loss: a fleet that loses the declared
// share on average, but three times as much in one round of five, is hit far more often than was
// accounted, and neither its mean nor any single round needs to be striking.
//
// It is a bet (Shafer 2021; Ville 1939): each of three gamblers stakes a share of what it has on a
// round's hit probability being above its mean. While no round loses more than is declared, by
// devices that leave each by itself, none of them has more than 1/p at any time but with
// probability p.
type Outages [3]float64 // logarithms of what the gamblers have

var stakes = Outages{0.02, 0.1, 0.5}

// Take counts a round in: lost of asked devices did not stay, share being the largest share that
// may be lost, ready devices having been dealt into groups.
func (o *Outages) Take(j Job, ready, groups, asked, lost int, share float64) {
	if asked < 1 || !(share > 0 && share < 1) {
		return
	}
	// A step function of the losses that grows, each step the hit probability where it begins.
	hits, mean, seen, above := j.hitsAt(ready, groups), 0.0, 0.0, 1.0
	for i, hit := range hits {
		next := 0.0
		if i+1 < len(hits) {
			next = dp.BinomialTail(asked, share, leastLost(i+1, asked))
		}
		mean += (above - next) * hit
		above = next
		if lost >= leastLost(i, asked) {
			seen = hit
		}
	}
	if !(mean > 0) {
		return
	}
	for i, stake := range stakes {
		o[i] += math.Log1p(stake * (seen/mean*(1-1e-6) - 1)) // tails are good to 1e-9
	}
}

// Beyond reports whether the gamblers have more than chance gives them with probability p.
func (o Outages) Beyond(p float64) bool {
	sum := 0.0
	for _, have := range o {
		sum += math.Exp(have) / float64(len(o))
	}
	return sum >= 1/p
}

// lossSteps is how many losses hit probabilities are computed at, from 0 on.
const lossSteps = 64

// leastLost is the least number of those asked that is the loss of a step.
func leastLost(step, asked int) int { return (step*asked + lossSteps - 1) / lossSteps }

// hitsAt are the probabilities that one device's coin decides over its shard where each step's
// share of the others does not stay.
func (j Job) hitsAt(ready, groups int) *[lossSteps]float64 {
	key := lossKey{j.Cohort, j.Shard, ready, groups}
	if found, ok := losses.Load(key); ok {
		return found.(*[lossSteps]float64)
	}
	masking, hits := j.Masking(), new([lossSteps]float64)
	for i := range hits {
		hits[i] = dp.Attendance{
			Ready: ready, Rate: j.Cohort.SamplingRate, Groups: max(1, groups), Dropout: float64(i) / lossSteps, Floor: j.Shard.Floor, Most: j.Shard.Size,
			Threshold: func(n int) int { return thresholdOf(masking, n) },
		}.Hit()
	}
	if lossesKept.Add(1) > 1000 {
		losses.Clear()
		lossesKept.Store(0)
	}
	losses.Store(key, hits)
	return hits
}

type lossKey struct {
	cohort        Cohort
	shard         Shard
	ready, groups int
}

var (
	losses     sync.Map // of hits by lossKey
	lossesKept atomic.Int64
)
