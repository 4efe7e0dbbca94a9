package job

import (
	"fmt"
	"math"

	"github.com/starling-fl/starling/dp"
)

// Observer is who the budget's epsilon holds against: privacy.observer, or by default the honest
// one. Where no coin is to be hidden that is everybody who sees who takes part. Where coins are,
// and rosters show identities, the declared hostile share may tell what it sees. A simulated
// population has no rosters; its guarantee is the public's, as in the literature.
func (j Job) Observer() dp.Observer {
	switch o := dp.Observer(j.Privacy.Observer); {
	case o != "":
		return o
	case j.Simulated():
		return dp.Public
	case !j.Sampled() || !j.Hides():
		return dp.Participants
	case j.colludes():
		return dp.Colluding
	}
	return dp.Public
}

// colludes reports whether hostile devices see by rosters whose coins fell on in.
func (j Job) colludes() bool {
	return j.Sampled() && j.Hides() && !j.Shard.Anonymous && j.Shard.Corrupt > 0
}

// Coalition is what the declared hostile share sees of a device's coin in a round, if it shares its
// rosters.
func (j Job) Coalition(q Quorum) dp.Coalition {
	if q.Sees == 0 {
		return dp.Coalition{}
	}
	return dp.Coalition{Share: j.Shard.Corrupt, Sees: q.Sees}
}

// sees bounds the probability that a hostile device is drawn into a given device's shard, ready of
// active devices being there, all of the hostile among them. Each is in the shard by a coin of
// sampling_rate over the number of groups, which are made for nine tenths of shard.size or fewer.
func (j Job) sees(active, ready int) float64 {
	if !j.colludes() || ready < 1 {
		return 0
	}
	p := min(j.Cohort.SamplingRate, mostFill*float64(j.Shard.Size)/float64(ready))
	return min(1, -math.Expm1(float64(j.Hostile(active))*math.Log1p(-p))*(1+1e-9))
}

// stand is the deployment that a simulated population stands for: its coins, with the default
// shards, which the few devices that take part could not have.
func (j Job) stand() Job {
	k, d := j, Default()
	k.Cohort, k.Shard = d.Cohort, d.Shard
	k.Cohort.Population, k.Cohort.SamplingRate, k.Cohort.Dropout = j.BudgetPopulation(), j.BudgetRate(), j.Cohort.Dropout
	k.Shard.SemiHonest, k.Shard.Corrupt = j.Shard.SemiHonest, max(j.Shard.Corrupt, d.Shard.Corrupt)
	k.Privacy.SimulatedPopulation, k.Privacy.SimulatedCohort, k.Privacy.Delta = 0, 0, j.Delta()
	return k.Derived()
}

// SimulatedHit is the hit probability of the deployment that a simulated population stands for: all
// but 1, so that no coin hides anybody, where one device's coin would decide too often for it to be
// run.
func (j Job) SimulatedHit() float64 {
	if !j.Simulated() || !(j.BudgetRate() < 1) {
		return 0
	}
	q, err := j.stand().Quorum()
	if err != nil {
		return math.Nextafter(1, 0)
	}
	return q.Hit
}

// validateObserver refuses an observer that the job has no number for.
func (j Job) validateObserver() error {
	p := j.Privacy
	if p.Observer == "" {
		return nil
	}
	o, err := dp.ParseObserver(p.Observer)
	if err != nil {
		return refuse("privacy.observer is %.40q, must be public, coalition or participants", p.Observer)
	}
	why := ""
	switch {
	case p.None:
		return refuse("privacy.none is set, and privacy.observer %s as well: nothing is promised against anybody", o)
	case o == dp.Public:
		return nil
	case j.Simulated():
		why = "a simulated population has no rosters: its guarantee is against the public"
	case o == dp.Participants:
		return nil
	case j.Shard.Corrupt == 0:
		why = "shard.corrupt is 0, so that no device is taken to collude: declare a share, or set public or participants"
	case j.Shard.Anonymous:
		why = "shard.anonymous is set, so that rosters show a coalition nothing: leave the key out"
	case !j.colludes():
		why = fmt.Sprintf("cohort.sampling_rate is %v: no coin is hidden, leave the key out", j.Cohort.SamplingRate)
	}
	if why != "" {
		return refuse("privacy.observer is %s: %s", o, why)
	}
	return nil
}
