package secagg

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/starling-fl/starling/internal/leaf/uniform"
)

// A Keying is the server's side of turn 1, before there are shards. Not safe for
// concurrent use.
type Keying struct {
	cfg       Config
	plan      Hash
	authority ed25519.PrivateKey
	group     func(ID, *[LotSize]byte) (int, error) // of a Dealt round

	devices []member
	byID    map[ID]int
	taken   map[[32]byte]bool // verify and mask keys seen: no key serves twice
	closed  bool
}

// A member is a device that advertised.
type member struct {
	id     ID
	entry  Entry
	digest Hash // of its Advertise
	group  int  // that its lot puts it into, in a Dealt round
}

// NewKeying opens turn 1 of a round. authority is the private half of
// Config.Authority, nil if Identified. Errors wrap ErrConfig or ErrOverflow.
func NewKeying(cfg Config, plan Hash, authority ed25519.PrivateKey) (*Keying, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Identified {
		if authority != nil {
			return nil, fmt.Errorf("%w: authority key given though Identified", ErrConfig)
		}
	} else if len(authority) != ed25519.PrivateKeySize ||
		!bytes.Equal(authority.Public().(ed25519.PublicKey), cfg.Authority[:]) {
		return nil, fmt.Errorf("%w: authority key does not belong to Authority", ErrConfig)
	}
	return &Keying{cfg: cfg, plan: plan, authority: authority, byID: map[ID]int{}, taken: map[[32]byte]bool{}}, nil
}

// SetGroups gives the function that derives a device's group from its lot in a Dealt round, or
// returns an error for a lot that is not the device's. Call it before turn 1; the function runs
// concurrently with every method of the Keying.
func (k *Keying) SetGroups(group func(from ID, lot *[LotSize]byte) (int, error)) { k.group = group }

// Add takes turn 1 of an enrolled device; from is the identity its session
// proved. Errors are DeviceErrors wrapping ErrLate, ErrRepeated, ErrConflict,
// ErrBinding, ErrStranger, ErrKey, ErrLot or ErrSignature.
func (k *Keying) Add(from ID, m *Advertise) error { return k.Admit(k.Examine(from, m)) }

// Examined is a device's message after the part of its check that needs no order: hashes, lengths,
// ranges. Its signatures and commitments are checked by VerifyBatch, or else by Admit, which also
// takes the message into the round.
type Examined struct {
	from    ID
	turn    Turn
	digest  Hash
	verdict error   // what is wrong with the content by itself
	claims  []claim // signatures that are still to be checked
	points  []byte  // and encodings that must be those of points

	advertise *Advertise
	group     int

	roster Hash
	accept func(i int) // changes the server's state for member i
	packed []byte      // turn 3: the vector
}

// encodings is what messages are encoded into to be hashed.
var encodings = sync.Pool{New: func() any { return new([]byte) }}

// digest is the hash of a message's encoding, by which a repetition is told from a
// conflict.
func digest(m interface{ AppendBinary([]byte) ([]byte, error) }) Hash {
	b := encodings.Get().(*[]byte)
	defer encodings.Put(b)
	*b, _ = m.AppendBinary((*b)[:0])
	defer clear(*b) // a share is a secret
	return sha256.Sum256(*b)
}

// Examine makes the expensive checks of Add that do not depend on other messages. Signatures are
// left to VerifyBatch or Admit. It may run concurrently with every method of the Keying.
func (k *Keying) Examine(from ID, m *Advertise) *Examined {
	j := &Examined{from: from, turn: TurnAdvertise, digest: digest(m), advertise: m}
	if j.verdict = k.judge(from, m); j.verdict != nil {
		return j
	}
	if k.cfg.Dealt {
		var err error
		if j.group, err = k.drawn(from, m); err != nil {
			j.verdict = fmt.Errorf("%w: %w", ErrLot, err)
			return j
		}
	}
	j.claim("keys", &m.Keys.Verify, keyStatement(labelKeys, &k.plan, &m.Keys), &m.Sign)
	if !k.cfg.Identified {
		j.claim("identity", (*[32]byte)(&j.from), keyStatement(labelVouch, &k.plan, &m.Keys), &m.Vouch)
	}
	return j
}

// Admit completes Add for an examined message. It is cheap, and the caller chooses the order.
func (k *Keying) Admit(j *Examined) error {
	settled(j)
	from, m, digest := j.from, j.advertise, j.digest
	if err := k.check(j); err != nil {
		return &DeviceError{Device: from, Turn: TurnAdvertise, Err: err}
	}
	e := Entry{Keys: m.Keys, Sign: m.Sign, Lot: m.Lot}
	if k.cfg.Logged && !k.cfg.Identified {
		e.Identity, e.Vouch = from, m.Vouch
	}
	e.Keys.Seal = bytes.Clone(m.Keys.Seal)
	k.byID[from] = len(k.devices)
	k.devices = append(k.devices, member{id: from, entry: e, digest: digest, group: j.group})
	k.taken[m.Keys.Verify], k.taken[m.Keys.Mask] = true, true
	return nil
}

