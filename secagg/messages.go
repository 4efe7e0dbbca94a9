package secagg

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/starling-fl/starling/internal/protocol/cbor"
)

// Kinds of message: the first element of each. docs/PROTOCOL.md has the CDDL. All are
// in core deterministic encoding: decoded and encoded again they are the same bytes.
const (
	kindAdvertise = 1 + iota
	kindRoster
	kindShares
	kindDelivery
	kindMasked
	kindSurvivors
	kindConfirmation
	kindConfirmations
	kindReveal
)

const (
	sigSize     = 64
	scalarSize  = 32
	pointSize   = 32
	maskKeySize = 32
	maxSealKey  = 32 + kemKey
	maxSealed   = kemSize + boxSize
)

// Keys are a device's keys for one round.
type Keys struct {
	Verify [32]byte // Ed25519: checks the device's signatures of this round
	Mask   [32]byte // X25519: pairwise masks
	Seal   []byte   // X25519 (32 bytes) or ML-KEM-768 + X25519 (1,216 bytes): shares are sealed to it
}

// An Advertise is turn 1, device to server.
type Advertise struct {
	Plan     Hash // P
	Keys     Keys
	Sign     [sigSize]byte // by Keys.Verify over (P, keys)
	Identity ID            // equals Keys.Verify if Identified
	Vouch    [sigSize]byte // by Identity over (P, keys); zero if Identified
	Lot      [LotSize]byte // of a Dealt round; else zero
}

// An Entry is one device in a roster.
type Entry struct {
	Keys        Keys
	Sign        [sigSize]byte // by Keys.Verify over (P, keys)
	Certificate [sigSize]byte // by the Authority over (P, keys); zero if Identified

	// Identity is the device that advertised the keys, and Vouch its signature over them. Both are
	// set in Logged rounds that are not Identified, and zero in any other.
	Identity ID
	Vouch    [sigSize]byte

	// Lot is a proof of what the device drew in a Dealt round; its group follows from it. The
	// caller of this package draws and checks lots. It is zero in any other round.
	Lot [LotSize]byte
}

// LotSize is the length of a lot in bytes. A lot is a device's proof of a verifiable random
// function (RFC 9381), from which the device's group follows: see [Entry.Lot].
const LotSize = 80

// Member is the identity that the entry shows; false if it shows none.
func (e *Entry) Member(cfg *Config) (ID, bool) {
	if cfg.Identified {
		return ID(e.Keys.Verify), true
	}
	return e.Identity, cfg.Logged
}

// A Roster is turn 1, server to device: the shard, sorted by Keys.Verify.
type Roster struct {
	Plan    Hash
	Shard   int // number of the shard in the round
	Entries []Entry
	// Enrolments is the proof that the entries of a Logged round were enrolled, and when:
	// 1..MaxEnrolments bytes, which the caller makes and checks. It is nil in any other round.
	Enrolments []byte
}

// MaxEnrolments bounds Roster.Enrolments in bytes.
const MaxEnrolments = 1 << 20

// Shares is turn 2, device to server.
type Shares struct {
	Roster Hash   // R
	Commit []byte // 2*t points: of the mask key's polynomial, then the self-mask's
	Sealed []byte // n-1 sealed pairs of shares, in roster order, oneself left out
}

// A Delivery is turn 2, server to device.
type Delivery struct {
	Roster Hash
	U2     Set
	Sealed []byte // |U2|-1 sealed pairs meant for this device, in roster order
}

// Masked is turn 3, device to server: a masked vector. It can only be made by
// Client.Mask, or decoded.
type Masked struct {
	roster Hash
	packed []byte // Dim values of Width bits, little-endian bit order
}

// Survivors is turn 3, server to device. Persist its encoding before it is
// sent: a server that announced two sets could unmask a device.
type Survivors struct {
	Roster Hash
	U2, U3 Set
}

// A Confirmation is turn 4, device to server.
type Confirmation struct {
	Roster Hash
	Sign   [sigSize]byte // by Keys.Verify over (R, U2, U3)
}

// Confirmations is turn 4, server to device.
type Confirmations struct {
	Roster Hash
	U4     Set
	Signs  []byte // |U4| signatures, in roster order
}

// A Reveal is turn 5, device to server: for each member of Held one share, of
// the self-mask if the member is in U3, of the mask key if only in U2. There is
// room for one share per member, never for two.
type Reveal struct {
	Roster Hash
	Held   Set
	Shares []byte // |Held| scalars, in roster order
}

// Roster returns R, the roster the vector was masked under.
func (m *Masked) Roster() Hash { return m.roster }

// Size is the length of the packed vector in bytes.
func (m *Masked) Size() int { return len(m.packed) }

// MaskedUpdate marks the one type that may be framed as an update.
func (m *Masked) MaskedUpdate() {}

