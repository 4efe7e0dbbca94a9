package core

import (
	"fmt"
	"math"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/model/evaluate/metric"
)

// Movement tells, by released sums alone, whether a job's adapter moves by more than its noise. It
// is a function of what is public, and costs no privacy. The zero value has seen no round.
//
// By noise alone the squared norm of a sum's D coordinates has mean D v and standard deviation v
// sqrt(2D), v being the noise's variance. Movement is measured in these standard deviations.
type Movement struct {
	Moved  bool // some round's sum, or those since, stood out of the noise
	Rounds int  // released since then, or since the process began

	excess float64 // sum over these of what their norms had beyond their mean
	expect float64 // sum of what a fleet that trains would have had at least
}

const (
	// standsOut is how many standard deviations of the noise show that there is more than noise: by
	// noise alone one look of 30,000 does.
	standsOut = 4
	// shouldStandOut is what rounds must be expected to show before their silence means anything.
	shouldStandOut = 2 * standsOut
	// leastStill is the least number of rounds that are said to be noise alone.
	leastStill = 3
	// alignedShare is how much of its clip norm a device that trains moves the sum by in the
	// direction of the others, at least: an eighth.
	alignedShare = 1.0 / 8
)

// take takes a released sum in: its coordinates of the update, the variance of the noise in each,
// the squared norm bound of one device's part, and how many devices are in it.
func (m *Movement) take(sum []int64, variance float64, b2 int64, devices int) {
	var norm2 float64
	for _, v := range sum {
		norm2 += float64(v) * float64(v)
	}
	m.Rounds++
	excess, expect := 0.0, math.Inf(1)
	if variance > 0 {
		sd := variance * math.Sqrt(2*float64(len(sum)))
		excess = (norm2 - float64(len(sum))*variance) / sd
		aligned := alignedShare * float64(devices)
		expect = aligned * aligned * float64(b2) / sd
	} else if norm2 > 0 { // without noise everything is an update
		excess = math.Inf(1)
	}
	m.excess, m.expect = m.excess+excess, m.expect+expect
	if excess >= standsOut || m.excess >= standsOut*math.Sqrt(float64(m.Rounds)) {
		*m = Movement{Moved: true}
	}
}

// Still reports whether the rounds since something last stood out moved the adapter by noise alone,
// and a fleet that trains would have shown in them.
func (m *Movement) Still() bool {
	return m.Rounds >= leastStill && m.expect >= shouldStandOut*math.Sqrt(float64(m.Rounds))
}

// String says so, to the operator.
func (m *Movement) String() string {
	return fmt.Sprintf("the adapter has moved by noise alone for %d rounds: updates are zero or nearly zero "+
		"(training diverges, learning rates, data)", m.Rounds)
}

// note takes a released sum in. Of trimmed shards with devices' own noise it is not known how much noise is left, and
// nothing is said.
func (c *Core) note(d *Draw, sum []int64, devices int, shares uint64) {
	if d.kept < 1 && d.vector.Own != (dp.Variance{}) {
		return
	}
	variance := d.added(d.event.Sigma2, devices, shares)
	if d.spec.Unnoised {
		variance = 0
	}
	c.movement.take(sum[:d.vector.Lattice.D()], variance, d.vector.Lattice.B2(), int(d.kept*float64(devices)))
}

// Movement returns how far the released rounds of this process moved the adapter.
func (c *Core) Movement() Movement { return c.movement }

// Silent is the expected number of units less those that reported figures, with its noise; zero
// if the job asks for none.
func (d *Draw) Silent() metric.Noisy { return d.silent }
