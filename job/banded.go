package job

import (
	"github.com/starling-fl/starling/dp"
)

// How rounds' noise goes together: values of Privacy.Mechanism.
const (
	MechanismIndependent = "independent"
	MechanismBanded      = "banded"
)

// Banded reports whether rounds' noise cancels that of earlier ones.
func (j Job) Banded() bool { return j.Privacy.Mechanism == MechanismBanded }

// BandedRows says how, from the first round on; the zero value if each round's noise is its own.
func (j Job) BandedRows() dp.Banded {
	if !j.Banded() {
		return dp.Banded{}
	}
	p := j.Privacy
	return dp.Banded{Band: uint32(p.Band), Separation: uint32(p.Separation), Eighths: dp.Exponent(j.Rounds, uint32(p.Separation)), Row: 1}
}

// NoiseBlock is the number of the block of rounds that share noise, and a rank, to which the round
// after so many releases belongs, and how many releases of the block are before it. Where the rank
// is always the same all rounds are one block.
func (j Job) NoiseBlock(version uint64) (block uint64, before int) {
	if band := uint64(j.Privacy.Band); len(j.Ranks()) > 1 && band > 0 {
		return version / band, int(version % band)
	}
	return 0, int(version)
}

// separation fills Privacy.Separation in.
func (j Job) separation() int {
	if n, size := j.Cohort.Population, j.Cohort.Size; j.Banded() && j.Privacy.Separation == 0 && size > 0 && n > 0 {
		return max(1, n/size/2)
	}
	return j.Privacy.Separation
}

// band fills Privacy.Band in, once the separation is there.
func (j Job) band() int {
	if j.Banded() && j.Privacy.Band == 0 {
		return dp.BandOf(j.separation())
	}
	return j.Privacy.Band
}

// validateBanded checks what banded noise needs.
func (j Job) validateBanded() error {
	p := j.Privacy
	switch p.Mechanism {
	case "", MechanismIndependent:
		if p.Separation != 0 || p.Band != 0 {
			return refuse("privacy.separation is %d and privacy.band %d, which have a meaning with privacy.mechanism: banded only", p.Separation, p.Band)
		}
		return nil
	case MechanismBanded:
	default:
		return refuse("privacy.mechanism is %.40q, must be independent or banded", p.Mechanism)
	}
	instead := ""
	switch {
	case p.None:
		instead = "privacy.none is set: there is no noise; leave the mechanism out"
	case j.Simulated():
		instead = "privacy.simulated_population is set: nobody says how often one of those devices takes part; leave it out and " +
			"simulate the true cohort, cohort.sampling: fixed with cohort.size"
	case !j.Fixed():
		instead = "coins choose the cohort, and may choose a device in two rounds in a row: set cohort.sampling: fixed and cohort.size"
	case j.OwnNoise():
		instead = "privacy.noise is " + p.Noise + ": devices cannot have their noise cancel what others added; set privacy.noise: central"
	case j.Providers.Max > 0:
		instead = "providers.max is set: a device keeps its own rounds apart, not those of a provider that is in several; protect devices, providers.max: 0"
	case j.Clipping.Adaptive:
		instead = "clipping.adaptive is set: noise cancels between rounds of one clip norm only; set privacy.clip_norm and leave clipping out"
	case j.Training.HeldOut > 0:
		instead = "training.held_out is set: figures would be under noise of rounds before; leave it out and measure on validation_file"
	case j.Shard.Trim > 0:
		instead = "shard.trim is set: what is trimmed of shards has no noise of its own to cancel; set shard.trim: 0"
	}
	if instead != "" {
		return refuse("privacy.mechanism is banded, and %s", instead)
	}
	switch most := j.Cohort.Population / j.Cohort.Size; {
	case p.Separation < 1 || p.Separation > dp.MaxRounds:
		return refuse("privacy.separation is %d, must be in 1..%d", p.Separation, dp.MaxRounds)
	case p.Separation > most:
		return refuse("privacy.separation is %d: %d devices in each of so many rounds are more than cohort.population = %d; at most %d, "+
			"and half of that lets half of the devices be away", p.Separation, j.Cohort.Size, j.Cohort.Population, most)
	case p.Band < 1 || p.Band > dp.BandOf(p.Separation):
		return refuse("privacy.band is %d, must be in 1..%d, privacy.separation or %d: a device must not be in two rounds that share noise",
			p.Band, dp.BandOf(p.Separation), dp.MaxBand)
	}
	return nil
}