func (k *Keys) appendTo(b []byte) []byte {
	b = cbor.AppendBytes(b, k.Verify[:])
	b = cbor.AppendBytes(b, k.Mask[:])
	return cbor.AppendBytes(b, k.Seal)
}

func (k *Keys) read(r *cbor.Reader) {
	r.Fixed(k.Verify[:], "verify key")
	r.Fixed(k.Mask[:], "mask key")
	k.Seal = bytes.Clone(r.Bytes(32, maxSealKey, "seal key"))
}

// begin reads the head of a message: array of n, kind, and its 32-byte binding.
func begin(data []byte, n int, kind uint64, bind *Hash) cbor.Reader {
	r := cbor.NewReader(data)
	r.Array(n, n, "message")
	r.Literal(kind, "kind")
	r.Fixed(bind[:], "hash")
	return r
}

// done returns the first error of a message, or complains of bytes left over.
func done(r *cbor.Reader) error {
	if err := r.Done(); err != nil {
		return fmt.Errorf("%w: %w", ErrEncoding, err)
	}
	return nil
}

// headRoom is more than what a message has besides its contents.
const headRoom = 64

func appendBegin(b []byte, n int, kind uint64, bind *Hash) []byte {
	return cbor.AppendBytes(cbor.AppendUint(cbor.AppendArray(b, n), kind), bind[:])
}

// AppendBinary appends the canonical encoding. The error is always nil.
func (m *Advertise) AppendBinary(b []byte) ([]byte, error) {
	parts := 8
	if m.Lot != [LotSize]byte{} {
		parts = 9
	}
	b = appendBegin(b, parts, kindAdvertise, &m.Plan)
	b = m.Keys.appendTo(b)
	b = cbor.AppendBytes(b, m.Sign[:])
	b = cbor.AppendBytes(b, m.Identity[:])
	b = cbor.AppendBytes(b, m.Vouch[:])
	if parts == 9 {
		b = cbor.AppendBytes(b, m.Lot[:])
	}
	return b, nil
}

// UnmarshalBinary decodes a canonical encoding, or wraps ErrEncoding.
func (m *Advertise) UnmarshalBinary(data []byte) error {
	var v Advertise
	r := cbor.NewReader(data)
	parts := r.Array(8, 9, "message")
	r.Literal(kindAdvertise, "kind")
	r.Fixed(v.Plan[:], "hash")
	v.Keys.read(&r)
	r.Fixed(v.Sign[:], "signature")
	r.Fixed(v.Identity[:], "identity")
	r.Fixed(v.Vouch[:], "identity signature")
	if parts == 9 {
		r.Fixed(v.Lot[:], "lot")
	}
	if err := done(&r); err != nil {
		return err
	}
	if parts == 9 && v.Lot == [LotSize]byte{} {
		return fmt.Errorf("%w: a lot of zeros must be left out", ErrEncoding)
	}
	*m = v
	return nil
}

// AppendBinary appends the canonical encoding. The error is always nil.
func (m *Roster) AppendBinary(b []byte) ([]byte, error) {
	if n := len(m.Entries); n > 0 {
		b = slices.Grow(b, headRoom+n*(384+LotSize+len(m.Entries[0].Keys.Seal))+len(m.Enrolments))
	}
	parts := 4
	if len(m.Enrolments) > 0 {
		parts = 5
	}
	b = appendBegin(b, parts, kindRoster, &m.Plan)
	b = cbor.AppendUint(b, uint64(m.Shard))
	b = cbor.AppendArray(b, len(m.Entries))
	for i := range m.Entries {
		e := &m.Entries[i]
		named, drawn := e.Identity != ID{}, e.Lot != [LotSize]byte{}
		parts := 5
		if named {
			parts += 2
		}
		if drawn {
			parts++
		}
		b = cbor.AppendArray(b, parts)
		b = e.Keys.appendTo(b)
		b = cbor.AppendBytes(b, e.Sign[:])
		b = cbor.AppendBytes(b, e.Certificate[:])
		if named {
			b = cbor.AppendBytes(b, e.Identity[:])
			b = cbor.AppendBytes(b, e.Vouch[:])
		}
		if drawn {
			b = cbor.AppendBytes(b, e.Lot[:])
		}
	}
	if len(m.Enrolments) > 0 {
		b = cbor.AppendBytes(b, m.Enrolments)
	}
	return b, nil
}

