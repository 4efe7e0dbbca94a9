package job

import (
	"math"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// UnitsPerDevice is the expected number of units that a device in the cohort contributes: 1, or the
// number of its providers that win their coin.
func (j Job) UnitsPerDevice() float64 {
	if j.Providers.Max == 0 {
		return 1
	}
	return j.Providers.SamplingRate * j.Providers.Expected
}

// Protected is the number of units that the budget's guarantee is stated for, and that delta is
// compared with: devices, or the providers expected in them.
func (j Job) Protected() int {
	n := float64(j.BudgetPopulation())
	if j.Providers.Max > 0 {
		n *= max(1, j.Providers.Expected)
	}
	return int(math.Ceil(min(n, math.MaxInt>>1)))
}

// Hides reports whether a device's coin may count as amplification against those who do not see who
// takes part. It may not if a device holds several providers, since the sum of the others would
// show how the coin fell, nor if each of few devices adds all the noise, since the amount would.
func (j Job) Hides() bool { return j.Providers.Max <= 1 && j.Privacy.Noise != NoiseSilo }

// VisibleDiffers reports whether the guarantee against those who see who takes part differs from the one
// against those who do not.
func (j Job) VisibleDiffers() bool { return j.Cohort.SamplingRate < 1 && j.Hides() }

// BudgetRounds returns a function that makes the event of all rounds of the guarantee that the
// budget applies to, for a noise multiplier z. A simulated population's are those of the
// deployment that it stands for.
func (j Job) BudgetRounds(q Quorum) func(z float64) dp.Event {
	hit, coalition := q.Hit, j.Coalition(q)
	if j.Simulated() {
		hit, coalition = q.Simulated, dp.Coalition{}
	}
	return func(z float64) dp.Event {
		e := dp.Rounds(dp.Mechanism{SamplingRate: j.BudgetRate(), NoiseMultiplier: z}, j.Rounds)
		if j.Providers.Max > 0 {
			e = dp.GroupSampling{ClientRate: j.BudgetRate(), ProviderRate: j.Providers.SamplingRate, Hidden: j.Hides()}.Rounds(z, j.Rounds)
		}
		if j.BudgetRate() < 1 {
			e.Hit, e.Coalition = hit, coalition
		}
		e.Own, e.Fixed, e.Banded = j.Own(z/j.NoiseScale()).OwnNoise, j.Fixed(), j.BandedRows()
		return e
	}
}

// validateUnit checks what is protected and how its norm is found.
func (j Job) validateUnit() error {
	p, c := j.Providers, j.Clipping
	if p.Max < 0 || p.Max > wire.MaxProviders {
		return refuse("providers.max is %d, must be in 0..%d", p.Max, wire.MaxProviders)
	}
	if !(p.SamplingRate > 0 && p.SamplingRate <= 1) {
		return refuse("providers.sampling_rate is %v, must be in (0, 1]", p.SamplingRate)
	}
	if p.Max == 0 && (p.Expected != 0 || p.SamplingRate != 1) {
		return refuse("providers.max is 0, which protects devices: expected and sampling_rate then have no meaning")
	}
	// A device without a provider has no data and cannot join.
	if p.Max > 0 && !(p.Expected >= 1 && p.Expected <= float64(p.Max)) {
		return refuse("providers.expected is %v, must be in 1..providers.max = %d", p.Expected, p.Max)
	}
	// The mean is over this number: near 0 it would make numbers of the noise that
	// no float holds, and tiny coins take the accountant minutes.
	if n := j.ExpectedCohort() * j.UnitsPerDevice(); n < 1 {
		return refuse("providers.sampling_rate is %v: %.3g providers are expected in a round, must be at least 1", p.SamplingRate, n)
	}
	if j.Training.Dual && p.Max > 0 && j.Privacy.Noise != NoiseSilo {
		return refuse("training.dual with providers.max %d: a device's dual variable holds what its providers' data gave, so that one of them "+
			"would move all others' vectors, by more than the noise hides. Set privacy.noise: silo, which has each vector carry all of the noise, or leave one of the two out", p.Max)
	}
	if g := j.Privacy.Groups; g < 0 || g > wire.MaxParts {
		return refuse("privacy.groups is %d, must be in 0..%d", g, wire.MaxParts)
	}
	if j.Training.Dual && j.Privacy.Groups > 1 && j.Privacy.Noise != NoiseSilo {
		return refuse("training.dual with privacy.groups %d: a device's dual variable holds what its groups' data gave, so that one of them "+
			"would move all others' later vectors. Set privacy.noise: silo, which has each vector carry all of the noise, or leave one of the two out", j.Privacy.Groups)
	}
	if o := j.Server.Optimizer; j.Training.Dual && (o != FedAvg || j.Server.LearningRate != 1) {
		return refuse("training.dual with server.optimizer %s and server.learning_rate %v: a dual variable takes the adapter for the mean of what devices sent: fedavg at 1", o, j.Server.LearningRate)
	}
	if !(c.CountNoise >= 0) || math.IsInf(c.CountNoise, 1) {
		return refuse("clipping.count_noise is %v, must be positive, or 0 to choose it", c.CountNoise)
	}
	if !c.Adaptive {
		if d := Default().Clipping; c.Quantile != d.Quantile || c.Rate != d.Rate || c.CountNoise != 0 || c.Min != 0 || c.Max != 0 {
			return refuse("clipping.adaptive is false: the other keys of clipping then have no meaning")
		}
		return nil
	}
	if j.Privacy.ClipNorm == 0 { // until the base is known: any bounds that are not given
		if c.Max == 0 {
			c.Max = max(1, 2*c.Min)
		}
		if c.Min == 0 {
			c.Min = c.Max / 2
		}
	}
	if err := (dp.AdaptiveClip{Quantile: c.Quantile, Rate: c.Rate, Min: c.Min, Max: c.Max}).Check(); err != nil {
		return refuse("clipping: %w", err)
	}
	if n := j.Privacy.ClipNorm; n != 0 && (n < c.Min || n > c.Max) {
		return refuse("privacy.clip_norm is %v, must be within clipping.min = %v and clipping.max = %v", n, c.Min, c.Max)
	}
	return nil
}
