package dp

import "math"

// FloorShare is the fraction of delta that is set aside for cohorts below their floor if coins draw
// the cohort. Accountants get the rest, so that both together are delta.
const FloorShare = 0.01

// FloorDelta bounds what a floor adds to delta over a number of rounds. In each,
// every one of members flips a coin of probability q, and the sum is released only
// if at least floor of them are in; else noise alone.
//
// With the floor, one member's coin decides whether the others' sum is released at
// all, if exactly floor-1 others are in and its own coin says in. Unless that
// happens, the round is the sampled Gaussian that accountants know. So this is
// rounds * q * P[Binomial(members-1, q) < floor], "below" in place of "one below"
// because of those who are in and then drop out. docs/privacy/proofs.md, section 5, has
// the proof.
func FloorDelta(members int, q float64, floor, rounds int) float64 {
	if q >= 1 || floor < 1 {
		return 0 // no coin decides anything
	}
	return min(1, float64(rounds)*q*CohortFloorFailure(members-1, q, floor, 1))
}

// Floored restates a guarantee that was computed at part of delta as one at the whole delta, the
// rest being set aside for cohorts below their floor.
func (g Guarantee) Floored(delta float64) Guarantee {
	g.FloorDelta = math.Max(0, delta-g.Delta)
	g.Delta = delta
	return g
}
