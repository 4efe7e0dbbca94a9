package dp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrEvent reports a ledger event whose fields contradict each other or whose
// encoding is not the canonical one.
var ErrEvent = errors.New("bad ledger event")

// Kind says why a round is in the ledger.
type Kind uint8

// The kinds. All of them cost the same: what was noised may have been seen.
const (
	KindRelease   Kind = 1 // a noisy sum was released
	KindNoiseOnly Kind = 2 // the cohort was below its floor: noise alone was released
	KindCharged   Kind = 3 // unmasking had begun, nothing was released (crash, alarm): charged all the same

	// KindUnnoised is a round of a job without privacy: its sum was released, or could have been,
	// without noise. No epsilon holds for its members.
	KindUnnoised Kind = 4
)

// ErrUnnoised is returned by accountants for a round that was released without noise.
var ErrUnnoised = errors.New("a round was released without noise: no epsilon holds")

func (k Kind) String() string {
	switch k {
	case KindRelease:
		return "release"
	case KindNoiseOnly:
		return "noise-only"
	case KindCharged:
		return "charged"
	case KindUnnoised:
		return "bare"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Mechanism is one Poisson-subsampled Gaussian: each member is in with an
// independent coin of probability SamplingRate, and the noise's standard
// deviation is NoiseMultiplier times the L2 sensitivity.
type Mechanism struct {
	SamplingRate    float64 `json:"sampling_rate"`    // q, in (0, 1]
	NoiseMultiplier float64 `json:"noise_multiplier"` // z > 0
}

func (m Mechanism) check() error {
	if !(m.SamplingRate > 0 && m.SamplingRate <= 1) {
		return fmt.Errorf("dp: sampling rate %v, want in (0, 1]: %w", m.SamplingRate, ErrEvent)
	}
	if !(m.NoiseMultiplier > 0) || math.IsInf(m.NoiseMultiplier, 1) {
		return fmt.Errorf("dp: noise multiplier %v, want finite and positive: %w", m.NoiseMultiplier, ErrEvent)
	}
	return nil
}

// Event is what one round, or Count identical rounds, costs. It is an entry of the privacy ledger
// and the input of the accountants.
//
// An event made by Release records the discrete noise that was really added (B2, Sigma2, Dim) and
// is accounted as such. An event with B2 = 0 is the continuous Gaussian of Mechanism, which
// planning and the command line use.
type Event struct {
	Mechanism // as delivered: the coin that was flipped; z before NoiseScale

	Round uint64 `json:"round"`
	Count uint32 `json:"count"` // identical rounds, at least 1; a ledger entry has 1
	Kind  Kind   `json:"kind"`

	// NoiseScale is C_small/C_large of a simulated larger cohort, 1 for none:
	// the delivered noise multiplier is NoiseMultiplier*NoiseScale.
	NoiseScale float64 `json:"noise_scale"`
	// SimulatedRate is the sampling rate of the simulated population; 0 where
	// NoiseScale is 1.
	SimulatedRate float64 `json:"simulated_rate,omitempty"`

	B2     int64    `json:"b2,omitempty"`    // squared integer L2 sensitivity, grid units
	Sigma2 Variance `json:"sigma2,omitzero"` // variance drawn per coordinate, squared grid units
	Dim    uint64   `json:"dim,omitempty"`   // coordinates released

	// ProviderRate is the probability of the coin that each provider has inside
	// its device, in (0, 1]; 0 if a whole device is the unit of privacy. B2 and
	// the noise multiplier are then one provider's, and SamplingRate (SimulatedRate)
	// is the coin of the device that all its providers share: see [GroupSampling].
	ProviderRate float64 `json:"provider_rate,omitempty"`
	// Hidden states that nothing shows who took part, see [GroupSampling.Hidden];
	// only where ProviderRate is set.
	Hidden bool `json:"participation_hidden,omitempty"`

	// Hit bounds the probability, whatever a member's coin and whatever it sends, that something
	// other than the sum shows how that coin fell: for example that exactly one device was missing
	// for a shard to be released. The guarantee then compares a member that contributes with one
	// that is there and sends zeros, and the round is accounted as a mixture of one that hides the
	// coin and, with this probability, one that shows it. In [0, 1), and 0 if no coin is flipped:
	// docs/privacy/proofs.md, section 5.
	Hit float64 `json:"hit,omitempty"`

	// SimulatedHit is Hit in the simulated population, in [0, 1]; only where there is one.
	SimulatedHit float64 `json:"simulated_hit,omitempty"`

	// Coalition is what colluding devices see of a member's coin. The zero value: nothing, since
	// rosters show no identities or no collusion is assumed.
	Coalition Coalition `json:"coalition,omitzero"`

	// Own is the noise that devices added themselves. If it is set, NoiseMultiplier and Sigma2
	// count only that noise, and not what the coordinator added on top. The zero value means that
	// all noise is the coordinator's.
	Own OwnNoise `json:"own,omitzero"`

	// Fixed states that the cohort had a fixed size and was drawn without replacement, so that a
	// device that is there takes another's place. The guarantee then compares a device that
	// contributes with one that is there and sends zeros. Only if SamplingRate is 1.
	Fixed bool `json:"fixed,omitempty"`

	// Banded says which row of banded noise the round is; zero if its noise is its own. Sigma2 is then
	// in squared grid units of the sum too, and what is drawn has steps of 2^-16.
	Banded Banded `json:"banded,omitzero"`

	// Certificate is the hash of the cohort's sampling certificate, zero for none.
	Certificate [32]byte `json:"-"`
}

// MaxRounds is the most rounds that an account covers.
const MaxRounds = 1 << 30

// Rounds makes an event of count identical rounds of a continuous sampled Gaussian,
// for planning. A count outside of 1..[MaxRounds] makes an event that Check, and
// with it every accountant, refuses.
func Rounds(m Mechanism, count int) Event {
	if count < 1 || count > MaxRounds {
		count = 0
	}
	return Event{Mechanism: m, Count: uint32(count), Kind: KindRelease, NoiseScale: 1}
}

// Drawn is the variance of what is drawn for each coordinate: Sigma2, or of banded noise that on its
// finer lattice.
func (e Event) Drawn() (Variance, error) {
	if e.Banded == (Banded{}) {
		return e.Sigma2, nil
	}
	return fine(e.Sigma2)
}

// Check validates an event's fields against each other.
func (e Event) Check() error {
	if e.Kind == KindUnnoised {
		return e.checkUnnoised()
	}
	if err := e.Mechanism.check(); err != nil {
		return err
	}
	if e.Count < 1 || e.Count > MaxRounds {
		return fmt.Errorf("dp: event of round %d: its count is not in 1..%d: %w", e.Round, MaxRounds, ErrEvent)
	}
	if e.Kind < KindRelease || e.Kind > KindCharged {
		return fmt.Errorf("dp: event of round %d: kind %d is unknown: %w", e.Round, e.Kind, ErrEvent)
	}
	if !(e.NoiseScale > 0 && e.NoiseScale <= 1) {
		return fmt.Errorf("dp: event of round %d: noise scale %v, want in (0, 1]: %w", e.Round, e.NoiseScale, ErrEvent)
	}
	if (e.NoiseScale < 1) != (e.SimulatedRate != 0) {
		return fmt.Errorf("dp: event of round %d: noise scale %v with simulated sampling rate %v: one needs the other: %w", e.Round, e.NoiseScale, e.SimulatedRate, ErrEvent)
	}
	if !(e.SimulatedRate >= 0 && e.SimulatedRate <= 1) || math.Signbit(e.SimulatedRate) {
		return fmt.Errorf("dp: event of round %d: simulated sampling rate %v, want in [0, 1]: %w", e.Round, e.SimulatedRate, ErrEvent)
	}
	if !(e.ProviderRate >= 0 && e.ProviderRate <= 1) || math.Signbit(e.ProviderRate) {
		return fmt.Errorf("dp: event of round %d: provider rate %v, want in [0, 1]: %w", e.Round, e.ProviderRate, ErrEvent)
	}
	if e.Hidden && e.ProviderRate == 0 {
		return fmt.Errorf("dp: event of round %d: hidden participation is claimed without providers: %w", e.Round, ErrEvent)
	}
	if !(e.Hit >= 0 && e.Hit < 1) || math.Signbit(e.Hit) || e.Hit > 0 && e.SamplingRate == 1 {
		return fmt.Errorf("dp: event of round %d: hit probability %v at sampling rate %v, want in [0, 1), and 0 where no coin is flipped: %w", e.Round, e.Hit, e.SamplingRate, ErrEvent)
	}
	if !(e.SimulatedHit >= 0 && e.SimulatedHit <= 1) || math.Signbit(e.SimulatedHit) || e.SimulatedHit > 0 && !(e.SimulatedRate > 0 && e.SimulatedRate < 1) {
		return fmt.Errorf("dp: event of round %d: hit probability %v at a simulated sampling rate of %v, want in [0, 1], and 0 where no coin is simulated: %w", e.Round, e.SimulatedHit, e.SimulatedRate, ErrEvent)
	}
	if err := e.Coalition.check(e); err != nil {
		return err
	}
	if e.Fixed && e.SamplingRate != 1 {
		return fmt.Errorf("dp: event of round %d: a cohort of a fixed size at sampling rate %v, want 1: it does not amplify: %w", e.Round, e.SamplingRate, ErrEvent)
	}
	if err := e.Banded.check(e); err != nil {
		return err
	}
	if e.B2 < 0 {
		return fmt.Errorf("dp: event of round %d: squared sensitivity %d is negative: %w", e.Round, e.B2, ErrEvent)
	}
	if (e.B2 == 0) != (e.Sigma2 == Variance{}) || (e.B2 == 0) != (e.Dim == 0) {
		return fmt.Errorf("dp: event of round %d: b2 %d, sigma^2 %s, dim %d: all or none: %w", e.Round, e.B2, e.Sigma2, e.Dim, ErrEvent)
	}
	if err := e.Own.check(e); err != nil {
		return err
	}
	if e.B2 == 0 {
		return nil
	}
	if err := e.Sigma2.check(); err != nil {
		return fmt.Errorf("dp: event of round %d: %w: %w", e.Round, err, ErrEvent)
	}
	want, err := NewVariance(e.NoiseMultiplier, e.B2, e.NoiseScale)
	if err != nil {
		return fmt.Errorf("dp: event of round %d: %w: %w", e.Round, err, ErrEvent)
	}
	if want != e.Sigma2 {
		return fmt.Errorf("dp: event of round %d: sigma^2 %s, but z^2*b2*scale^2 is %s: %w", e.Round, e.Sigma2, want, ErrEvent)
	}
	return nil
}

// checkUnnoised holds an event without noise to that it claims none.
func (e Event) checkUnnoised() error {
	if !(e.SamplingRate > 0 && e.SamplingRate <= 1) || e.Count < 1 || e.Count > MaxRounds || e.Dim == 0 {
		return fmt.Errorf("dp: event of round %d: sampling rate %v, count %d, %d coordinates: %w", e.Round, e.SamplingRate, e.Count, e.Dim, ErrEvent)
	}
	claims := e
	claims.SamplingRate, claims.Round, claims.Count, claims.Dim, claims.Kind, claims.Certificate = 0, 0, 0, 0, 0, [32]byte{}
	if claims != (Event{NoiseScale: 1}) || math.Signbit(e.NoiseMultiplier) || math.Signbit(e.SimulatedRate) || math.Signbit(e.ProviderRate) || math.Signbit(e.Hit) ||
		math.Signbit(e.SimulatedHit) || math.Signbit(e.Coalition.Share) || math.Signbit(e.Coalition.Sees) {
		return fmt.Errorf("dp: event of round %d: it is without noise and claims some: %w", e.Round, ErrEvent)
	}
	return nil
}

const (
	eventVersion = 1 // a device is the unit
	eventSize    = 1 + 1 + 8 + 4 + 8*4 + 8 + 16 + 1 + 8 + 32

	providerEventVersion = 2 // a provider is: the rate of its coin and the claim follow
	providerEventSize    = eventSize + 8 + 1

	// A version that is larger by hitVersions ends with the hit probability, not 0.
	hitVersions = 2
	hitSize     = 8

	// One that is larger by ownVersions has devices' own noise before that.
	ownVersions = 4
	ownSize     = 8 + 4 + 4 + 1

	// One that is larger by fixedVersions is of a cohort of a fixed size.
	fixedVersions = 8

	// One that is larger by seenVersions has, before its own noise, what a coalition sees and the
	// simulated population's hit probability, one of them not 0.
	seenVersions = 16
	seenSize     = 3 * 8

	// One that is larger by bandedVersions has the row of banded noise after its certificate.
	bandedVersions = 32
	bandedSize     = 4 + 4 + 1 + 8

	lastEventVersion = providerEventVersion + hitVersions + ownVersions + fixedVersions + seenVersions + bandedVersions
)

// eventLayout is what an encoding of a version has, and its size; false if there is
// no such version.
func eventLayout(version byte) (provider, hit, own bool, size int, ok bool) {
	if version < eventVersion || version > lastEventVersion {
		return false, false, false, 0, false
	}
	bits := version - eventVersion
	provider, hit, own, size = bits&1 != 0, bits&hitVersions != 0, bits&ownVersions != 0, eventSize
	if provider {
		size = providerEventSize
	}
	if bits&bandedVersions != 0 {
		size += bandedSize
	}
	if bits&seenVersions != 0 {
		size += seenSize
	}
	if own {
		size += ownSize
	}
	if hit {
		size += hitSize
	}
	return provider, hit, own, size, true
}

// AppendBinary appends the canonical encoding: a fixed size for each unit of
// privacy, big-endian, floats as IEEE 754 bits. Equal events have equal encodings.
func (e Event) AppendBinary(b []byte) ([]byte, error) {
	if err := e.Check(); err != nil {
		return b, err
	}
	version := byte(eventVersion)
	if e.ProviderRate != 0 {
		version = providerEventVersion
	}
	if e.Hit != 0 {
		version += hitVersions
	}
	if e.Own != (OwnNoise{}) {
		version += ownVersions
	}
	if e.Fixed {
		version += fixedVersions
	}
	banded := e.Banded != (Banded{})
	if banded {
		version += bandedVersions
	}
	seen := e.Coalition != (Coalition{}) || e.SimulatedHit != 0
	if seen {
		version += seenVersions
	}
	b = append(b, version, byte(e.Kind))
	b = binary.BigEndian.AppendUint64(b, e.Round)
	b = binary.BigEndian.AppendUint32(b, e.Count)
	for _, f := range []float64{e.SamplingRate, e.NoiseMultiplier, e.NoiseScale, e.SimulatedRate} {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(f))
	}
	b = binary.BigEndian.AppendUint64(b, uint64(e.B2))
	b = binary.BigEndian.AppendUint64(b, e.Sigma2.Hi)
	b = binary.BigEndian.AppendUint64(b, e.Sigma2.Lo)
	b = append(b, e.Sigma2.Shift)
	b = binary.BigEndian.AppendUint64(b, e.Dim)
	b = append(b, e.Certificate[:]...)
	if e.ProviderRate != 0 {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(e.ProviderRate))
		hidden := byte(0)
		if e.Hidden {
			hidden = 1
		}
		b = append(b, hidden)
	}
	if banded { // which has no providers
		b = binary.BigEndian.AppendUint32(b, e.Banded.Band)
		b = binary.BigEndian.AppendUint32(b, e.Banded.Separation)
		b = binary.BigEndian.AppendUint64(append(b, e.Banded.Eighths), e.Banded.Row)
	}
	if seen {
		for _, f := range []float64{e.Coalition.Share, e.Coalition.Sees, e.SimulatedHit} {
			b = binary.BigEndian.AppendUint64(b, math.Float64bits(f))
		}
	}
	if o := e.Own; o != (OwnNoise{}) {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(o.Multiplier))
		b = binary.BigEndian.AppendUint32(b, o.Honest)
		b = binary.BigEndian.AppendUint32(b, o.Apart)
		seen := byte(0)
		if o.Seen {
			seen = 1
		}
		b = append(b, seen)
	}
	if e.Hit != 0 {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(e.Hit))
	}
	return b, nil
}

