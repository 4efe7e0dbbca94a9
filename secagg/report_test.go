package secagg

import (
	"errors"
	"slices"
	"testing"
)

// TestDeliverTwice: a delivery is taken once, before and after masking.
func TestDeliverTwice(t *testing.T) {
	r := newRound(t, "deliver twice", testConfig(5, 11, 12, 3), 3)
	r.key()
	s := r.shards[0]
	r.must(r.share(s))
	d := r.byID[s.Members()[1]]
	m := s.Delivery(d.id)
	other := over(t, m)
	other.Sealed[0] ^= 1
	if err := unchanged(t, "early", func() error { _, err := d.c.Confirm(&Survivors{}); return err }, d.c); !errors.Is(err, ErrOutOfTurn) {
		t.Error(err)
	}
	r.must(d.c.Deliver(m))
	for range 2 {
		for want, m := range map[error]*Delivery{ErrRepeated: m, ErrConflict: other} {
			var st *StateError
			err := unchanged(t, "second delivery", func() error { return d.c.Deliver(m) }, d.c)
			if !errors.As(err, &st) || !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
		if d.c.next == TurnMask {
			_, err := d.c.Mask(d.symbols)
			r.must(err)
		}
	}
}

// TestSealedNonsense: a dealer seals, properly, strings that are no scalars. The
// holder keeps the dealer and reveals nothing of it.
func TestSealedNonsense(t *testing.T) {
	r := newRound(t, "nonsense", testConfig(5, 11, 12, 5), 5)
	r.key()
	s := r.shards[0]
	ids := s.Members()
	liar, holders := r.byID[ids[0]], []int{1, 2}
	sealing, agreed := *liar.c.sealing, map[int]shared{}
	for _, h := range holders {
		ss, err := sealing.agree(s.Roster().Entries[h].Keys.Seal)
		r.must(err)
		agreed[h] = ss
	}
	for _, id := range ids {
		m, err := r.byID[id].c.Share(s.Roster())
		r.must(err)
		if id == liar.id {
			for _, h := range holders {
				var plain [plainSize]byte
				plain[31+32*(h-1)] = 0xff // the first, the second share is above the group's order
				ss := agreed[h]
				box, err := sealing.seal(nil, &ss, s.Roster().Entries[h].Keys.Seal, &plain, &s.roster, 0, h)
				r.must(err)
				copy(m.Sealed[(h-1)*boxSize:], box)
			}
		}
		r.must(s.Add(id, m))
	}
	r.must(s.CloseSharing())
	sv, err := r.mask(s)
	r.must(err)
	for _, h := range holders {
		if c := r.byID[ids[h]].c; c.held.Has(0) || c.shares[0] != [plainSize]byte{} {
			t.Errorf("device %d holds nonsense", h)
		}
	}
	cs, err := r.confirm(s, sv)
	r.must(err)
	r.reveal(s, cs)
	sum, err := s.Unmask() // three of five hold right shares: enough
	r.must(err)
	if !slices.Equal(sum, r.plain(s)) {
		t.Error("wrong sum")
	}
}

// TestReports: errors say whom and what they concern; accessors agree with the sets.
func TestReports(t *testing.T) {
	id := ID{0xab, 0xcd, 0xef, 0x01}
	for want, err := range map[string]error{
		"device abcdef01, turn 3 (mask): secagg: wrong length":                         &DeviceError{id, TurnMask, ErrLength},
		"shard 7, turn 5 (reveal): secagg: below the threshold":                        &ShardError{Shard: 7, Turn: TurnReveal, Err: ErrBelowThreshold},
		"refused in turn 4 (confirm): secagg: bad device set":                          &RefusalError{TurnConfirm, ErrSet},
		"Mask while turn 2 (share) is next: secagg: out of turn":                       &StateError{"Mask", TurnShare, ErrOutOfTurn},
		"Share while turn 6 (done) is next: secagg: round left, secrets erased":        &StateError{"Share", TurnDone, ErrErased},
		"device abcdef01, turn 1 (advertise): secagg: bound to another plan or roster": &DeviceError{id, TurnAdvertise, ErrBinding},
		"refused in turn 9 (none): secagg: shard below its floor":                      &RefusalError{9, ErrBelowFloor},
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}

	r := newRound(t, "reports", testConfig(5, 11, 12, 5), 5)
	if r.keying.Len() != 0 {
		t.Error("devices before any came")
	}
	r.key()
	if r.keying.Len() != 5 || r.devices[0].c.Delivered() || r.devices[0].c.Resend(TurnShare) != nil || r.devices[0].c.Resend(0) != nil || r.devices[0].c.Resend(TurnDone) != nil {
		t.Error("a client knows more than it can")
	}
	s := r.shards[0]
	ids := s.Members()
	r.byID[ids[0]].lastTurn = TurnAdvertise
	r.byID[ids[1]].lastTurn = TurnConfirm
	if s.Delivery(ids[0]) != nil || s.InU3(id) {
		t.Error("a server answers too early, or a stranger")
	}
	r.must(r.share(s))
	sv, err := r.mask(s)
	r.must(err)
	cs, err := r.confirm(s, sv)
	r.must(err)
	r.reveal(s, cs)
	if s.Survivors() != 4 || s.InU3(ids[0]) || !s.InU3(ids[1]) || s.Threshold() != 3 {
		t.Error("sets do not agree with what happened")
	}
	m := parse(t, new(Masked), r.byID[ids[2]].masked)
	if m.Roster() != s.Roster().Hash() || m.Size() != 7 {
		t.Errorf("a vector of %d bytes", m.Size())
	}
	if _, err := s.Unmask(); err != nil {
		t.Error(err)
	}
}
