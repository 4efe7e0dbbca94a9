package secagg

import (
	"crypto/ed25519"
	"errors"
	"slices"
	"testing"
)

// What a lying server can try on a client. Each case refuses a server message,
// shows that the client is as it was, and the round then ends with the right sum.

// sign is a roster entry for keys of the test's choosing, certified by auth.
func signEntry(plan Hash, auth, signer ed25519.PrivateKey, k Keys) Entry {
	copy(k.Verify[:], signer.Public().(ed25519.PublicKey))
	e := Entry{Keys: k}
	copy(e.Sign[:], ed25519.Sign(signer, keyStatement(labelKeys, &plan, &e.Keys)))
	copy(e.Certificate[:], ed25519.Sign(auth, keyStatement(labelCert, &plan, &e.Keys)))
	return e
}

func copyRoster(m *Roster) *Roster {
	c := *m
	c.Entries = slices.Clone(m.Entries)
	for i := range c.Entries {
		c.Entries[i].Keys.Seal = slices.Clone(c.Entries[i].Keys.Seal)
	}
	return &c
}

func sortRoster(m *Roster) {
	slices.SortFunc(m.Entries, func(a, b Entry) int { return slices.Compare(a.Keys.Verify[:], b.Keys.Verify[:]) })
}

func refused(t *testing.T, what string, err, cause error, turn Turn) {
	t.Helper()
	var r *RefusalError
	if !errors.As(err, &r) || r.Turn != turn || !errors.Is(err, cause) {
		t.Errorf("%s: %v, want a refusal in turn %d for %v", what, err, turn, cause)
	}
}

func TestLyingRoster(t *testing.T) {
	cfg := testConfig(5, 11, 12, 5)
	cfg.ShardMin = 4
	r := newRound(t, "lying roster", cfg, 5)
	r.key()
	s := r.shards[0]
	d := r.byID[s.Members()[2]]
	outsider := ed25519.NewKeyFromSeed(make([]byte, 32))
	k := [32]byte{1}
	fresh := x25519Private(&k).PublicKey().Bytes()
	other := PlanHash("test task", 7, r.cfg, []byte("another model"))

	for _, c := range []struct {
		what  string
		lie   func(m *Roster)
		cause error
	}{
		{"another plan", func(m *Roster) { m.Plan = other }, ErrBinding},
		{"an entry signed under another plan", func(m *Roster) {
			e := signEntry(other, r.auth, outsider, m.Entries[0].Keys)
			m.Entries[0] = e
			sortRoster(m)
		}, ErrSignature},
		{"a peer's mask key swapped", func(m *Roster) { copy(m.Entries[0].Keys.Mask[:], fresh) }, ErrSignature},
		{"a peer's sealing key swapped", func(m *Roster) { copy(m.Entries[0].Keys.Seal, fresh) }, ErrSignature},
		{"a peer without certificate", func(m *Roster) { m.Entries[0].Certificate[3] ^= 1 }, ErrSignature},
		{"a peer certified by someone else", func(m *Roster) {
			m.Entries[0] = signEntry(r.plan, outsider, outsider, Keys{Mask: [32]byte(fresh), Seal: fresh})
			sortRoster(m)
		}, ErrSignature},
		{"a peer certified, but by its own key not signed", func(m *Roster) {
			m.Entries[0] = signEntry(r.plan, r.auth, outsider, Keys{Mask: [32]byte(fresh), Seal: fresh})
			m.Entries[0].Sign[5] ^= 1
			sortRoster(m)
		}, ErrSignature},
		{"one verify key for two sets of keys", func(m *Roster) {
			m.Entries[0] = signEntry(r.plan, r.auth, outsider, Keys{Mask: [32]byte(fresh), Seal: fresh})
			m.Entries[1] = signEntry(r.plan, r.auth, outsider, Keys{Mask: [32]byte{9}, Seal: fresh})
			sortRoster(m)
		}, ErrRoster},
		{"this device's own keys swapped", func(m *Roster) { copy(m.Entries[2].Keys.Mask[:], fresh) }, ErrRoster},
		{"this device left out", func(m *Roster) { m.Entries = slices.Delete(m.Entries, 2, 3) }, ErrRoster},
		{"a peer twice", func(m *Roster) { m.Entries[1] = m.Entries[0] }, ErrRoster},
		{"out of order", func(m *Roster) { m.Entries[0], m.Entries[1] = m.Entries[1], m.Entries[0] }, ErrRoster},
		{"one mask key twice", func(m *Roster) { m.Entries[1].Keys.Mask = m.Entries[0].Keys.Mask }, ErrRoster},
		{"a shard below the floor", func(m *Roster) { m.Entries = m.Entries[1:4] }, ErrBelowFloor},
		{"a shard above the limit", func(m *Roster) {
			m.Entries = append(m.Entries, signEntry(r.plan, r.auth, outsider, Keys{Mask: [32]byte(fresh), Seal: fresh}))
			sortRoster(m)
		}, ErrLength},
		{"a mask key of low order", func(m *Roster) {
			m.Entries[0] = signEntry(r.plan, r.auth, outsider, Keys{Mask: [32]byte{0: 1}, Seal: fresh})
			sortRoster(m)
		}, ErrKey},
		{"a sealing key of low order", func(m *Roster) {
			m.Entries[0] = signEntry(r.plan, r.auth, outsider, Keys{Mask: [32]byte(fresh), Seal: make([]byte, 32)})
			sortRoster(m)
		}, ErrKey},
		{"a sealing key of another suite", func(m *Roster) {
			m.Entries[0] = signEntry(r.plan, r.auth, outsider, Keys{Mask: [32]byte(fresh), Seal: make([]byte, 1248)})
			sortRoster(m)
		}, ErrKey},
		{"an empty roster", func(m *Roster) { m.Entries = nil }, ErrBelowFloor},
	} {
		m := copyRoster(s.Roster())
		c.lie(m)
		err := unchanged(t, c.what, func() error { _, err := d.c.Share(m); return err }, d.c)
		refused(t, c.what, err, c.cause, TurnShare)
	}
	r.check(s)
}

