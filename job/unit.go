package job

import (
	"math"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/wire"
)

// UnitsPerDevice is the expected number of units that a device in the cohort
// contributes: 1, or its providers that win their coin.
func (j Job) UnitsPerDevice() float64 {
	if j.Providers.Most == 0 {
		return 1
	}
	return j.Providers.SamplingRate * j.Providers.Expected
}

// Protected is the number of units that the budget's guarantee is stated for, and
// that delta is held against: devices, or the providers expected in them.
func (j Job) Protected() int {
	n := float64(j.BudgetPopulation())
	if j.Providers.Most > 0 {
		n *= max(1, j.Providers.Expected)
	}
	return int(math.Ceil(min(n, math.MaxInt>>1)))
}

// Hides reports whether the device's coin may amplify where nobody sees who takes
// part. Where a device holds several providers, the sum of the others would show
// how it fell.
func (j Job) Hides() bool { return j.Providers.Most <= 1 }

// Twofold reports whether those who see who takes part have a guarantee of their
// own.
func (j Job) Twofold() bool { return j.Cohort.SamplingRate < 1 && j.Hides() }

// validateUnit checks what is protected and how its norm is found.
func (j Job) validateUnit() error {
	p, c := j.Providers, j.Clipping
	if p.Most < 0 || p.Most > wire.MaxProviders {
		return refuse("providers.most is %d, must be in 0..%d", p.Most, wire.MaxProviders)
	}
	if !(p.SamplingRate > 0 && p.SamplingRate <= 1) {
		return refuse("providers.sampling_rate is %v, must be in (0, 1]", p.SamplingRate)
	}
	if p.Most == 0 && (p.Expected != 0 || p.SamplingRate != 1) {
		return refuse("providers.most is 0, so that a device is what is protected: expected and sampling_rate then have no meaning")
	}
	// A device without a provider has no data and cannot join.
	if p.Most > 0 && !(p.Expected >= 1 && p.Expected <= float64(p.Most)) {
		return refuse("providers.expected is %v, must be in 1..providers.most = %d", p.Expected, p.Most)
	}
	// The mean is over this number: near 0 it would make numbers of the noise that
	// no float holds, and tiny coins take the accountant minutes.
	if n := j.ExpectedCohort() * j.UnitsPerDevice(); n < 1 {
		return refuse("providers.sampling_rate is %v: %.3g providers are expected in a round, must be at least 1", p.SamplingRate, n)
	}
	if !(c.CountNoise >= 0) || math.IsInf(c.CountNoise, 1) {
		return refuse("clipping.count_noise is %v, must be positive, or 0 to choose it", c.CountNoise)
	}
	if !c.Adaptive {
		if d := Default().Clipping; c.Quantile != d.Quantile || c.Rate != d.Rate || c.CountNoise != 0 || c.Least != 0 || c.Greatest != 0 {
			return refuse("clipping.adaptive is false: the other keys of clipping then have no meaning")
		}
		return nil
	}
	if j.Privacy.ClipNorm == 0 { // until the base is known: any bounds that are not given
		if c.Greatest == 0 {
			c.Greatest = max(1, 2*c.Least)
		}
		if c.Least == 0 {
			c.Least = c.Greatest / 2
		}
	}
	if err := (dp.AdaptiveClip{Quantile: c.Quantile, Rate: c.Rate, Min: c.Least, Max: c.Greatest}).Check(); err != nil {
		return refuse("clipping: %w", err)
	}
	if n := j.Privacy.ClipNorm; n != 0 && (n < c.Least || n > c.Greatest) {
		return refuse("privacy.clip_norm is %v, must be within clipping.least = %v and clipping.greatest = %v", n, c.Least, c.Greatest)
	}
	return nil
}
