package secagg

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"io"

	"filippo.io/edwards25519"
)

// A Client is a device's side of one round in one shard. It masks one vector,
// ever. Not safe for concurrent use.
type Client struct {
	cfg      Config
	plan     Hash
	identity ed25519.PrivateKey
	rand     io.Reader

	next   Turn
	erased bool
	sent   [TurnDone][]byte // by turn: encodings, to resend
	got    [TurnDone]Hash   // by turn: hash of the server's message that was taken

	// Secrets, each erased as soon as no later turn needs it.
	signer  ed25519.PrivateKey // until Confirm
	maskA   [scalarSize]byte   // mask key's scalar, until Mask
	selfA   [scalarSize]byte   // self-mask's scalar, until Mask
	sealing *sealer            // until Deliver
	agreed  []shared           // X25519 of the sealing keys by roster index, until Deliver
	shares  [][plainSize]byte  // by dealer: shares held, until Reveal

	keys      Keys
	lot       [LotSize]byte
	roster    Hash
	entries   []Entry
	index     int // own position in the roster
	threshold int
	u2, u3    Set
	held      Set // dealers whose shares are held
	delivered bool
}

// NewClient prepares a device for the round of plan (see PlanHash). rand must be
// a cryptographic source (crypto/rand.Reader); identity stays the caller's.
// Errors wrap ErrConfig, ErrOverflow.
func NewClient(cfg Config, plan Hash, identity ed25519.PrivateKey, rand io.Reader) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if len(identity) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("%w: identity key of %d bytes", ErrConfig, len(identity))
	}
	if rand == nil {
		return nil, fmt.Errorf("%w: no source of randomness", ErrConfig)
	}
	return &Client{cfg: cfg, plan: plan, identity: identity, rand: rand, next: TurnAdvertise}, nil
}

// begin checks that a call belongs to turn t. For calls that take a message, msg
// is its encoding: a message seen before is told from a different one. Any other
// call may be made once.
func (c *Client) begin(call string, t Turn, msg []byte) error {
	cause := error(nil)
	switch {
	case c.erased:
		cause = ErrErased
	case c.next < t:
		cause = ErrOutOfTurn
	case c.next > t && msg != nil && c.got[t] == sha256.Sum256(msg):
		cause = ErrRepeated
	case c.next > t:
		cause = ErrConflict
	default:
		return nil
	}
	return &StateError{Call: call, Turn: c.next, Err: cause}
}

// SetLot gives the lot that Advertise will show. It is required in a Dealt round and refused in any
// other: the error wraps ErrLot.
func (c *Client) SetLot(lot [LotSize]byte) error {
	if err := c.begin("SetLot", TurnAdvertise, nil); err != nil {
		return err
	}
	if err := checkLot(&c.cfg, &lot); err != nil {
		return err
	}
	c.lot = lot
	return nil
}

// checkLot refuses a lot where none is to be, and none where one is.
func checkLot(cfg *Config, lot *[LotSize]byte) error {
	if drawn := *lot != [LotSize]byte{}; drawn != cfg.Dealt {
		return fmt.Errorf("%w: drawn: %v, in a round that is dealt: %v", ErrLot, drawn, cfg.Dealt)
	}
	return nil
}

// Advertise draws the round's keys and returns turn 1. Without the lot of a Dealt round
// (see SetLot) the error wraps ErrLot.
func (c *Client) Advertise() (*Advertise, error) {
	if err := c.begin("Advertise", TurnAdvertise, nil); err != nil {
		return nil, err
	}
	if err := checkLot(&c.cfg, &c.lot); err != nil {
		return nil, err
	}
	signer := c.identity
	if !c.cfg.Identified {
		seed, err := random32(c.rand)
		if err != nil {
			return nil, err
		}
		signer = ed25519.NewKeyFromSeed(seed[:])
		clear(seed[:])
	}
	maskA, err := randomScalar(c.rand)
	if err != nil {
		return nil, err
	}
	selfA, err := randomScalar(c.rand)
	if err != nil {
		return nil, err
	}
	seed := make([]byte, c.cfg.Suite.seedSize())
	defer clear(seed)
	if _, err := io.ReadFull(c.rand, seed); err != nil {
		return nil, fmt.Errorf("secagg: reading randomness: %w", err)
	}
	sealing, public, err := newSealer(c.cfg.Suite, seed)
	if err != nil {
		return nil, err
	}

	m := &Advertise{Plan: c.plan, Keys: Keys{Seal: public}, Lot: c.lot}
	copy(m.Keys.Verify[:], signer.Public().(ed25519.PublicKey))
	copy(m.Identity[:], c.identity.Public().(ed25519.PublicKey))
	copy(c.maskA[:], maskA.Bytes())
	copy(c.selfA[:], selfA.Bytes())
	maskA.Set(edwards25519.NewScalar())
	selfA.Set(edwards25519.NewScalar())
	copy(m.Keys.Mask[:], maskPrivate(c.maskA[:], &c.plan).PublicKey().Bytes())
	copy(m.Sign[:], ed25519.Sign(signer, keyStatement(labelKeys, &c.plan, &m.Keys)))
	if !c.cfg.Identified {
		copy(m.Vouch[:], ed25519.Sign(c.identity, keyStatement(labelVouch, &c.plan, &m.Keys)))
	}

	c.signer, c.sealing, c.keys = signer, sealing, m.Keys
	c.keys.Seal = bytes.Clone(m.Keys.Seal)
	c.sent[TurnAdvertise], _ = m.AppendBinary(nil)
	c.next = TurnShare
	return m, nil
}