// TestSplitRosters: two halves of a shard are shown different rosters. What the
// one half seals the other cannot open, and neither confirms the other's sets.
func TestSplitRosters(t *testing.T) {
	cfg := testConfig(5, 11, 12, 6)
	r := newRound(t, "split", cfg, 6)
	r.key()
	s := r.shards[0]
	a := s.Roster()
	b := copyRoster(a)
	b.Shard = 1
	ids := s.Members()
	sealed := map[int]*Shares{}
	for i, id := range ids {
		m := a
		if i >= 3 {
			m = b
		}
		sh, err := r.byID[id].c.Share(m)
		r.must(err)
		sealed[i] = sh
	}
	if sealed[0].Roster == sealed[3].Roster {
		t.Fatal("two rosters, one hash")
	}
	// The server pretends they are one shard: device 0 gets 3's shares.
	all := newSet(6)
	for i := range 6 {
		all.add(i)
	}
	m := &Delivery{Roster: sealed[0].Roster, U2: all}
	for i := 1; i < 6; i++ {
		m.Sealed = append(m.Sealed, sealed[i].Sealed[:boxSize]...)
	}
	d := r.byID[ids[0]]
	r.must(d.c.Deliver(m))
	for i := range 6 {
		if d.c.held.Has(i) != (i < 3) {
			t.Errorf("device %d's shares held: %v", i, d.c.held.Has(i))
		}
	}
	// A delivery under the other roster is refused outright.
	e := r.byID[ids[4]]
	refused(t, "delivery of the other roster", unchanged(t, "delivery", func() error { return e.c.Deliver(m) }, e.c), ErrBinding, TurnMask)
	// Device 0 masks and signs; the other half's signatures do not count for it.
	_, err := d.c.Mask(d.symbols)
	r.must(err)
	_, err = d.c.Confirm(&Survivors{Roster: d.c.roster, U2: all, U3: all})
	r.must(err)
	cs := &Confirmations{Roster: d.c.roster, U4: newSet(6)}
	for i := range 6 {
		c := r.byID[ids[i]].c
		sign := ed25519.Sign(r.roundSigner("split", ids[i]), setStatement(&c.roster, all, all))
		cs.U4.add(i)
		cs.Signs = append(cs.Signs, sign...)
	}
	refused(t, "signatures of the other roster", unchanged(t, "reveal", func() error { _, err := d.c.Reveal(cs); return err }, d.c), ErrSignature, TurnReveal)
}

