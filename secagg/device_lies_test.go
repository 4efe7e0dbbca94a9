package secagg

import (
	"crypto/ed25519"
	"errors"
	"slices"
	"testing"
)

// What lying devices can try on the server. Each refused message is blamed on its
// device and leaves the server as it was.

func blamed(t *testing.T, what string, err, cause error, id ID, turn Turn) {
	t.Helper()
	var d *DeviceError
	if !errors.As(err, &d) || d.Device != id || d.Turn != turn || !errors.Is(err, cause) {
		t.Errorf("%s: %v, want a fault of %x in turn %d for %v", what, err, id[:4], turn, cause)
	}
}

func TestLyingAdvertise(t *testing.T) {
	r := newRound(t, "lying advertise", testConfig(5, 11, 12, 5), 5)
	var msgs []*Advertise
	for _, d := range r.devices {
		m, err := d.c.Advertise()
		r.must(err)
		msgs = append(msgs, m)
	}
	r.must(r.keying.Add(r.devices[0].id, msgs[0]))
	d := r.devices[1]
	outsider := ed25519.NewKeyFromSeed(make([]byte, 32))
	// resign signs changed keys properly: with the device's own keys.
	resign := func(m *Advertise) {
		signer := r.roundSigner("lying advertise", d.id)
		copy(m.Keys.Verify[:], signer.Public().(ed25519.PublicKey))
		copy(m.Sign[:], ed25519.Sign(signer, keyStatement(labelKeys, &r.plan, &m.Keys)))
		copy(m.Vouch[:], ed25519.Sign(d.key, keyStatement(labelVouch, &r.plan, &m.Keys)))
	}
	for _, c := range []struct {
		what  string
		lie   func(m *Advertise)
		cause error
	}{
		{"another plan", func(m *Advertise) { m.Plan[0] ^= 1 }, ErrBinding},
		{"another identity than the session's", func(m *Advertise) { m.Identity = r.devices[2].id }, ErrStranger},
		{"keys not signed", func(m *Advertise) { m.Sign[0] ^= 1 }, ErrSignature},
		{"keys the identity did not sign", func(m *Advertise) { m.Vouch[0] ^= 1 }, ErrSignature},
		{"keys an outsider signed", func(m *Advertise) {
			copy(m.Vouch[:], ed25519.Sign(outsider, keyStatement(labelVouch, &r.plan, &m.Keys)))
		}, ErrSignature},
		{"a signature moved from one label to the other", func(m *Advertise) {
			copy(m.Vouch[:], ed25519.Sign(d.key, keyStatement(labelKeys, &r.plan, &m.Keys)))
		}, ErrSignature},
		{"another device's mask key", func(m *Advertise) { m.Keys.Mask = msgs[0].Keys.Mask; resign(m) }, ErrKey},
		{"another device's verify key", func(m *Advertise) { m.Keys.Verify = msgs[0].Keys.Verify }, ErrKey},
		{"the identity as verify key", func(m *Advertise) { m.Keys.Verify = [32]byte(d.id) }, ErrKey},
		{"a mask key of low order", func(m *Advertise) { m.Keys.Mask = lowOrder[3]; resign(m) }, ErrKey},
		{"a sealing key of low order", func(m *Advertise) { copy(m.Keys.Seal, lowOrder[2][:]); resign(m) }, ErrKey},
		{"a sealing key of another suite", func(m *Advertise) { m.Keys.Seal = make([]byte, 1248); resign(m) }, ErrKey},
	} {
		m := over(t, msgs[1])
		c.lie(m)
		err := unchanged(t, c.what, func() error { return r.keying.Add(d.id, m) }, r.keying)
		blamed(t, c.what, err, c.cause, d.id, TurnAdvertise)
	}
	// Duplicate identity: the same bytes are harmless, other keys are not.
	again := func(m *Advertise) error {
		return unchanged(t, "second advertisement", func() error { return r.keying.Add(r.devices[0].id, m) }, r.keying)
	}
	blamed(t, "same bytes", again(msgs[0]), ErrRepeated, r.devices[0].id, TurnAdvertise)
	c, err := NewClient(r.cfg, r.plan, r.devices[0].key, newDRBG("second set of keys"))
	r.must(err)
	other, err := c.Advertise()
	r.must(err)
	blamed(t, "second keys", again(other), ErrConflict, r.devices[0].id, TurnAdvertise)
	// Below the floor nothing is cut, and turn 1 stays open.
	if err := unchanged(t, "one device", func() error { _, err := r.keying.Cut(r.rand); return err }, r.keying); !errors.Is(err, ErrBelowFloor) {
		t.Error(err)
	}
	for i := 1; i < 4; i++ {
		r.must(r.keying.Add(r.devices[i].id, msgs[i]))
	}
	r.shards, err = r.keying.Cut(r.rand)
	r.must(err)
	blamed(t, "late", unchanged(t, "late", func() error { return r.keying.Add(r.devices[4].id, msgs[4]) }, r.keying), ErrLate, r.devices[4].id, TurnAdvertise)
	if _, err := r.keying.Cut(r.rand); !errors.Is(err, ErrLate) {
		t.Error(err)
	}
	r.devices = r.devices[:4]
	r.check(r.shards[0])
}

