package simulate

import (
	"slices"

	"github.com/starling-fl/starling/dp"
)

// apart is how the next cohort is drawn: with banded noise of those who were in none of the last
// privacy.separation - 1 rounds.
func (r *Run) apart() dp.Draw {
	if !r.job.Banded() {
		return r.coins
	}
	resting := slices.Concat(r.resting...)
	slices.Sort(resting)
	return dp.SeparatedDrawNumbered(r.cfg.Population.Len(), r.job.Cohort.Size, resting)
}

// rest keeps a released round's cohort out of the next ones.
func (r *Run) rest(cohort []int) {
	if !r.job.Banded() {
		return
	}
	r.resting = append(r.resting, cohort)
	if n := r.job.Privacy.Separation - 1; len(r.resting) > n {
		r.resting = r.resting[len(r.resting)-n:]
	}
}