// roundSigner draws a device's round key again, as the client drew it first.
func (r *round) roundSigner(seed string, id ID) ed25519.PrivateKey {
	for i, d := range r.devices {
		if d.id == id {
			k, err := random32(newDRBG("device %s %d", seed, i))
			r.must(err)
			return ed25519.NewKeyFromSeed(k[:])
		}
	}
	r.t.Fatal("no such device")
	return nil
}

func TestLyingDelivery(t *testing.T) {
	r := newRound(t, "lying delivery", testConfig(5, 11, 12, 5), 5)
	r.key()
	s := r.shards[0]
	r.must(r.share(s))
	ids := s.Members()
	d := r.byID[ids[2]]
	honest := func() *Delivery { return over(t, s.Delivery(d.id)) }
	for _, c := range []struct {
		what  string
		lie   func(m *Delivery)
		cause error
	}{
		{"another roster", func(m *Delivery) { m.Roster[0] ^= 1 }, ErrBinding},
		{"U2 without this device", func(m *Delivery) { m.U2[0] = 0b11011; m.Sealed = m.Sealed[:3*boxSize] }, ErrSet},
		{"U2 with a device that is not there", func(m *Delivery) { m.U2[0] |= 1 << 5 }, ErrSet},
		{"U2 of another length", func(m *Delivery) { m.U2 = append(m.U2, 0) }, ErrSet},
		{"U2 below the threshold", func(m *Delivery) { m.U2[0] = 0b00110; m.Sealed = m.Sealed[:boxSize] }, ErrBelowThreshold},
		{"a sealed share missing", func(m *Delivery) { m.Sealed = m.Sealed[boxSize:] }, ErrLength},
		{"a sealed share too many", func(m *Delivery) { m.Sealed = append(m.Sealed, m.Sealed[:boxSize]...) }, ErrLength},
	} {
		m := honest()
		c.lie(m)
		refused(t, c.what, unchanged(t, c.what, func() error { return d.c.Deliver(m) }, d.c), c.cause, TurnMask)
	}
	// Masking before the delivery is out of turn.
	err := unchanged(t, "mask before delivery", func() error { _, err := d.c.Mask(d.symbols); return err }, d.c)
	if !errors.Is(err, ErrOutOfTurn) {
		t.Error(err)
	}
	// Two dealers' ciphertexts exchanged, one changed, one meant for another holder:
	// none opens, none is counted, and the round still ends.
	m := honest()
	a, b := slices.Clone(m.Sealed[:boxSize]), slices.Clone(m.Sealed[boxSize:2*boxSize])
	copy(m.Sealed, b)
	copy(m.Sealed[boxSize:], a)
	m.Sealed[2*boxSize] ^= 1
	copy(m.Sealed[3*boxSize:], s.sealed[4][:boxSize])
	r.must(d.c.Deliver(m))
	if got := d.c.held.Len(); got != 1 {
		t.Errorf("%d dealers' shares held, want its own only", got)
	}
	for _, id := range ids {
		x := r.byID[id]
		if x != d {
			r.must(x.c.Deliver(s.Delivery(id)))
		}
		masked, err := x.c.Mask(x.symbols)
		r.must(err)
		r.must(s.Add(id, masked))
	}
	sv, err := s.CloseCollecting()
	r.must(err)
	cs, err := r.confirm(s, sv)
	r.must(err)
	r.reveal(s, cs)
	sum, err := s.Unmask()
	r.must(err)
	if !slices.Equal(sum, r.plain(s)) {
		t.Error("wrong sum")
	}
}