func TestIdentified(t *testing.T) {
	cfg := testConfig(5, 11, 12, 5)
	cfg.Identified = true
	r := newRound(t, "identified", cfg, 5)
	m, err := r.devices[0].c.Advertise()
	r.must(err)
	for _, lie := range []func(m *Advertise){
		func(m *Advertise) { m.Vouch[0] = 1 },
		func(m *Advertise) { m.Keys.Verify[0] ^= 1 },
	} {
		m := over(t, m)
		lie(m)
		unchanged(t, "identified", func() error { return r.keying.Add(r.devices[0].id, m) }, r.keying)
	}
	r.must(r.keying.Add(r.devices[0].id, m))
	for _, d := range r.devices[1:] {
		m, err := d.c.Advertise()
		r.must(err)
		r.must(r.keying.Add(d.id, m))
	}
	r.shards, err = r.keying.Cut(r.rand)
	r.must(err)
	c := r.devices[0].c
	lie := copyRoster(r.shards[0].Roster())
	lie.Entries[1].Certificate[0] = 1
	refused(t, "a certificate in an identified roster", unchanged(t, "share", func() error { _, err := c.Share(lie); return err }, c), ErrRoster, TurnShare)
	r.check(r.shards[0])
	// Devices see their peers' identities, and their keys outlive the round.
	for _, d := range r.devices {
		for i, id := range r.shards[0].Members() {
			if d.c.entries[i].Keys.Verify != id {
				t.Error("peers are not the members")
			}
		}
		if d.key[0] == 0 && d.key[1] == 0 && d.key[2] == 0 {
			t.Error("the identity key was cleared")
		}
	}
}

// TestCertifiedHidesIdentity: nothing that peers see names a device.
func TestCertifiedHidesIdentity(t *testing.T) {
	r := newRound(t, "hidden", testConfig(5, 11, 12, 5), 5)
	r.key()
	b, _ := r.shards[0].Roster().AppendBinary(nil)
	for i := 0; i+32 <= len(b); i++ {
		if _, ok := r.byID[ID(b[i:i+32])]; ok {
			t.Fatal("an identity stands in the roster")
		}
	}
}

