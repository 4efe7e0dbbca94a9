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
	Separation   int     // rounds from one of a device's to its next, with banded noise; 0: noise is independent
	Band         int     // rounds that share noise; 0: Separation
}

// CheckUnit refuses rates and flags of providers that do not go together.
func (p *Plan) CheckUnit() error {
	if !(p.ProviderRate >= 0 && p.ProviderRate <= 1) {
		return usage.Errorf("--provider-rate %v, want in [0, 1]", p.ProviderRate)
	}
	if p.Hidden && p.ProviderRate == 0 {
		return usage.Errorf("--participation-hidden is about providers: give --provider-rate")
	}
	return p.checkBanded()
}

// checkBanded refuses what does not go with banded noise.
func (p *Plan) checkBanded() error {
	switch {
	case p.Separation == 0 && p.Band == 0:
		return nil
	case p.Separation < 1 || p.Separation > dp.MaxRounds:
		return usage.Errorf("--separation %d, want 1 to %d", p.Separation, dp.MaxRounds)
	case p.Band < 0 || p.Band > dp.BandOf(p.Separation):
		return usage.Errorf("--band %d, want 1 to %d, --separation or %d: a device must not be in two rounds that share noise",
			p.Band, dp.BandOf(p.Separation), dp.MaxBand)
	case p.Rate != 1 || p.ProviderRate > 0 || p.Hit > 0:
		return usage.Errorf("--separation %d is about banded noise, under which devices take part in turn: give --sampling-rate 1, and no providers or hits", p.Separation)
	}
	return nil
}

// banded are the rows of banded noise of a job of so many rounds, from the first on; the zero value
// without.
func (p *Plan) banded(rounds int) dp.Banded {
	if p.Separation == 0 {
		return dp.Banded{}
	}
	band := p.Band
	if band == 0 {
		band = dp.BandOf(p.Separation)
	}
	return dp.Banded{Band: uint32(band), Separation: uint32(p.Separation), Row: 1,
		Eighths: dp.Exponent(max(rounds, p.Rounds), uint32(p.Separation))}
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
	e.Hit, e.Fixed, e.Banded = p.Hit, p.Fixed || p.Separation > 0, p.banded(rounds)
	return e
}

// Observer is who the plan's epsilon holds against: the public, or with banded noise, which needs no
// secret, those who see who takes part.
func (p *Plan) Observer() dp.Observer {
	if p.Separation > 0 {
		return dp.Participants
	}
	return dp.Public
}

// Calibrate returns the least noise multiplier that keeps the rounds within Epsilon, against Observer.
func (p *Plan) Calibrate(acct dp.Accountant) (float64, error) {
	return accounting.CalibrateEvent(p.Epsilon, p.Delta, acct, p.Observer(), p.rounds())
}

// rounds are all of the plan's, for a noise multiplier.
func (p *Plan) rounds() func(z float64) dp.Event {
	with := *p
	return func(z float64) dp.Event {
		with.Noise = z
		return with.Event(p.Rounds)
	}
}