func TestLyingSurvivors(t *testing.T) {
	r := newRound(t, "lying survivors", testConfig(5, 11, 12, 6), 6)
	r.key()
	s := r.shards[0]
	ids := s.Members()
	r.byID[ids[4]].lastTurn = TurnShare     // drops after sharing
	r.byID[ids[5]].lastTurn = TurnAdvertise // never shares: t = 4 of 6 are left
	r.must(r.share(s))
	sv, err := r.mask(s)
	r.must(err)
	d := r.byID[ids[2]]
	for _, c := range []struct {
		what  string
		lie   func(m *Survivors)
		cause error
	}{
		{"another roster", func(m *Survivors) { m.Roster[0] ^= 1 }, ErrBinding},
		{"another U2 than masked over", func(m *Survivors) { m.U2[0] = 0b01111 }, ErrSet},
		{"U3 outside U2", func(m *Survivors) { m.U3[0] |= 1 << 5 }, ErrSet},
		{"U3 outside the roster", func(m *Survivors) { m.U3[0] |= 1 << 6 }, ErrSet},
		{"U3 of another length", func(m *Survivors) { m.U3 = append(m.U3, 0) }, ErrSet},
		{"U3 without this device", func(m *Survivors) { m.U3[0] = 0b01011 }, ErrSet},
		{"U3 below the threshold", func(m *Survivors) { m.U3[0] = 0b00111 }, ErrBelowThreshold},
	} {
		m := over(t, sv)
		c.lie(m)
		refused(t, c.what, unchanged(t, c.what, func() error { _, err := d.c.Confirm(m); return err }, d.c), c.cause, TurnConfirm)
	}
	_, err = d.c.Confirm(sv)
	r.must(err)
	// Another story about who dropped, after the first was signed.
	lie := over(t, sv)
	lie.U3[0] = 0b10111
	err = unchanged(t, "a second survivor set", func() error { _, err := d.c.Confirm(lie); return err }, d.c)
	if !errors.Is(err, ErrConflict) {
		t.Error(err)
	}
	err = unchanged(t, "the same survivor set again", func() error { _, err := d.c.Confirm(sv); return err }, d.c)
	if !errors.Is(err, ErrRepeated) {
		t.Error(err)
	}
}

func TestLyingConfirmations(t *testing.T) {
	r := newRound(t, "lying confirmations", testConfig(5, 11, 12, 5), 5)
	r.key()
	s := r.shards[0]
	ids := s.Members()
	r.byID[ids[4]].lastTurn = TurnShare
	r.must(r.share(s))
	sv, err := r.mask(s)
	r.must(err)
	cs, err := r.confirm(s, sv)
	r.must(err)
	d := r.byID[ids[2]]
	for _, c := range []struct {
		what  string
		lie   func(m *Confirmations)
		cause error
	}{
		{"another roster", func(m *Confirmations) { m.Roster[0] ^= 1 }, ErrBinding},
		{"a signer outside U3", func(m *Confirmations) { m.U4[0] = 0b11101 }, ErrSet},
		{"fewer than t signatures", func(m *Confirmations) { m.U4[0] = 0b00011; m.Signs = m.Signs[:2*sigSize] }, ErrBelowThreshold},
		{"a signature missing", func(m *Confirmations) { m.Signs = m.Signs[sigSize:] }, ErrLength},
		{"a signature changed", func(m *Confirmations) { m.Signs[7] ^= 1 }, ErrSignature},
		{"one signature for all", func(m *Confirmations) {
			for i := range 4 {
				copy(m.Signs[i*sigSize:], m.Signs[:sigSize])
			}
		}, ErrSignature},
		{"U4 of another length", func(m *Confirmations) { m.U4 = append(m.U4, 0) }, ErrSet},
	} {
		m := over(t, cs)
		c.lie(m)
		refused(t, c.what, unchanged(t, c.what, func() error { _, err := d.c.Reveal(m); return err }, d.c), c.cause, TurnReveal)
	}
	kept := slices.Clone(d.c.shares)
	rv, err := d.c.Reveal(cs)
	r.must(err)
	// One share of each device of U2: the self-mask's of survivors, the key's of the
	// dropped, and the other kind nowhere in all it ever sent.
	sent := map[string]bool{}
	for turn := TurnAdvertise; turn < TurnDone; turn++ {
		b := d.sent(turn)
		for i := 0; i+scalarSize <= len(b); i++ {
			sent[string(b[i:i+scalarSize])] = true
		}
	}
	for i := range ids {
		key, self := sent[string(kept[i][:scalarSize])], sent[string(kept[i][scalarSize:])]
		if key != (i == 4) || self != (i != 4) {
			t.Errorf("device %d: key share sent %v, self-mask share sent %v", i, key, self)
		}
	}
	if rv.Held.Len() != 5 {
		t.Errorf("%d shares revealed", rv.Held.Len())
	}
	// Another request afterwards: nothing is left to reveal.
	lie := over(t, cs)
	lie.Signs[0] ^= 1
	for want, m := range map[error]*Confirmations{ErrConflict: lie, ErrRepeated: cs} {
		err := unchanged(t, "a second request", func() error { _, err := d.c.Reveal(m); return err }, d.c)
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}