// UnmarshalBinary decodes a canonical encoding, or wraps ErrEncoding.
func (m *Roster) UnmarshalBinary(data []byte) error {
	var v Roster
	r := cbor.NewReader(data)
	parts := r.Array(4, 5, "message")
	r.Literal(kindRoster, "kind")
	r.Fixed(v.Plan[:], "hash")
	v.Shard = int(r.Uint(1<<31-1, "shard"))
	n := r.Array(1, MaxShard, "entries")
	nobody := -1
	for i := 0; i < n && r.OK(); i++ {
		var e Entry
		parts := r.Array(5, 8, "entry") // by its number of parts, one says who it is, what it drew, or both
		e.Keys.read(&r)
		r.Fixed(e.Sign[:], "signature")
		r.Fixed(e.Certificate[:], "certificate")
		if parts >= 7 {
			r.Fixed(e.Identity[:], "identity")
			r.Fixed(e.Vouch[:], "identity signature")
			if e.Identity == (ID{}) {
				nobody = i
			}
		}
		if parts == 6 || parts == 8 {
			r.Fixed(e.Lot[:], "lot")
			if e.Lot == [LotSize]byte{} {
				nobody = i
			}
		}
		v.Entries = append(v.Entries, e)
	}
	if parts == 5 {
		v.Enrolments = bytes.Clone(r.Bytes(1, MaxEnrolments, "enrolments"))
	}
	if err := done(&r); err != nil {
		return err
	}
	if nobody >= 0 {
		return fmt.Errorf("%w: entry %d has an identity or a lot of zeros", ErrEncoding, nobody)
	}
	*m = v
	return nil
}

// AppendBinary appends the canonical encoding. The error is always nil.
func (m *Shares) AppendBinary(b []byte) ([]byte, error) {
	b = appendBegin(slices.Grow(b, len(m.Commit)+len(m.Sealed)+headRoom), 4, kindShares, &m.Roster)
	b = cbor.AppendBytes(b, m.Commit)
	return cbor.AppendBytes(b, m.Sealed), nil
}

// UnmarshalBinary decodes a canonical encoding, or wraps ErrEncoding. Commitments and
// sealed shares are not copied: m keeps data.
func (m *Shares) UnmarshalBinary(data []byte) error {
	var v Shares
	r := begin(data, 4, kindShares, &v.Roster)
	v.Commit = r.Bytes(0, 2*MaxShard*pointSize, "commitments")
	v.Sealed = r.Bytes(0, MaxShard*maxSealed, "sealed shares")
	if err := done(&r); err != nil {
		return err
	}
	*m = v
	return nil
}

// AppendBinary appends the canonical encoding. The error is always nil.
func (m *Delivery) AppendBinary(b []byte) ([]byte, error) {
	b = appendBegin(slices.Grow(b, len(m.U2)+len(m.Sealed)+headRoom), 4, kindDelivery, &m.Roster)
	b = cbor.AppendBytes(b, m.U2)
	return cbor.AppendBytes(b, m.Sealed), nil
}

// UnmarshalBinary decodes a canonical encoding, or wraps ErrEncoding.
func (m *Delivery) UnmarshalBinary(data []byte) error {
	var v Delivery
	r := begin(data, 4, kindDelivery, &v.Roster)
	v.U2 = bytes.Clone(r.Bytes(1, MaxShard/8, "U2"))
	v.Sealed = bytes.Clone(r.Bytes(0, MaxShard*maxSealed, "sealed shares"))
	if err := done(&r); err != nil {
		return err
	}
	*m = v
	return nil
}

// AppendBinary appends the canonical encoding. The error is always nil.
func (m *Masked) AppendBinary(b []byte) ([]byte, error) {
	b = appendBegin(slices.Grow(b, len(m.packed)+headRoom), 3, kindMasked, &m.roster)
	return cbor.AppendBytes(b, m.packed), nil
}

// UnmarshalBinary decodes a canonical encoding, or wraps ErrEncoding. The
// vector is not copied: m keeps data.
func (m *Masked) UnmarshalBinary(data []byte) error {
	var v Masked
	r := begin(data, 3, kindMasked, &v.roster)
	v.packed = r.Bytes(1, MaxDim*MaxWidth/8, "packed vector")
	if err := done(&r); err != nil {
		return err
	}
	*m = v
	return nil
}

// AppendBinary appends the canonical encoding. The error is always nil.
func (m *Survivors) AppendBinary(b []byte) ([]byte, error) {
	b = appendBegin(b, 4, kindSurvivors, &m.Roster)
	b = cbor.AppendBytes(b, m.U2)
	return cbor.AppendBytes(b, m.U3), nil
}

// UnmarshalBinary decodes a canonical encoding, or wraps ErrEncoding.
func (m *Survivors) UnmarshalBinary(data []byte) error {
	var v Survivors
	r := begin(data, 4, kindSurvivors, &v.Roster)
	v.U2 = bytes.Clone(r.Bytes(1, MaxShard/8, "U2"))
	v.U3 = bytes.Clone(r.Bytes(1, MaxShard/8, "U3"))
	if err := done(&r); err != nil {
		return err
	}
	*m = v
	return nil
}

