package guarantee

import (
	"errors"
	"fmt"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/job"
)

// Explained describes the privacy of a job.
type Explained struct {
	Name            string  `json:"name,omitempty"`
	Population      int     `json:"population"`
	SamplingRate    float64 `json:"sampling_rate"`
	Cohort          int     `json:"cohort,omitempty"` // of a fixed size
	Rounds          int     `json:"rounds"`
	NoiseMultiplier float64 `json:"noise_multiplier"`
	NoiseScale      float64 `json:"noise_scale"` // below 1: a larger cohort's noise is simulated
	SimulatedRate   float64 `json:"simulated_rate,omitempty"`
	SimulatedOf     int     `json:"simulated_population,omitempty"`
	Separation      int     `json:"separation,omitempty"`    // rounds from one of a device's to its next, with banded noise
	Band            int     `json:"band,omitempty"`          // rounds that share noise
	ProviderRate    float64 `json:"provider_rate,omitempty"` // 0: devices are protected
	Hidden          bool    `json:"participation_hidden,omitempty"`
	Providers       float64 `json:"providers,omitempty"`         // expected in a device
	Adaptive        float64 `json:"adaptive_quantile,omitempty"` // of the clip norm; 0: it stays
	Shard           int     `json:"shard,omitempty"`
	// If coins choose the cohort: what is declared of it, and what follows.
	Dropout   float64 `json:"dropout,omitempty"`
	Hostile   float64 `json:"hostile,omitempty"`
	Quorum    int     `json:"quorum,omitempty"`
	Hit       float64 `json:"hit,omitempty"`
	NoiseFree float64 `json:"noise_multiplier_without_hits,omitempty"` // what the noise would be; 0: the same
	// Delivered holds against the budget's observer, Public against the public, Visible against
	// observers of who takes part, Coalition against the declared hostile share if it sees rosters.
	Observer  dp.Observer   `json:"observer"`
	Sees      float64       `json:"coalition_sees,omitempty"`                  // a device's coin in a round, with this probability
	ForPublic float64       `json:"noise_multiplier_against_public,omitempty"` // what the noise would be; 0: the same
	Delivered dp.Guarantee  `json:"delivered"`
	Public    dp.Guarantee  `json:"public"`
	Coalition *dp.Guarantee `json:"coalition,omitempty"`
	Visible   dp.Guarantee  `json:"visible"`
	Simulated *dp.Guarantee `json:"simulated,omitempty"`
	// If devices add the noise: how much each, on how many of them epsilon rests, and
	// what holds against the coordinator itself. Elsewhere against it nothing holds.
	OwnNoise   float64       `json:"own_noise,omitempty"`
	Honest     int           `json:"honest,omitempty"`
	Untrusted  *dp.Guarantee `json:"untrusted,omitempty"`
	Statements []Statement   `json:"statements"`

	protected int      // units of a job file; 0 if it was given as flags
	floor     float64  // part of the job's delta that its floors have
	job       *job.Job // of a job file
	quorum    job.Quorum
	cheaper   string // what of a job file would cost less noise
}

// Statement answers one question that readers ask before they decide.
type Statement struct {
	Question string `json:"question"`
	Answer   string `json:"answer"`
}

// Explain computes a plan's guarantees. Above 0, simulatedOf and simulatedCohort are the population and its cohort
// whose noise is simulated.
func Explain(p Plan, simulatedOf, simulatedCohort int) (Explained, error) {
	var e Explained
	err := e.fill(&p, simulatedOf, simulatedCohort)
	return e, err
}

// ExplainJob computes the guarantees of a job file.
func ExplainJob(j job.Job) (Explained, error) {
	var p Plan
	e := Explained{job: &j, Name: j.Name, Shard: j.Shard.Size, Cohort: j.Cohort.Size, protected: j.Protected(), floor: j.FloorDelta()}
	if err := e.attendance(j, &p); err != nil {
		return e, err
	}
	if of := j.Providers; of.Max > 0 {
		e.Providers, p.ProviderRate, p.Hidden = of.Expected, of.SamplingRate, j.Hides()
	}
	if j.Clipping.Adaptive {
		e.Adaptive = j.Clipping.Quantile
	}
	p.Rate, p.Rounds, p.Population = j.Cohort.SamplingRate, j.Rounds, j.Cohort.Population
	p.Separation, p.Band = j.Privacy.Separation, j.Privacy.Band
	p.Noise, p.Epsilon, p.Delta, p.Accountant = j.Privacy.NoiseMultiplier, j.Privacy.Epsilon, j.Privacy.Delta, j.Privacy.Accountant
	err := e.fill(&p, j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort)
	return e, err
}

