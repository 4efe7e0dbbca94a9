package attack

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hpke"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

// A Member is one device's part in one shard's round: the five turns of section 4,
// each as the bytes of its message. It holds its secrets after they were used, so
// that it can be made to do again what an honest device does once.
type Member struct {
	// Sealing is what it says its sealing key is; nil: its own.
	Sealing []byte

	contract
	identity ed25519.PrivateKey
	verify   ed25519.PrivateKey
	maskSeed *big.Int // a
	selfSeed *big.Int // b
	maskKey  []byte
	sealKey  []byte
	kem      hpke.PrivateKey // of the hybrid suite; nil without

	entries []Array
	R       [32]byte
	me, n   int
	T       int
	f, g    polynomial
	sealed  map[int][]byte // from each dealer
	U2, U3  []byte
}

// NewMember draws a round's keys, under job and plan as they were received.
func NewMember(identity ed25519.PrivateKey, job, plan []byte) (*Member, error) {
	c, err := newContract(job, plan)
	if err != nil {
		return nil, err
	}
	m := &Member{contract: c, identity: identity, maskSeed: randomScalar(), selfSeed: randomScalar(), sealKey: random(32)}
	m.maskKey = kdf(littleEndian(m.maskSeed), append([]byte("mask key"), c.plan[:]...), 32)
	if c.hybrid {
		if m.kem, err = hpke.MLKEM768X25519().GenerateKey(); err != nil {
			return nil, fmt.Errorf("attack: %w", err)
		}
	}
	if m.verify = identity; !c.identified {
		if _, m.verify, err = ed25519.GenerateKey(nil); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Pose has it take part under other keys, which sign for it.
func (m *Member) Pose(identity, verify ed25519.PrivateKey) { m.identity, m.verify = identity, verify }

// Identity is the key that it takes part with, Public its public half.
func (m *Member) Identity() ed25519.PrivateKey { return m.identity }
func (m *Member) Public() []byte               { return public(m.identity) }

func public(key ed25519.PrivateKey) []byte { return key.Public().(ed25519.PublicKey) }

// keys is K.
func (m *Member) keys() []byte {
	return slices.Concat(Encode(public(m.verify)), Encode(publicKey(m.maskKey)), Encode(m.sealPublic()))
}

func (m *Member) signed(label string, k []byte) []byte {
	return slices.Concat([]byte(label), m.plan[:], k)
}

// Advertise is turn 1.
func (m *Member) Advertise() Array {
	k := m.keys()
	vouch := make([]byte, 64)
	if !m.identified {
		vouch = ed25519.Sign(m.identity, m.signed("starling/secagg/1 vouch", k))
	}
	a := Array{1, m.plan[:], public(m.verify), publicKey(m.maskKey), m.sealPublic(),
		ed25519.Sign(m.verify, m.signed("starling/secagg/1 keys", k)), public(m.identity), vouch}
	if m.dealt {
		a = append(a, m.Lot())
	}
	return a
}

// Lot is what it draws in a dealt round.
func (m *Member) Lot() []byte { return drawLot(m.identity, m.deals()) }

// Entry is the member's line in a roster, certified by an authority.
func (m *Member) Entry(authority ed25519.PrivateKey) Array {
	k := m.keys()
	certificate := make([]byte, 64)
	if authority != nil && !m.identified {
		certificate = ed25519.Sign(authority, m.signed("starling/secagg/1 certificate", k))
	}
	entry := Array{public(m.verify), publicKey(m.maskKey), m.sealPublic(),
		ed25519.Sign(m.verify, m.signed("starling/secagg/1 keys", k)), certificate}
	if m.logged && !m.identified {
		entry = append(entry, public(m.identity), ed25519.Sign(m.identity, m.signed("starling/secagg/1 vouch", k)))
	}
	if m.dealt {
		entry = append(entry, m.Lot())
	}
	return entry
}

// Roster takes turn 1's answer, and checks of it what it needs to go on.
func (m *Member) Roster(b []byte) error {
	a, err := DecodeArray(b, 4)
	if err != nil {
		return err
	}
	m.entries = nil
	list, _ := a[3].(Array)
	m.me = -1
	items, who := 5, 0
	if m.logged && !m.identified {
		items, who = 7, 5
	}
	if m.dealt {
		items++
	}
	var identities [][]byte
	groups := map[int]bool{}
	for i, e := range list {
		entry, ok := e.(Array)
		if !ok || len(entry) != items {
			return fmt.Errorf("attack: entry %d of the roster", i)
		}
		at := Frame{Body: entry}
		k := slices.Concat(Encode(at.Bytes(0)), Encode(at.Bytes(1)), Encode(at.Bytes(2)))
		if !ed25519.Verify(at.Bytes(0), m.signed("starling/secagg/1 keys", k), at.Bytes(3)) {
			return fmt.Errorf("attack: entry %d of the roster has not signed this plan", i)
		}
		if !m.identified && !ed25519.Verify(m.authority, m.signed("starling/secagg/1 certificate", k), at.Bytes(4)) {
			return fmt.Errorf("attack: entry %d of the roster is not certified", i)
		}
		if who == 5 && !ed25519.Verify(at.Bytes(5), m.signed("starling/secagg/1 vouch", k), at.Bytes(6)) {
			return fmt.Errorf("attack: entry %d of the roster is not vouched for", i)
		}
		if bytes.Equal(at.Bytes(0), public(m.verify)) {
			m.me = i
		}
		if m.dealt {
			group, err := m.Group(at.Bytes(who), at.Bytes(items-1))
			if err != nil {
				return err
			}
			groups[group] = true
		}
		identities = append(identities, at.Bytes(who))
		m.entries = append(m.entries, entry)
	}
	if len(groups) > 1 {
		return fmt.Errorf("attack: a roster of the groups %v", groups)
	}
	if m.me < 0 {
		return errors.New("attack: this device is not in its roster")
	}
	if m.logged {
		if len(a) != 5 {
			return errors.New("attack: nothing proves that the roster's devices are enrolled")
		}
		proof, _ := a[4].([]byte)
		if err := checkMembers(m.head, m.log, proof, identities); err != nil {
			return err
		}
	}
	sum := sha256.New()
	sum.Write([]byte("starling/secagg/1 roster"))
	sum.Write(b)
	sum.Sum(m.R[:0])
	m.n = len(m.entries)
	m.T = m.threshold(m.n)
	return nil
}

func (m *Member) peer(i, key int) []byte { b, _ := m.entries[i][key].([]byte); return b }

// shareKey is the secret of X25519 and the associated data of what i seals for j; one
// of both is this member.
func (m *Member) shareKey(i, j int) (secret, data []byte, err error) {
	other := i
	if i == m.me {
		other = j
	}
	public := m.peer(other, 2)
	if len(public) < keyX25519 {
		return nil, nil, fmt.Errorf("attack: a sealing key of %d bytes", len(public))
	}
	secret, err = shared(m.sealKey, public[:keyX25519])
	data = slices.Concat([]byte("share"), m.R[:], []byte{byte(i >> 8), byte(i), byte(j >> 8), byte(j)})
	return secret, data, err
}

// Shares is turn 2. spoil changes what is sealed for a holder, before it is; nil:
// nobody's.
func (m *Member) Shares(spoil func(holder int, pair []byte)) (Array, error) {
	m.f, m.g = newPolynomial(m.maskSeed, m.T), newPolynomial(m.selfSeed, m.T)
	var commitments, sealed []byte
	for _, of := range []polynomial{m.f, m.g} {
		for _, c := range of {
			commitments = append(commitments, commitment(c)...)
		}
	}
	for j := range m.n {
		if j == m.me {
			continue
		}
		pair := slices.Concat(littleEndian(m.f.at(j+1)), littleEndian(m.g.at(j+1)))
		if spoil != nil {
			spoil(j, pair)
		}
		box, err := m.sealPair(j, pair)
		if err != nil {
			return nil, err
		}
		sealed = append(sealed, box...)
	}
	return Array{3, m.R[:], commitments, sealed}, nil
}

func in(set []byte, i int) bool { return set[i/8]>>(i%8)&1 == 1 }

// Set is a set of a shard's members.
func (m *Member) Set(members ...int) []byte {
	b := make([]byte, (m.n+7)/8)
	for _, i := range members {
		b[i/8] |= 1 << (i % 8)
	}
	return b
}

// All is the set of all members.
func (m *Member) All() []byte {
	all := make([]int, m.n)
	for i := range all {
		all[i] = i
	}
	return m.Set(all...)
}

// Delivery takes turn 2's answer.
func (m *Member) Delivery(b []byte) error {
	a, err := DecodeArray(b, 4)
	if err != nil {
		return err
	}
	at := Frame{Body: a}
	if !bytes.Equal(at.Bytes(1), m.R[:]) {
		return errors.New("attack: a delivery of another roster")
	}
	m.U2, m.sealed = at.Bytes(2), map[int][]byte{}
	boxes := at.Bytes(3)
	for i := range m.n {
		if i == m.me || !in(m.U2, i) {
			continue
		}
		if len(boxes) < m.box() {
			return errors.New("attack: a delivery that is too short")
		}
		m.sealed[i], boxes = boxes[:m.box()], boxes[m.box():]
	}
	return nil
}

// pairMask is k_ij.
func (m *Member) pairMask(j int) ([]byte, error) {
	secret, err := shared(m.maskKey, m.peer(j, 1))
	lo, hi := min(m.me, j), max(m.me, j)
	return kdf(secret, slices.Concat([]byte("pair mask"), m.R[:], []byte{byte(lo >> 8), byte(lo), byte(hi >> 8), byte(hi)}), 16), err
}

// Masked is turn 3: the message that goes out in Update frames. A vector shorter
// than the round's is filled up with zeros.
func (m *Member) Masked(symbols []int32) ([]byte, error) {
	v := make([]uint32, m.dim)
	for i, x := range symbols {
		v[i] = uint32(x) & (1<<m.width - 1)
	}
	addMask(v, kdf(littleEndian(m.selfSeed), append([]byte("self mask"), m.R[:]...), 16), m.width, false)
	for j := range m.n {
		if j == m.me || !in(m.U2, j) {
			continue
		}
		key, err := m.pairMask(j)
		if err != nil {
			return nil, err
		}
		addMask(v, key, m.width, j < m.me)
	}
	return Encode(Array{5, m.R[:], pack(v, m.width)}), nil
}

// Survivors takes turn 3's answer.
func (m *Member) Survivors(b []byte) error {
	a, err := DecodeArray(b, 4)
	if err != nil {
		return err
	}
	at := Frame{Body: a}
	m.U2, m.U3 = at.Bytes(2), at.Bytes(3)
	return nil
}

// Confirm is turn 4, over sets that need not be those that were said.
func (m *Member) Confirm(u2, u3 []byte) Array {
	return Array{7, m.R[:], ed25519.Sign(m.verify, m.story(u2, u3))}
}

func (m *Member) story(u2, u3 []byte) []byte {
	return slices.Concat([]byte("starling/secagg/1 sets"), m.R[:], u2, u3)
}

// Reveal is turn 5: a share of each member of U2.
func (m *Member) Reveal() (Array, error) {
	var held, scalars []byte
	held = make([]byte, (m.n+7)/8)
	for j := range m.n {
		if !in(m.U2, j) {
			continue
		}
		pair := slices.Concat(littleEndian(m.f.at(m.me+1)), littleEndian(m.g.at(m.me+1)))
		if j != m.me {
			var err error
			if pair, err = m.openPair(j, m.sealed[j]); err != nil {
				continue // not held
			}
		}
		held[j/8] |= 1 << (j % 8)
		if in(m.U3, j) {
			scalars = append(scalars, pair[32:]...)
		} else {
			scalars = append(scalars, pair[:32]...)
		}
	}
	return Array{9, m.R[:], held, scalars}, nil
}