func (k *Keying) check(j *Examined) error {
	if i, ok := k.byID[j.from]; ok {
		if k.devices[i].digest == j.digest {
			return ErrRepeated
		}
		return fmt.Errorf("%w: second set of keys", ErrConflict)
	}
	switch m := j.advertise; {
	case k.closed:
		return ErrLate
	case k.taken[m.Keys.Verify] || k.taken[m.Keys.Mask]:
		return fmt.Errorf("%w: another device's key", ErrKey)
	}
	return j.verdict
}

// drawn is the group that a device's lot puts it into.
func (k *Keying) drawn(from ID, m *Advertise) (int, error) {
	if k.group == nil {
		return 0, errors.New("no verifier of lots is given")
	}
	return k.group(from, &m.Lot)
}

// judge checks what an advertisement says by itself, but for its signatures.
func (k *Keying) judge(from ID, m *Advertise) error {
	switch {
	case m.Plan != k.plan:
		return fmt.Errorf("%w: advertisement", ErrBinding)
	case m.Identity != from:
		return fmt.Errorf("%w: advertisement names identity %x", ErrStranger, m.Identity[:4])
	case k.cfg.Identified && m.Keys.Verify != [32]byte(from):
		return fmt.Errorf("%w: verify key is not the identity", ErrKey)
	case !k.cfg.Identified && m.Keys.Verify == [32]byte(from):
		return fmt.Errorf("%w: verify key is the identity", ErrKey)
	}
	if err := checkLot(&k.cfg, &m.Lot); err != nil {
		return err
	}
	if err := m.Keys.check(k.cfg.Suite); err != nil {
		return err
	}
	if k.cfg.Identified && m.Vouch != [sigSize]byte{} {
		return fmt.Errorf("%w: identity signature though identified", ErrSignature)
	}
	return nil
}

// Len is the number of devices so far.
func (k *Keying) Len() int { return len(k.devices) }

// Cut closes turn 1 and cuts the devices into ceil(n/ShardMax) shards, whose sizes differ by at
// most one, by a uniform permutation drawn from rand. If a shard would be smaller than ShardMin it
// fails with ErrBelowFloor and turn 1 stays open.
func (k *Keying) Cut(rand io.Reader) ([]*Server, error) { return k.CutTo(rand, k.cfg.ShardMax) }

// CutTo is Cut into smaller shards of at most the given number of devices, as far as ShardMin
// allows it.
func (k *Keying) CutTo(rand io.Reader, most int) ([]*Server, error) {
	if k.closed {
		return nil, &StateError{Call: "Cut", Turn: TurnShare, Err: ErrLate}
	}
	sizes, err := k.cfg.Sizes(len(k.devices), most)
	if err != nil {
		return nil, err
	}
	order, err := permutation(len(k.devices), rand)
	if err != nil {
		return nil, err
	}
	groups := make([][]int, len(sizes))
	for i, size := range sizes {
		groups[i], order = order[:size], order[size:]
	}
	return k.serve(groups)
}

// Deal closes turn 1 and deals the devices into groups, each of which becomes a shard: at random as
// Config.Groups does, or by their lots in a Dealt round. left are the devices without a shard. If
// no group is large enough, Deal fails with ErrBelowFloor and turn 1 stays open.
func (k *Keying) Deal(rand io.Reader, groups int) (shards []*Server, left []ID, err error) {
	if k.closed {
		return nil, nil, &StateError{Call: "Deal", Turn: TurnShare, Err: ErrLate}
	}
	// Whom chance leaves out does not follow the order in which keys came.
	slices.SortFunc(k.devices, func(a, b member) int { return bytes.Compare(a.id[:], b.id[:]) })
	for i, m := range k.devices {
		k.byID[m.id] = i
	}
	by := uniformly(rand, groups)
	if k.cfg.Dealt {
		by = func(j int) (int, error) { return k.devices[j].group, nil }
	}
	kept, without, err := k.cfg.dealt(rand, len(k.devices), groups, by)
	if err != nil {
		return nil, nil, err
	}
	for _, j := range without {
		left = append(left, k.devices[j].id)
	}
	shards, err = k.serve(kept)
	return shards, left, err
}

// Groups deals n devices into the given number of groups, each device uniformly and independently
// of all others: whether a device is there changes nothing about the others' groups. A group of
// fewer than ShardMin devices goes to left as a whole; from one of more than ShardMax a random
// surplus does. The error wraps ErrBelowFloor if no group is kept.
func (c Config) Groups(rand io.Reader, n, groups int) (kept [][]int, left []int, err error) {
	return c.dealt(rand, n, groups, uniformly(rand, groups))
}