func TestLyingDevices(t *testing.T) {
	const n = 5
	r := newRound(t, "lying devices", testConfig(5, 11, 12, n), 2*n)
	r.key()
	s, foreign := r.shards[0], r.shards[1]
	ids := s.Members()
	id := ids[1]
	d := r.byID[id]
	try := func(what string, cause error, from ID, turn Turn, call func() error) {
		t.Helper()
		blamed(t, what, unchanged(t, what, call, s), cause, from, turn)
	}

	// Turn 2.
	shares := map[ID]*Shares{}
	for _, id := range ids {
		m, err := r.byID[id].c.Share(s.Roster())
		r.must(err)
		shares[id] = m
	}
	other, err := r.byID[foreign.Members()[0]].c.Share(foreign.Roster())
	r.must(err)
	for _, c := range []struct {
		what  string
		from  ID
		lie   func(m *Shares)
		cause error
	}{
		{"a stranger", foreign.Members()[0], func(m *Shares) { *m = *other }, ErrStranger},
		{"another shard's message", id, func(m *Shares) { *m = *other }, ErrBinding},
		{"commitments too short", id, func(m *Shares) { m.Commit = m.Commit[1:] }, ErrLength},
		{"commitments of another threshold", id, func(m *Shares) { m.Commit = append(m.Commit, make([]byte, 64)...) }, ErrLength},
		{"sealed shares too short", id, func(m *Shares) { m.Sealed = m.Sealed[boxSize:] }, ErrLength},
		{"sealed shares too long", id, func(m *Shares) { m.Sealed = append(m.Sealed, 0) }, ErrLength},
		{"no shares", id, func(m *Shares) { m.Sealed, m.Commit = nil, nil }, ErrLength},
	} {
		m := over(t, shares[id])
		c.lie(m)
		try(c.what, c.cause, c.from, TurnShare, func() error { return s.Add(c.from, m) })
	}
	try("turn 3 in turn 2", ErrOutOfTurn, id, TurnMask, func() error { return s.Add(id, &Masked{roster: s.roster}) })
	for _, id := range ids[:2] {
		r.must(s.Add(id, shares[id]))
	}
	var shardErr *ShardError
	err = unchanged(t, "closing below the threshold", s.CloseSharing, s)
	if !errors.As(err, &shardErr) || !errors.Is(err, ErrBelowThreshold) || shardErr.Turn != TurnShare {
		t.Error(err)
	}
	for _, id := range ids[2:4] {
		r.must(s.Add(id, shares[id]))
	}
	try("the same shares again", ErrRepeated, id, TurnShare, func() error { return s.Add(id, shares[id]) })
	changed := over(t, shares[id])
	changed.Sealed[0] ^= 1
	try("other shares", ErrConflict, id, TurnShare, func() error { return s.Add(id, changed) })
	r.must(s.CloseSharing())
	try("shares after closing", ErrLate, ids[4], TurnShare, func() error { return s.Add(ids[4], shares[ids[4]]) })
	if s.Delivery(ids[4]) != nil || s.Delivery(foreign.Members()[0]) != nil {
		t.Error("a delivery for a device outside U2")
	}
	for _, call := range []func() error{s.CloseSharing,
		func() error { _, err := s.CloseConfirming(); return err },
		func() error { _, err := s.Unmask(); return err }} {
		var st *StateError
		if err := unchanged(t, "closing out of turn", call, s); !errors.As(err, &st) {
			t.Error(err)
		}
	}

	// Turn 3.
	masked := map[ID]*Masked{}
	for _, id := range ids[:4] {
		r.must(r.byID[id].c.Deliver(s.Delivery(id)))
		m, err := r.byID[id].c.Mask(r.byID[id].symbols)
		r.must(err)
		masked[id] = m
	}
	for _, c := range []struct {
		what  string
		from  ID
		lie   func(m *Masked)
		cause error
	}{
		{"a stranger's vector", foreign.Members()[0], func(m *Masked) {}, ErrStranger},
		{"a vector from outside U2", ids[4], func(m *Masked) {}, ErrStranger},
		{"another roster", id, func(m *Masked) { m.roster[0] ^= 1 }, ErrBinding},
		{"a short vector", id, func(m *Masked) { m.packed = m.packed[1:] }, ErrLength},
		{"a long vector", id, func(m *Masked) { m.packed = append(m.packed, 0) }, ErrLength},
		{"no vector", id, func(m *Masked) { m.packed = nil }, ErrLength},
		{"bits past the end", id, func(m *Masked) { m.packed[len(m.packed)-1] |= 0x80 }, ErrRange},
	} {
		m := over(t, masked[id])
		m.packed = slices.Clone(m.packed)
		c.lie(m)
		try(c.what, c.cause, c.from, TurnMask, func() error { return s.Add(c.from, m) })
	}
	for _, id := range ids[:3] {
		r.must(s.Add(id, masked[id]))
	}
	try("the same vector again", ErrRepeated, id, TurnMask, func() error { return s.Add(id, masked[id]) })
	try("a second vector", ErrConflict, id, TurnMask, func() error { return s.Add(id, masked[ids[0]]) })
	sv, err := s.CloseCollecting()
	r.must(err)
	try("a vector after closing", ErrLate, ids[3], TurnMask, func() error { return s.Add(ids[3], masked[ids[3]]) })
	if s.Delivery(id) != nil {
		t.Error("shares are delivered after turn 3")
	}

	// Turn 4.
	confirm := map[ID]*Confirmation{}
	for _, id := range ids[:3] {
		m, err := r.byID[id].c.Confirm(sv)
		r.must(err)
		confirm[id] = m
	}
	try("confirmation of a dropped device", ErrStranger, ids[3], TurnConfirm, func() error { return s.Add(ids[3], confirm[id]) })
	try("another's signature", ErrSignature, id, TurnConfirm, func() error { return s.Add(id, confirm[ids[0]]) })
	bad := *confirm[id]
	bad.Roster[3] ^= 1
	try("confirmation of another roster", ErrBinding, id, TurnConfirm, func() error { return s.Add(id, &bad) })
	lie := &Confirmation{Roster: s.roster}
	u3 := sv.U3.clone()
	u3.add(3)
	copy(lie.Sign[:], ed25519.Sign(r.roundSigner("lying devices", id), setStatement(&s.roster, sv.U2, u3)))
	try("signature of another survivor set", ErrSignature, id, TurnConfirm, func() error { return s.Add(id, lie) })
	r.must(s.Add(id, confirm[id]))
	try("the same confirmation again", ErrRepeated, id, TurnConfirm, func() error { return s.Add(id, confirm[id]) })
	try("another confirmation", ErrConflict, id, TurnConfirm, func() error { return s.Add(id, lie) })
	r.must(s.Add(ids[0], confirm[ids[0]]))
	err = unchanged(t, "two confirmations", func() error { _, err := s.CloseConfirming(); return err }, s)
	if !isBelowThreshold(err) {
		t.Error(err)
	}
	r.must(s.Add(ids[2], confirm[ids[2]]))
	cs, err := s.CloseConfirming()
	r.must(err)

	// Turn 5.
	reveal := map[ID]*Reveal{}
	for _, id := range ids[:3] {
		m, err := r.byID[id].c.Reveal(cs)
		r.must(err)
		reveal[id] = m
	}
	for _, c := range []struct {
		what  string
		from  ID
		lie   func(m *Reveal)
		cause error
	}{
		{"a dropped device's reveal", ids[3], func(m *Reveal) {}, ErrStranger},
		{"another roster", id, func(m *Reveal) { m.Roster[0] ^= 1 }, ErrBinding},
		{"a share of a device outside U2", id, func(m *Reveal) { m.Held.add(4); m.Shares = append(m.Shares, make([]byte, 32)...) }, ErrSet},
		{"a share of no device", id, func(m *Reveal) { m.Held.add(7); m.Shares = append(m.Shares, make([]byte, 32)...) }, ErrSet},
		{"no share of itself", id, func(m *Reveal) { m.Held[0] &^= 2; m.Shares = m.Shares[32:] }, ErrSet},
		{"both kinds of share of a device", id, func(m *Reveal) { m.Shares = append(m.Shares, m.Shares[:32]...) }, ErrLength},
		{"shares too short", id, func(m *Reveal) { m.Shares = m.Shares[1:] }, ErrLength},
		{"a share that is not a scalar", id, func(m *Reveal) { m.Shares[31] = 0xff }, ErrRange},
	} {
		m := over(t, reveal[id])
		c.lie(m)
		try(c.what, c.cause, c.from, TurnReveal, func() error { return s.Add(c.from, m) })
	}
	r.must(s.Add(id, reveal[id]))
	try("the same reveal again", ErrRepeated, id, TurnReveal, func() error { return s.Add(id, reveal[id]) })
	try("another reveal", ErrConflict, id, TurnReveal, func() error { return s.Add(id, reveal[ids[0]]) })
	err = unchanged(t, "unmasking with one reveal", func() error { _, err := s.Unmask(); return err }, s)
	if !isBelowThreshold(err) {
		t.Error(err)
	}
	r.must(s.Add(ids[0], reveal[ids[0]]))
	r.must(s.Add(ids[2], reveal[ids[2]]))
	sum, err := s.Unmask()
	r.must(err)
	for _, id := range ids[3:] {
		r.byID[id].lastTurn = TurnShare
	}
	if !slices.Equal(sum, r.plain(s)) {
		t.Error("wrong sum")
	}
	if _, err := s.Unmask(); err == nil {
		t.Error("unmasked twice")
	}
	if d.c.next != TurnDone {
		t.Error("the device is not done")
	}
	// The other shard knows nothing of all this.
	for _, id := range foreign.Members()[1:] {
		m, err := r.byID[id].c.Share(foreign.Roster())
		r.must(err)
		r.must(foreign.Add(id, m))
	}
}