// MarshalBinary returns the canonical encoding.
func (e Event) MarshalBinary() ([]byte, error) {
	return e.AppendBinary(make([]byte, 0, providerEventSize+bandedSize+seenSize+ownSize+hitSize))
}

// UnmarshalBinary decodes a canonical encoding and checks the event.
func (e *Event) UnmarshalBinary(b []byte) error {
	if len(b) == 0 {
		return fmt.Errorf("dp: event of 0 bytes: %w", ErrEvent)
	}
	provider, hit, own, size, ok := eventLayout(b[0])
	switch {
	case !ok:
		return fmt.Errorf("dp: event version %d, want 1 to %d: %w", b[0], lastEventVersion, ErrEvent)
	case len(b) != size:
		return fmt.Errorf("dp: event of version %d has %d bytes, want %d: %w", b[0], len(b), size, ErrEvent)
	}
	u64 := func(at int) uint64 { return binary.BigEndian.Uint64(b[at:]) }
	f64 := func(at int) float64 { return math.Float64frombits(u64(at)) }
	out := Event{
		Mechanism:     Mechanism{SamplingRate: f64(14), NoiseMultiplier: f64(22)},
		Kind:          Kind(b[1]),
		Round:         u64(2),
		Count:         binary.BigEndian.Uint32(b[10:]),
		NoiseScale:    f64(30),
		SimulatedRate: f64(38),
		B2:            int64(u64(46)),
		Sigma2:        Variance{Hi: u64(54), Lo: u64(62), Shift: b[70]},
		Dim:           u64(71),
		Certificate:   [32]byte(b[79:111]),
		Fixed:         (b[0]-eventVersion)&fixedVersions != 0,
	}
	end := eventSize
	if provider {
		out.ProviderRate = f64(111)
		if b[119] > 1 || out.ProviderRate == 0 {
			return fmt.Errorf("dp: event of version %d with provider rate %v and flag %d: %w", b[0], out.ProviderRate, b[119], ErrEvent)
		}
		out.Hidden = b[119] == 1
		end = providerEventSize
	}
	if (b[0]-eventVersion)&bandedVersions != 0 {
		out.Banded = Banded{binary.BigEndian.Uint32(b[end:]), binary.BigEndian.Uint32(b[end+4:]), b[end+8], u64(end + 9)}
		if out.Banded == (Banded{}) {
			return fmt.Errorf("dp: event of version %d without a row: %w", b[0], ErrEvent)
		}
		end += bandedSize
	}
	if (b[0]-eventVersion)&seenVersions != 0 {
		out.Coalition, out.SimulatedHit = Coalition{f64(end), f64(end + 8)}, f64(end+16)
		if out.Coalition == (Coalition{}) && out.SimulatedHit == 0 {
			return fmt.Errorf("dp: event of version %d that has no field of it: %w", b[0], ErrEvent)
		}
		end += seenSize
	}
	if own {
		out.Own = OwnNoise{f64(end), binary.BigEndian.Uint32(b[end+8:]), binary.BigEndian.Uint32(b[end+12:]), b[end+16] == 1}
		if b[end+16] > 1 || out.Own == (OwnNoise{}) {
			return fmt.Errorf("dp: event of version %d with own noise %v and flag %d: %w", b[0], out.Own.Multiplier, b[end+16], ErrEvent)
		}
	}
	if hit {
		if out.Hit = f64(len(b) - hitSize); out.Hit == 0 {
			return fmt.Errorf("dp: event of version %d with hit probability %v: %w", b[0], out.Hit, ErrEvent)
		}
	}
	if err := out.Check(); err != nil {
		return err
	}
	*e = out
	return nil
}
