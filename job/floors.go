package job

import "github.com/starling-fl/starling/dp"

// Draws is the largest number of rounds, those included that were charged and
// released nothing, that a sampled job may draw: what its floors add to delta is
// bounded for so many.
func (j Job) Draws() int { return j.Rounds + (j.Rounds+3)/4 }

// FloorDelta is the part of the job's delta that is kept for cohorts below a
// floor; the accountant is asked at the rest.
func (j Job) FloorDelta() float64 {
	if j.Cohort.SamplingRate >= 1 {
		return 0
	}
	return j.Delta() * dp.FloorShare
}

// Quorum is the number of devices that must be there before a round is drawn.
//
// A round that is drawn is charged, and where fewer than shard.floor of its cohort
// are there it releases noise only. That decision may not hang on one device's
// coin: so many must be there, before any coin is flipped, that all their coins
// together leave too few with a chance that is within the floors' part of delta.
// Who is there does not depend on coins, so that waiting for them shows nothing.
func (j Job) Quorum() (int, error) {
	co, draws := j.Cohort, j.Draws()
	if co.SamplingRate >= 1 {
		return j.Shard.Floor, nil
	}
	limit := j.FloorDelta()
	drawn := 0.0
	if co.Floor > j.Shard.Floor { // else a cohort drawn too small is among those too few of which are there
		drawn = dp.FloorDelta(co.Population, co.SamplingRate, co.Floor, draws)
	}
	n, ok := dp.FloorQuorum(co.Population, co.SamplingRate, j.Shard.Floor, draws, limit-drawn)
	if !ok {
		return 0, refuse("cohort.floor = %d and shard.floor = %d: with %d devices at rate %v, one device's coin decides in one of %d draws "+
			"whether there is a cohort with probability %.3g, limit delta/100 = %.3g; lower the floors, or raise the population or the rate",
			co.Floor, j.Shard.Floor, co.Population, co.SamplingRate, draws,
			drawn+dp.FloorDelta(co.Population, co.SamplingRate, j.Shard.Floor, draws), limit)
	}
	return n, nil
}