// AppendBinary appends the canonical encoding. The error is always nil.
func (m *Confirmation) AppendBinary(b []byte) ([]byte, error) {
	b = appendBegin(b, 3, kindConfirmation, &m.Roster)
	return cbor.AppendBytes(b, m.Sign[:]), nil
}

// UnmarshalBinary decodes a canonical encoding, or wraps ErrEncoding.
func (m *Confirmation) UnmarshalBinary(data []byte) error {
	var v Confirmation
	r := begin(data, 3, kindConfirmation, &v.Roster)
	r.Fixed(v.Sign[:], "signature")
	if err := done(&r); err != nil {
		return err
	}
	*m = v
	return nil
}

// AppendBinary appends the canonical encoding. The error is always nil.
func (m *Confirmations) AppendBinary(b []byte) ([]byte, error) {
	b = appendBegin(slices.Grow(b, len(m.U4)+len(m.Signs)+headRoom), 4, kindConfirmations, &m.Roster)
	b = cbor.AppendBytes(b, m.U4)
	return cbor.AppendBytes(b, m.Signs), nil
}

// UnmarshalBinary decodes a canonical encoding, or wraps ErrEncoding.
func (m *Confirmations) UnmarshalBinary(data []byte) error {
	var v Confirmations
	r := begin(data, 4, kindConfirmations, &v.Roster)
	v.U4 = bytes.Clone(r.Bytes(1, MaxShard/8, "U4"))
	v.Signs = bytes.Clone(r.Bytes(0, MaxShard*sigSize, "signatures"))
	if err := done(&r); err != nil {
		return err
	}
	*m = v
	return nil
}

// AppendBinary appends the canonical encoding. The error is always nil.
func (m *Reveal) AppendBinary(b []byte) ([]byte, error) {
	b = appendBegin(slices.Grow(b, len(m.Held)+len(m.Shares)+headRoom), 4, kindReveal, &m.Roster)
	b = cbor.AppendBytes(b, m.Held)
	return cbor.AppendBytes(b, m.Shares), nil
}

// UnmarshalBinary decodes a canonical encoding, or wraps ErrEncoding. Nothing is
// copied: m keeps data.
func (m *Reveal) UnmarshalBinary(data []byte) error {
	var v Reveal
	r := begin(data, 4, kindReveal, &v.Roster)
	v.Held = r.Bytes(1, MaxShard/8, "held")
	v.Shares = r.Bytes(0, MaxShard*scalarSize, "shares")
	if err := done(&r); err != nil {
		return err
	}
	*m = v
	return nil
}

// AppendBinary appends the canonical encoding. The error is always nil.
func (c Config) AppendBinary(b []byte) ([]byte, error) {
	flags := uint64(0)
	if c.SemiHonest {
		flags |= 1
	}
	if c.Identified {
		flags |= 2
	}
	if c.Logged {
		flags |= 4
	}
	if c.Dealt {
		flags |= 8
	}
	fields := 10
	if c.MaxSum != 0 {
		fields++
	}
	b = cbor.AppendArray(b, fields)
	for _, v := range []int{c.Dim, c.Width, c.MaxSymbol, c.ShardMax, c.ShardMin, int(c.CorruptPPM), c.BreachBits, int(flags), int(c.Suite)} {
		b = cbor.AppendUint(b, uint64(v))
	}
	b = cbor.AppendBytes(b, c.Authority[:])
	if c.MaxSum != 0 {
		b = cbor.AppendUint(b, uint64(c.MaxSum))
	}
	return b, nil
}

// UnmarshalBinary decodes a canonical encoding, or wraps ErrEncoding. It does
// not validate: NewClient and NewKeying do.
func (c *Config) UnmarshalBinary(data []byte) error {
	var v Config
	r := cbor.NewReader(data)
	fields := r.Array(10, 11, "config")
	for _, p := range []*int{&v.Dim, &v.Width, &v.MaxSymbol, &v.ShardMax, &v.ShardMin} {
		*p = int(r.Uint(1<<31-1, "config"))
	}
	v.CorruptPPM = uint32(r.Uint(1<<31-1, "corrupt"))
	v.BreachBits = int(r.Uint(1<<31-1, "breach bits"))
	flags := r.Uint(15, "flags")
	v.SemiHonest, v.Identified, v.Logged, v.Dealt = flags&1 != 0, flags&2 != 0, flags&4 != 0, flags&8 != 0
	v.Suite = Suite(r.Uint(255, "suite"))
	r.Fixed(v.Authority[:], "authority")
	if fields == 11 {
		if v.MaxSum = int(r.Uint(1<<31-1, "largest sum")); v.MaxSum == 0 && r.OK() {
			return fmt.Errorf("%w: config: a largest sum of 0 is left out", ErrEncoding)
		}
	}
	if err := done(&r); err != nil {
		return err
	}
	*c = v
	return nil
}
