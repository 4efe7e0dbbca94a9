package attack

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
)

// A Shard is a lying coordinator's: one device, and peers that it has made up.
type Shard struct {
	Victim  *Session
	Peers   []*Member
	Round   uint64
	entry   Array // the victim's line
	entries []Array
	roster  []byte
	log     *Log
	job     []byte
	plan    []byte // that the peers are shown
	me      int    // the victim's place
	update  []uint32
	boxes   map[int][]byte // sealed by the victim, by holder
	shares  map[int]Array  // of the peers, by their place
}

// NewShard assigns a plan to the victim, hears its keys and makes up peers.
func NewShard(ctx context.Context, c *Coordinator, s *Session, plan []byte, peers int) (*Shard, error) {
	return NewSplitShard(ctx, c, s, plan, plan, peers)
}

// NewSplitShard shows its peers another plan than the victim.
func NewSplitShard(ctx context.Context, c *Coordinator, s *Session, plan, other []byte, peers int) (*Shard, error) {
	sh := &Shard{Victim: s}
	job := Encode(c.Job)
	sh.log, sh.job, sh.plan = s.Log, job, other
	if err := s.Assign(ctx, plan); err != nil {
		return nil, err
	}
	b, err := s.Receive(ctx, Advertise)
	if err != nil {
		return nil, err
	}
	a, err := DecodeArray(b, 8)
	if err != nil {
		return nil, err
	}
	of := Frame{Body: a}
	_, stranger, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	peer, err := NewMember(stranger, job, plan)
	if err != nil {
		return nil, err
	}
	sh.Round = peer.round
	identities, short := c.invented(peer, of, peers)
	if short != nil && !errors.Is(short, ErrApart) {
		return nil, short
	}
	if err := sh.people(job, other, identities); err != nil {
		return nil, err
	}
	k := slices.Concat(Encode(of.Bytes(2)), Encode(of.Bytes(3)), Encode(of.Bytes(4)))
	if !bytes.Equal(of.Bytes(1), peer.plan[:]) {
		return nil, errors.New("attack: the device's P is another than the document leads to")
	}
	certificate := make([]byte, 64)
	if peer.identified {
		if !bytes.Equal(of.Bytes(2), s.Identity) {
			return nil, errors.New("attack: the device's key in the shard is not its identity")
		}
	} else {
		if !ed25519.Verify(s.Identity, peer.signed("starling/secagg/1 vouch", k), of.Bytes(7)) {
			return nil, errors.New("attack: the device does not vouch for its keys")
		}
		certificate = ed25519.Sign(c.Authority, peer.signed("starling/secagg/1 certificate", k))
	}
	sh.entry = Array{of.Bytes(2), of.Bytes(3), of.Bytes(4), of.Bytes(5), certificate}
	if peer.logged && !peer.identified {
		sh.entry = append(sh.entry, of.Bytes(6), of.Bytes(7))
	}
	if peer.dealt {
		sh.entry = append(sh.entry, of.Bytes(8))
	}
	if short != nil {
		return sh, short
	}
	sh.seat(c)
	if !bytes.Equal(plan, other) {
		return sh, nil // nothing more is to be had of such a shard
	}
	for _, m := range sh.Peers {
		if err := m.Roster(sh.roster); err != nil {
			return nil, err
		}
	}
	return sh, nil
}

// people makes up the shard's other members.
func (sh *Shard) people(job, plan []byte, identities []ed25519.PrivateKey) error {
	sh.Peers = nil
	for _, identity := range identities {
		m, err := NewMember(identity, job, plan)
		if err != nil {
			return err
		}
		sh.Peers = append(sh.Peers, m)
	}
	return nil
}

// seat writes the roster.
func (sh *Shard) seat(c *Coordinator) {
	sh.entries = []Array{sh.entry}
	for _, m := range sh.Peers {
		sh.entries = append(sh.entries, m.Entry(c.Authority))
	}
	slices.SortFunc(sh.entries, func(a, b Array) int { return bytes.Compare(a[0].([]byte), b[0].([]byte)) })
	for i, e := range sh.entries {
		if bytes.Equal(e[0].([]byte), sh.Mine()) {
			sh.me = i
		}
	}
	sh.roster = sh.Remade(nil)
}

// Force puts devices into the shard, whatever they drew.
func (sh *Shard) Force(c *Coordinator, identities []ed25519.PrivateKey) error {
	if err := sh.people(sh.job, sh.plan, identities); err != nil {
		return err
	}
	sh.seat(c)
	return nil
}

// Group is the group of a dealt round that the victim drew.
func (sh *Shard) Group() int {
	g, err := sh.Peers[0].Group(Frame{Body: sh.entry}.Bytes(5), Frame{Body: sh.entry}.Bytes(7))
	if err != nil {
		return -1
	}
	return g
}

// LotOf is what a key draws in the round.
func (sh *Shard) LotOf(key ed25519.PrivateKey) []byte { return drawLot(key, sh.Peers[0].deals()) }

// Mine is the victim's verify key, Me its place in the roster.
func (sh *Shard) Mine() []byte { return sh.entry[0].([]byte) }
func (sh *Shard) Me() int      { return sh.me }

// Roster is turn 1's answer.
func (sh *Shard) Roster() []byte { return sh.roster }

// Remade is a roster with other lines; nil: as they are.
func (sh *Shard) Remade(change func(entries []Array) []Array) []byte {
	entries := make([]Array, len(sh.entries))
	for i, e := range sh.entries {
		entries[i] = slices.Clone(e)
	}
	if change != nil {
		entries = change(entries)
	}
	list := Array{}
	for _, e := range entries {
		list = append(list, e)
	}
	roster := Array{2, sh.Peers[0].plan[:], 0, list}
	if sh.log != nil {
		roster = append(roster, sh.Proof(entries))
	}
	return Encode(roster)
}