// fill computes the guarantees of the job.
func (e *Explained) fill(p *Plan, simulatedOf, simulatedCohort int) error {
	acct, err := dp.ParseAccountant(p.Accountant)
	if err != nil {
		return usage.Wrap(err)
	}
	if p.Rounds > dp.MaxRounds {
		return usage.Errorf("rounds %d, want at most %d", p.Rounds, dp.MaxRounds)
	}
	if p.Population < 1 || p.Rounds < 1 || !(p.Rate > 0 && p.Rate <= 1) {
		return usage.Errorf("population %d, rounds %d, sampling rate %v: want at least 1, at least 1, and in (0, 1]", p.Population, p.Rounds, p.Rate)
	}
	if (simulatedOf > 0) != (simulatedCohort > 0) || simulatedCohort > simulatedOf {
		return usage.Errorf("simulated population %d with simulated cohort %d: want both or neither, the cohort the smaller", simulatedOf, simulatedCohort)
	}
	if err := p.CheckUnit(); err != nil {
		return err
	}
	e.Population, e.SamplingRate, e.Rounds, e.NoiseScale = p.Population, p.Rate, p.Rounds, 1
	e.ProviderRate, e.Hidden = p.ProviderRate, p.Hidden
	e.Separation, e.Band = p.Separation, int(p.banded(p.Rounds).Band)
	e.Observer = p.Observer()
	if e.job != nil {
		e.Observer = e.job.Observer()
	}
	n, rate, simulatedHit := p.Population, p.Rate, 0.0 // of the population that the budget is about
	if simulatedOf > 0 {
		n, rate = simulatedOf, float64(simulatedCohort)/float64(simulatedOf)
		e.SimulatedOf, e.SimulatedRate = n, rate
		e.NoiseScale = p.Rate * float64(p.Population) / float64(simulatedCohort)
		if e.NoiseScale >= 1 {
			return usage.Errorf("simulated cohort %d is not above the real one, %v in expectation", simulatedCohort, p.Rate*float64(p.Population))
		}
	}
	if e.protected > 0 {
		n = e.protected
	}
	if p.Delta == 0 {
		p.Delta = dp.DefaultDelta(n)
	}
	if _, err := dp.CheckDelta(p.Delta, n); err != nil {
		return usage.Wrap(err)
	}
	if simulatedOf > 0 {
		simulatedHit = e.quorum.Simulated
		if e.job == nil { // the flags name no shards: the defaults'
			j := job.Default()
			j.Rounds, j.Privacy.Delta, j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort = p.Rounds, p.Delta, simulatedOf, simulatedCohort
			simulatedHit, e.floor = j.SimulatedHit(), j.FloorDelta()
		}
	}
	e.NoiseMultiplier = p.Noise
	if e.NoiseMultiplier == 0 {
		if !(p.Epsilon > 0) {
			return usage.Errorf("--noise-multiplier or --epsilon is required")
		}
		budget := *p
		budget.Rate, budget.Delta = rate, p.Delta-e.floor
		if simulatedOf > 0 {
			budget.Hit = simulatedHit
		}
		rounds := budget.rounds()
		if e.job != nil {
			rounds = e.job.BudgetRounds(e.quorum)
		}
		calibrate := func(of dp.Observer, without bool) (float64, error) {
			return accounting.CalibrateEvent(p.Epsilon, budget.Delta, acct, of, func(z float64) dp.Event {
				event := rounds(z)
				if without {
					event.Hit = 0
				}
				return event
			})
		}
		if e.NoiseMultiplier, err = calibrate(e.Observer, false); err != nil {
			return err
		}
		if one := rounds(1); one.Hit > 0 {
			if e.NoiseFree, err = calibrate(e.Observer, true); err != nil {
				return err
			}
		}
		if e.Observer != dp.Public && rate < 1 {
			if e.ForPublic, err = calibrate(dp.Public, false); err != nil {
				return err
			}
		}
		p.Noise = e.NoiseMultiplier
	}
	event := p.Event(p.Rounds)
	event.NoiseScale, event.SimulatedRate, event.SimulatedHit = e.NoiseScale, e.SimulatedRate, simulatedHit
	if e.job != nil {
		event.Coalition = e.job.Coalition(e.quorum)
		e.Sees = event.Coalition.Sees
	}
	if e.job != nil && e.job.OwnNoise() {
		event.Own = e.job.Own(e.NoiseMultiplier).OwnNoise
		e.OwnNoise, e.Honest = event.Own.Multiplier, int(event.Own.Honest)
	}
	events := []dp.Event{event}
	stated := accounting.Budget{Delta: p.Delta, Floor: e.floor, Accountant: acct}
	var errs []error
	compose := func(f func([]dp.Event, float64, dp.Accountant) (dp.Guarantee, error)) dp.Guarantee {
		g, err := stated.Guarantee(f, events)
		if e.job != nil && g.Adjacency == dp.AdjacencyAddRemove { // a coordinator waits for those who are there
			g.Adjacency = dp.ZeroOut(g.Adjacency)
		}
		errs = append(errs, err)
		return g
	}
	e.Delivered, e.Public, e.Visible = compose(accounting.Against(e.Observer)), compose(accounting.Epsilon), compose(accounting.VisibleEpsilon)
	if e.Sees > 0 {
		g := compose(accounting.CoalitionEpsilon)
		e.Coalition = &g
	}
	if simulatedOf > 0 {
		g := compose(accounting.SimulatedEpsilon)
		e.Simulated = &g
	}
	if e.OwnNoise > 0 {
		g := compose(accounting.UntrustedEpsilon)
		e.Untrusted = &g
	}
	e.Statements = e.statements()
	return errors.Join(errs...)
}

// attendance takes over what a job declares of who comes and stays, and what that costs.
func (e *Explained) attendance(j job.Job, p *Plan) error {
	q, err := j.Quorum()
	e.quorum = q
	if p.Hit, p.Fixed = 0, j.Fixed(); !j.Sampled() || err != nil {
		return err
	}
	e.Dropout, e.Hostile, e.Quorum, e.Hit, p.Hit = j.Cohort.Dropout, j.Shard.Corrupt, q.Ready, q.Hit, q.Hit
	if shard, with, ok := j.Cheaper(); ok {
		profile := ""
		if shard.SemiHonest && !j.Shard.SemiHonest {
			profile = ", shard.semi_honest: true, where the coordinator is trusted to follow the protocol,"
		}
		cost := "costs no noise"
		if with.Hit > 0 {
			cost = fmt.Sprintf("brings that probability to %.3g", with.Hit)
		}
		e.cheaper = fmt.Sprintf(" So does shard.size: %d%s with %d devices there: that %s.", shard.Size, profile, with.Ready, cost)
	}
	return nil
}