// uniformly puts whomever it is asked for into a group by chance.
func uniformly(rand io.Reader, groups int) func(int) (int, error) {
	return func(int) (int, error) { return uniform.Below(rand, groups) }
}

// dealt is Groups by what says in which group a device is.
func (c Config) dealt(rand io.Reader, n, groups int, by func(j int) (int, error)) (kept [][]int, left []int, err error) {
	// In a random order: the first that a group has are those that it keeps.
	order, err := permutation(n, rand)
	if err != nil {
		return nil, nil, err
	}
	dealt := make([][]int, groups)
	for _, j := range order {
		g, err := by(j)
		if err == nil && (g < 0 || g >= groups) {
			err = fmt.Errorf("%w: group %d of %d", ErrConfig, g, groups)
		}
		if err != nil {
			return nil, nil, err
		}
		dealt[g] = append(dealt[g], j)
	}
	for _, g := range dealt {
		most := 0
		if len(g) >= c.ShardMin {
			most = min(len(g), c.ShardMax)
			kept = append(kept, g[:most])
		}
		left = append(left, g[most:]...)
	}
	if len(kept) == 0 {
		return nil, nil, fmt.Errorf("%w: %d devices in %d groups make no shard of at least %d", ErrBelowFloor, n, groups, c.ShardMin)
	}
	return kept, left, nil
}

// serve begins the shards of devices that are given by their places, and closes turn 1.
func (k *Keying) serve(groups [][]int) ([]*Server, error) {
	shards, errs := make([]*Server, len(groups)), make([]error, len(groups))
	var wg sync.WaitGroup
	for number, group := range groups {
		members := make([]member, len(group))
		for i, j := range group {
			members[i] = k.devices[j]
		}
		// Each certifies its members by itself.
		wg.Go(func() { shards[number], errs[number] = newServer(k.cfg, k.plan, number, members, k.authority) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	k.closed = true
	return shards, nil
}

// Sizes lists the sizes of the shards that CutTo cuts n devices into, larger ones first. The error
// wraps ErrBelowFloor if a shard would be smaller than ShardMin.
func (c Config) Sizes(n, most int) ([]int, error) {
	sizes := shardSizes(n, min(max(most, 1), c.ShardMax))
	if count := n / c.ShardMin; len(sizes) > count {
		sizes = shardSizes(n, c.ShardMax) // as few as there must be
		if count > len(sizes) {
			sizes = shardSizes(n, (n+count-1)/count)
		}
	}
	if len(sizes) == 0 || sizes[len(sizes)-1] < c.ShardMin {
		return nil, fmt.Errorf("%w: %d devices make no shards of at least %d", ErrBelowFloor, n, c.ShardMin)
	}
	return sizes, nil
}

// shardSizes is how n devices are cut: larger shards first.
func shardSizes(n, max int) []int {
	if n == 0 {
		return nil
	}
	count := (n + max - 1) / max
	sizes := make([]int, count)
	for i := range sizes {
		sizes[i] = n / count
		if i < n%count {
			sizes[i]++
		}
	}
	return sizes
}

// permutation is 0..n-1 in a random order.
func permutation(n int, rand io.Reader) ([]int, error) {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	return p, uniform.Shuffle(rand, p)
}

// newServer sorts the members, certifies their keys and opens turn 2.
func newServer(cfg Config, plan Hash, number int, members []member, authority ed25519.PrivateKey) (*Server, error) {
	t, err := cfg.Threshold(len(members))
	if err != nil {
		return nil, err
	}
	if need := RingWidth(len(members), cfg.MaxSymbol); need > cfg.Width && cfg.MaxSum == 0 {
		return nil, fmt.Errorf("%w: shard of %d needs %d bits", ErrOverflow, len(members), need)
	}
	slices.SortFunc(members, func(a, b member) int {
		return bytes.Compare(a.entry.Keys.Verify[:], b.entry.Keys.Verify[:])
	})
	s := &Server{cfg: cfg, turn: TurnShare, adding: new(sync.Mutex), threshold: t, index: make(map[ID]int, len(members))}
	s.message = Roster{Plan: plan, Shard: number}
	for i, m := range members {
		if authority != nil {
			copy(m.entry.Certificate[:], ed25519.Sign(authority, keyStatement(labelCert, &plan, &m.entry.Keys)))
		}
		s.message.Entries = append(s.message.Entries, m.entry)
		s.index[m.id] = i
		s.members = append(s.members, m.id)
	}
	n := len(members)
	s.roster = s.message.Hash()
	s.u2, s.u3, s.u4, s.u5 = newSet(n), newSet(n), newSet(n), newSet(n)
	for t := range s.digest {
		s.digest[t] = make([]Hash, n)
	}
	s.commit, s.sealed = make([][]byte, n), make([][]byte, n)
	s.signs, s.reveals = make([][sigSize]byte, n), make([]*Reveal, n)
	return s, nil
}