// Proof proves that the roster's devices are in the log.
func (sh *Shard) Proof(entries []Array) []byte {
	who := 0
	if !sh.Peers[0].identified {
		who = 5
	}
	var keys [][]byte
	for _, e := range entries {
		if who < len(e) {
			key, _ := e[who].([]byte)
			keys = append(keys, key)
		}
	}
	return sh.log.Members(len(sh.log.Leaves), keys)
}

// Keyed sends the roster and hears the victim's shares.
func (sh *Shard) Keyed(ctx context.Context) error {
	if err := sh.Victim.Say(ctx, sh.Round, Advertise, sh.roster); err != nil {
		return err
	}
	b, err := sh.Victim.Receive(ctx, Shares)
	if err != nil {
		return err
	}
	a, err := DecodeArray(b, 4)
	if err != nil {
		return err
	}
	sh.boxes, sh.shares = map[int][]byte{}, map[int]Array{}
	sealed, box := Frame{Body: a}.Bytes(3), sh.Peers[0].box()
	if len(sealed) != box*(len(sh.entries)-1) {
		return fmt.Errorf("attack: sealed shares of %d bytes", len(sealed))
	}
	for j := range sh.entries {
		if j != sh.me {
			sh.boxes[j], sealed = sealed[:box], sealed[box:]
		}
	}
	for _, m := range sh.Peers {
		if sh.shares[m.me], err = m.Shares(nil); err != nil {
			return err
		}
	}
	return nil
}

// Delivery is turn 2's answer over a set, each member's pair for the victim.
func (sh *Shard) Delivery(u2 []byte) []byte {
	var boxes []byte
	box := sh.Peers[0].box()
	for i := range sh.entries {
		if i == sh.me || !in(u2, i) {
			continue
		}
		at := sh.me
		if at > i {
			at-- // a dealer's list leaves the dealer out
		}
		boxes = append(boxes, Frame{Body: sh.shares[i]}.Bytes(3)[at*box:][:box]...)
	}
	r := sh.Peers[0].R
	return Encode(Array{4, r[:], u2, boxes})
}

// Masked delivers over a set and hears the victim's vector.
func (sh *Shard) Masked(ctx context.Context, u2 []byte) error {
	return sh.Delivered(ctx, u2, sh.Delivery(u2))
}

// Delivered is Masked with another delivery.
func (sh *Shard) Delivered(ctx context.Context, u2, delivery []byte) error {
	if err := sh.Victim.Say(ctx, sh.Round, Shares, delivery); err != nil {
		return err
	}
	b, err := sh.Victim.HearUpdate(ctx)
	if err != nil {
		return err
	}
	a, err := DecodeArray(b, 3)
	if err != nil {
		return err
	}
	m := sh.Peers[0]
	sh.update = unpack(Frame{Body: a}.Bytes(2), m.dim, m.width)
	for _, m := range sh.Peers {
		m.U2, m.sealed = u2, map[int][]byte{sh.me: sh.boxes[m.me]}
	}
	return nil
}

// Survivors is turn 3's answer.
func (sh *Shard) Survivors(u2, u3 []byte) []byte {
	r := sh.Peers[0].R
	return Encode(Array{6, r[:], u2, u3})
}

// Confirmations is turn 4's answer: the victim's signature, and the peers' over any
// sets, of a number of members.
func (sh *Shard) Confirmations(victim, u2, u3 []byte, members int) []byte {
	var u4, signs []byte
	u4 = make([]byte, len(u2))
	for i := range sh.entries {
		if members == 0 {
			break
		}
		members--
		u4[i/8] |= 1 << (i % 8)
		if i == sh.me {
			signs = append(signs, victim...)
			continue
		}
		for _, m := range sh.Peers {
			if m.me == i {
				signs = append(signs, ed25519.Sign(m.verify, m.story(u2, u3))...)
			}
		}
	}
	r := sh.Peers[0].R
	return Encode(Array{8, r[:], u4, signs})
}

// Unmask reads the victim's vector once its self-mask's shares are known: one from
// itself, the others from the peers. This is what a coordinator that makes up all
// peers learns, whatever the protocol (section 10, "Invented peers").
func (sh *Shard) Unmask(reveal []byte) ([]int32, error) {
	a, err := DecodeArray(reveal, 4)
	if err != nil {
		return nil, err
	}
	at := Frame{Body: a}
	held, scalars := at.Bytes(2), at.Bytes(3)
	points := pointsOf(held, scalars, sh.me, sh.me)
	for _, m := range sh.Peers {
		pair, err := m.openPair(sh.me, m.sealed[sh.me])
		if err != nil {
			return nil, err
		}
		points[m.me+1] = fromLittleEndian(pair[32:])
	}
	m := sh.Peers[0]
	for x := range points { // t of them are enough, more must agree
		if len(points) > m.T {
			delete(points, x)
		}
	}
	v := slices.Clone(sh.update)
	addMask(v, kdf(littleEndian(interpolate(points)), append([]byte("self mask"), m.R[:]...), 16), m.width, true)
	for _, p := range sh.Peers {
		key, err := p.pairMask(sh.me)
		if err != nil {
			return nil, err
		}
		addMask(v, key, m.width, p.me > sh.me)
	}
	out := make([]int32, len(v))
	for i, x := range v {
		out[i] = int32(x<<(32-m.width)) >> (32 - m.width)
	}
	return out, nil
}
