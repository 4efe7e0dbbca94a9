// Package guarantee computes the differential privacy that a planned job has, and says it in words.
package guarantee

import (
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/internal/app/usage"
)

// Plan is a job in the terms of its privacy.
type Plan struct {
	Rate         float64 // of each device's coin in a round, in (0, 1]
	Noise        float64 // standard deviation over L2 sensitivity
	Delta        float64
	Epsilon      float64 // asked for; 0: the noise is given
	RDPNoise     float64 // what the Rényi accountant would have asked for; 0: not computed
	Rounds       int
	Population   int     // 0: not known
	Accountant   string  // "tight" or "rdp"
	ProviderRate float64 // of each provider's coin inside its device; 0: the device is the unit
	Hidden       bool    // with ProviderRate: nothing shows which devices take part
	Hit          float64 // probability that a coin shows by more than the sum
	Fixed        bool    // cohorts are of a fixed size
}

// CheckUnit refuses rates and flags of providers that do not go together.
func (p *Plan) CheckUnit() error {
	if !(p.ProviderRate >= 0 && p.ProviderRate <= 1) {
		return usage.Errorf("--provider-rate %v, want in [0, 1]", p.ProviderRate)
	}
	if p.Hidden && p.ProviderRate == 0 {
		return usage.Errorf("--participation-hidden is about providers: give --provider-rate")
	}
	return nil
}

// Group sets the sampling of providers; only where ProviderRate is set.
func (p *Plan) Group() dp.GroupSampling {
	return dp.GroupSampling{ClientRate: p.Rate, ProviderRate: p.ProviderRate, Hidden: p.Hidden}
}

// Event is a number of rounds of the job, as accountants take them.
func (p *Plan) Event(rounds int) dp.Event {
	e := dp.Rounds(dp.Mechanism{SamplingRate: p.Rate, NoiseMultiplier: p.Noise}, rounds)
	if p.ProviderRate > 0 {
		e = p.Group().Rounds(p.Noise, rounds)
	}
	e.Hit, e.Fixed = p.Hit, p.Fixed
	return e
}

// Calibrate returns the least noise multiplier that keeps the rounds within Epsilon, against the
// public.
func (p *Plan) Calibrate(acct dp.Accountant) (float64, error) {
	return accounting.CalibrateEvent(p.Epsilon, p.Delta, acct, dp.Public, p.rounds())
}

// rounds are all of the plan's, for a noise multiplier.
func (p *Plan) rounds() func(z float64) dp.Event {
	with := *p
	return func(z float64) dp.Event {
		with.Noise = z
		return with.Event(p.Rounds)
	}
}