// Share checks the roster under this device's own plan and returns turn 2.
// RefusalErrors wrap ErrBinding, ErrBelowFloor, ErrLength, ErrRoster, ErrKey,
// ErrLot, ErrSignature or ErrConfig.
func (c *Client) Share(m *Roster) (*Shares, error) {
	enc, _ := m.AppendBinary(nil)
	if err := c.begin("Share", TurnShare, enc); err != nil {
		return nil, err
	}
	index, err := checkRoster(&c.cfg, &c.plan, m, &Entry{Keys: c.keys, Identity: ID(c.identity.Public().(ed25519.PublicKey)), Lot: c.lot})
	if err != nil {
		return nil, refuse(TurnShare, err)
	}
	n := len(m.Entries)
	t, err := c.cfg.Threshold(n)
	if err != nil {
		return nil, refuse(TurnShare, err)
	}
	roster := m.Hash()

	var f [2]polynomial
	defer func() { f[0].erase(); f[1].erase() }()
	for k, secret := range [2][]byte{c.maskA[:], c.selfA[:]} {
		a, err := edwards25519.NewScalar().SetCanonicalBytes(secret)
		if err != nil {
			return nil, err
		}
		if f[k], err = newPolynomial(a, t, c.rand); err != nil {
			return nil, err
		}
	}
	// The secrets' randomness comes first, so that what is sent does not depend on
	// how signatures are checked.
	if err := checkSignatures(&c.cfg, &c.plan, m, c.rand); err != nil {
		return nil, err
	}
	out := &Shares{Roster: roster, Commit: make([]byte, 0, 2*t*pointSize)}
	for k := range f {
		out.Commit = f[k].commit(out.Commit)
	}
	agreed := make([]shared, n)
	var own, plain [plainSize]byte
	defer clear(plain[:])
	out.Sealed = make([]byte, 0, (n-1)*c.cfg.Suite.sealedSize())
	for i := range m.Entries {
		copy(plain[:scalarSize], f[0].share(i).Bytes())
		copy(plain[scalarSize:], f[1].share(i).Bytes())
		if i == index {
			own = plain
			continue
		}
		peer := m.Entries[i].Keys.Seal
		if agreed[i], err = c.sealing.agree(peer); err != nil {
			return nil, refuse(TurnShare, err)
		}
		if out.Sealed, err = c.sealing.seal(out.Sealed, &agreed[i], peer, &plain, &roster, index, i); err != nil {
			return nil, err
		}
	}

	c.entries = make([]Entry, n)
	for i := range m.Entries {
		c.entries[i] = m.Entries[i]
		c.entries[i].Keys.Seal = nil // no longer needed
	}
	c.roster, c.index, c.threshold, c.agreed = roster, index, t, agreed
	c.shares = make([][plainSize]byte, n)
	c.shares[index] = own
	c.held = newSet(n)
	c.held.add(index)
	c.got[TurnShare] = sha256.Sum256(enc)
	c.sent[TurnShare], _ = out.AppendBinary(nil)
	c.next = TurnMask
	return out, nil
}

