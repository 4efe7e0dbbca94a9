package dp

import "fmt"

// ReleaseSpec describes a release under the job's constants.
type ReleaseSpec struct {
	Round uint64
	// SamplingRate is the coin that was really flipped for every enrolled
	// identity, over-selection included; 1 where anything but independent coins
	// chose the cohort (see [Certificate.AccountedRate]).
	SamplingRate    float64
	B2              int64   // squared integer L2 norm that the symbols of every device (or provider) obey
	NoiseMultiplier float64 // z: noise standard deviation over sqrt(B2)
	// NoiseScale simulates the noise of a larger cohort: C_small/C_large, in
	// (0, 1]. 1: what is accounted is what is delivered.
	NoiseScale float64
	// SimulatedRate is the sampling rate of the simulated population. It is
	// needed where NoiseScale is below 1, and 0 elsewhere.
	SimulatedRate float64
	// ProviderRate is the coin of every provider inside its device, 0 where the
	// device is the unit of privacy; B2 is then one provider's. Hidden states that
	// nothing shows who took part. See [GroupSampling].
	ProviderRate float64
	Hidden       bool
	// Hit is the probability that something other than the sum shows a member's coin: see
	// [Event.Hit].
	Hit float64
	// SimulatedHit and Coalition are those of [Event].
	SimulatedHit float64
	Coalition    Coalition
	// Own is noise that is in the sum already because devices added it: the event counts that
	// noise, and none that is added here. Shares is the number of devices whose noise the
	// coordinator adds in place of those that this release has fewer than others, since the number
	// of devices in it would show a coin that is to be hidden. 0: it adds none.
	Own    OwnNoise
	Shares uint64
	// Fixed states that the cohort's size was fixed: see [Event.Fixed].
	Fixed bool
	// Banded says which row of banded noise this is, Kept what rows before it had added: see [Banded].
	// Both, or neither. Once the release is committed, call Kept.Keep.
	Banded Banded
	Kept   *Correlated
	// NoiseOnly marks a round whose cohort was below its floor: sum must then
	// be all zero.
	NoiseOnly bool
	// Unnoised releases the sum without noise, under an event that no accountant accepts. Leave noise,
	// scale and the providers' rates out then.
	Unnoised bool
	// Certificate is the hash of the cohort's sampling certificate, zero for none.
	Certificate [32]byte
}

// Event returns the ledger event of a release of dim coordinates under r.
func (r ReleaseSpec) Event(dim int) (Event, error) {
	if r.Unnoised {
		e := Event{Mechanism: Mechanism{SamplingRate: r.SamplingRate}, Round: r.Round, Count: 1, Kind: KindUnnoised, NoiseScale: 1,
			Dim: uint64(max(dim, 0)), Certificate: r.Certificate}
		return e, e.Check()
	}
	v, err := NewVariance(r.NoiseMultiplier, r.B2, r.NoiseScale)
	if err != nil {
		return Event{}, err
	}
	e := Event{
		Mechanism:     Mechanism{SamplingRate: r.SamplingRate, NoiseMultiplier: r.NoiseMultiplier},
		Round:         r.Round,
		Count:         1,
		Kind:          KindRelease,
		NoiseScale:    r.NoiseScale,
		SimulatedRate: r.SimulatedRate,
		ProviderRate:  r.ProviderRate,
		Hidden:        r.Hidden,
		Hit:           r.Hit,
		SimulatedHit:  r.SimulatedHit,
		Coalition:     r.Coalition,
		Own:           r.Own,
		Fixed:         r.Fixed,
		Banded:        r.Banded,
		B2:            r.B2,
		Sigma2:        v,
		Dim:           uint64(max(dim, 0)),
		Certificate:   r.Certificate,
	}
	if r.NoiseOnly {
		e.Kind = KindNoiseOnly
	}
	return e, e.Check()
}

// added is the noise that Release adds itself; false if it adds none.
func (r ReleaseSpec) added(e Event) (Variance, bool, error) {
	if r.Unnoised {
		return Variance{}, false, nil
	}
	if r.Banded != (Banded{}) {
		v, err := e.Drawn()
		return v, err == nil, err
	}
	if r.Own == (OwnNoise{}) {
		return e.Sigma2, true, nil
	}
	if r.Shares == 0 {
		return Variance{}, false, nil
	}
	one, err := r.Own.Variance(r.B2)
	if err != nil {
		return Variance{}, false, err
	}
	all, err := one.Times(r.Shares)
	return all, err == nil, err
}

// Release adds exact discrete Gaussian noise of variance z^2*B2*scale^2
// (rounded up, see [NewVariance]) to sum in place, or where devices added theirs what Own
// and Shares say, or the noise of a banded row, and returns the event that
// must be in the ledger before anything derived from sum leaves. sum is the
// integer sum over the whole cohort, all D coordinates of it at once.
//
// On an error sum is cleared: an un-noised sum never survives a failed release.
func Release(sum []int64, r ReleaseSpec, noise Noise) (Event, error) {
	r.Kept.forget()
	e, err := r.Event(len(sum))
	if err != nil {
		clear(sum)
		return Event{}, err
	}
	if r.NoiseOnly {
		for i, x := range sum {
			if x != 0 {
				clear(sum)
				return Event{}, fmt.Errorf("dp: release of round %d: a noise-only round has a sum that is not zero at coordinate %d", r.Round, i)
			}
		}
	}
	variance, adds, err := r.added(e)
	if err != nil {
		clear(sum)
		return Event{}, fmt.Errorf("dp: release of round %d: %w", r.Round, err)
	}
	if !adds {
		return e, nil
	}
	if r.Banded != (Banded{}) {
		if err := r.Kept.add(sum, variance, noise); err != nil {
			clear(sum)
			return Event{}, fmt.Errorf("dp: release of round %d: %w", r.Round, err)
		}
		return e, nil
	}
	if err := noise.AddNoise(sum, variance); err != nil {
		clear(sum)
		return Event{}, fmt.Errorf("dp: release of round %d: %w", r.Round, err)
	}
	return e, nil
}