// Deliver takes the shares meant for this device and fixes U2. It sends nothing: the device may
// still be training. If a dealer's shares do not open, the dealer stays in U2, as it does for all
// other devices, and this device holds no share of it.
func (c *Client) Deliver(m *Delivery) error {
	enc, _ := m.AppendBinary(nil)
	if err := c.begin("Deliver", TurnMask, enc); err != nil {
		return err
	}
	if c.delivered {
		cause := ErrConflict
		if c.got[TurnMask] == sha256.Sum256(enc) {
			cause = ErrRepeated
		}
		return &StateError{Call: "Deliver", Turn: c.next, Err: cause}
	}
	n, size := len(c.entries), c.cfg.Suite.sealedSize()
	switch {
	case m.Roster != c.roster:
		return refuse(TurnMask, fmt.Errorf("%w: delivery", ErrBinding))
	case !m.U2.fits(n):
		return refuse(TurnMask, fmt.Errorf("%w: U2 is not a bitmap of %d devices", ErrSet, n))
	case !m.U2.Has(c.index):
		return refuse(TurnMask, fmt.Errorf("%w: U2 leaves this device out", ErrSet))
	case m.U2.Len() < c.threshold:
		return refuse(TurnMask, fmt.Errorf("%w: U2 has %d devices, threshold %d", ErrBelowThreshold, m.U2.Len(), c.threshold))
	case len(m.Sealed) != (m.U2.Len()-1)*size:
		return refuse(TurnMask, fmt.Errorf("%w: sealed shares of %d bytes, want %d", ErrLength, len(m.Sealed), (m.U2.Len()-1)*size))
	}
	sealed := m.Sealed
	for i := range n {
		if !m.U2.Has(i) || i == c.index {
			continue
		}
		if c.sealing.open(&c.shares[i], &c.agreed[i], sealed[:size], &c.roster, i, c.index) && canonicalPair(&c.shares[i]) {
			c.held.add(i)
		} else {
			clear(c.shares[i][:])
		}
		sealed = sealed[size:]
	}
	clear(c.agreed)
	c.agreed, c.sealing = nil, nil
	c.u2, c.delivered = m.U2.clone(), true
	c.got[TurnMask] = sha256.Sum256(enc)
	return nil
}

func canonicalPair(p *[plainSize]byte) bool {
	var s edwards25519.Scalar
	defer s.Set(edwards25519.NewScalar())
	if _, err := s.SetCanonicalBytes(p[:scalarSize]); err != nil {
		return false
	}
	_, err := s.SetCanonicalBytes(p[scalarSize:])
	return err == nil
}

// Mask returns turn 3 for Config.Dim symbols, each in -MaxSymbol..MaxSymbol, and
// forgets the mask secrets: there is no second vector. Errors wrap ErrLength or
// ErrRange (the vector is wrong, try again), or are StateErrors.
func (c *Client) Mask(symbols []int32) (*Masked, error) {
	if err := c.begin("Mask", TurnMask, nil); err != nil {
		return nil, err
	}
	if !c.delivered {
		return nil, &StateError{Call: "Mask", Turn: c.next, Err: ErrOutOfTurn}
	}
	if len(symbols) != c.cfg.Dim {
		return nil, fmt.Errorf("%w: %d symbols, want Dim=%d", ErrLength, len(symbols), c.cfg.Dim)
	}
	v := make([]uint32, len(symbols))
	q := uint64(c.cfg.MaxSymbol)
	for i, x := range symbols {
		// One comparison for both bounds: x+q wraps to a huge value below -q.
		if uint64(int64(x))+q > 2*q {
			clear(v)
			return nil, fmt.Errorf("%w: symbol %d is %d, bound %d", ErrRange, i, x, q)
		}
		v[i] = uint32(x)
	}
	plus, minus, err := c.maskKeys()
	if err != nil {
		clear(v)
		return nil, refuse(TurnMask, err)
	}
	addMasks(v, plus, minus, c.cfg.Width)
	clear(plus)
	clear(minus)
	m := &Masked{roster: c.roster, packed: pack(v, c.cfg.Width)}
	clear(v)

	clear(c.maskA[:])
	clear(c.selfA[:])
	c.next = TurnConfirm
	return m, nil
}

// maskKeys derives the generator keys of the masks this device adds and takes off:
// its own, those of later peers of U2; those of earlier ones.
func (c *Client) maskKeys() (plus, minus []maskKey, err error) {
	priv := maskPrivate(c.maskA[:], &c.plan)
	plus = append(make([]maskKey, 0, len(c.entries)), selfMaskKey(c.selfA[:], &c.roster))
	minus = make([]maskKey, 0, len(c.entries))
	for i := range c.entries {
		if i == c.index || !c.u2.Has(i) {
			continue
		}
		k, err := pairMaskKey(priv, c.entries[i].Keys.Mask[:], &c.roster, c.index, i)
		if err != nil {
			return nil, nil, err
		}
		if i > c.index {
			plus = append(plus, k)
		} else {
			minus = append(minus, k)
		}
	}
	return plus, minus, nil
}
