package secagg

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// dealtRound is one whose devices are dealt by their lots.
func dealtRound(t testing.TB, seed string, identified bool, n int) *round {
	cfg := testConfig(5, 11, 12, n)
	cfg.ShardMin, cfg.Logged, cfg.Dealt, cfg.Identified = 3, true, true, identified
	return newRound(t, seed, cfg, n)
}

// TestDealtByLots: anyone who is in a shard drew its group, whatever the server's chance is, and
// a whole round of it ends in the sum.
func TestDealtByLots(t *testing.T) {
	for _, identified := range []bool{false, true} {
		seed := fmt.Sprintf("dealt %v", identified)
		r := dealtRound(t, seed, identified, 20)
		groups := map[ID]int{}
		for i, d := range r.devices {
			m, err := d.c.Advertise()
			r.must(err)
			r.must(r.keying.Add(d.id, over(t, m)))
			lot := lotOf(seed, i)
			if m.Lot != lot {
				t.Fatalf("device %d shows another lot than it drew", i)
			}
			groups[d.id] = int(lot[0]) % dealtGroups
		}
		shards, left, err := r.keying.Deal(r.rand, dealtGroups)
		r.must(err)
		r.shards = shards
		in := len(left)
		for _, s := range shards {
			members := s.Members()
			in += len(members)
			if slices.ContainsFunc(members, func(id ID) bool { return groups[id] != groups[members[0]] }) {
				t.Errorf("shard %d has devices of several groups", s.Shard())
			}
			for i, e := range s.Roster().Entries {
				if e.Lot == [LotSize]byte{} || int(e.Lot[0])%dealtGroups != groups[members[i]] {
					t.Errorf("shard %d, entry %d has another's lot", s.Shard(), i)
				}
			}
			r.must(s.SetEnrolments([]byte("proof")))
			r.check(s)
		}
		if in != len(r.devices) || len(shards) < 2 {
			t.Errorf("%d shards, %d of %d devices in them or left", len(shards), in, len(r.devices))
		}
	}
}

// TestLyingLots: what a device did not draw is refused by the server, and what a roster says
// of lots that is not so by the device.
func TestLyingLots(t *testing.T) {
	seed := "lying lots"
	r := dealtRound(t, seed, false, 5)
	m, err := r.devices[0].c.Advertise()
	r.must(err)
	blame := errors.New("not this key's")
	r.keying.SetGroups(func(from ID, lot *[LotSize]byte) (int, error) {
		if from == r.devices[0].id && *lot != lotOf(seed, 0) {
			return 0, blame
		}
		return 0, nil
	})
	for what, lot := range map[string][LotSize]byte{"none": {}, "another's": lotOf(seed, 1)} {
		lie := *m
		lie.Lot = lot
		if err := r.keying.Add(r.devices[0].id, &lie); !errors.Is(err, ErrLot) || lot != [LotSize]byte{} && !errors.Is(err, blame) {
			t.Errorf("a lot that is %s: %v", what, err)
		}
	}
	r.must(r.keying.Add(r.devices[0].id, m))
	for _, d := range r.devices[1:] {
		m, err := d.c.Advertise()
		r.must(err)
		r.must(r.keying.Add(d.id, m))
	}
	if _, _, err := r.keying.Deal(r.rand, 0); err == nil {
		t.Error("dealt into no groups")
	}
	shards, left, err := r.keying.Deal(r.rand, dealtGroups)
	r.must(err)
	if len(shards) != 1 || len(left) != 0 {
		t.Fatalf("%d shards, %d left", len(shards), len(left))
	}
	s := shards[0]
	r.must(s.SetEnrolments([]byte("proof")))
	d := r.byID[s.Members()[2]]
	for what, lie := range map[string]func(m *Roster){
		"a peer without a lot":      func(m *Roster) { m.Entries[0].Lot = [LotSize]byte{} },
		"this device's lot changed": func(m *Roster) { m.Entries[2].Lot[79] ^= 1 },
		"nobody has a lot": func(m *Roster) {
			for i := range m.Entries {
				m.Entries[i].Lot = [LotSize]byte{}
			}
		},
	} {
		m := copyRoster(s.Roster())
		lie(m)
		err := unchanged(t, what, func() error { _, err := d.c.Share(m); return err }, d.c)
		refused(t, what, err, ErrLot, TurnShare)
	}
	// R covers what is drawn.
	changed := copyRoster(s.Roster())
	changed.Entries[0].Lot[0] ^= 1
	if changed.Hash() == s.Roster().Hash() {
		t.Error("R does not cover lots")
	}

	// Where nothing is dealt nobody draws, and nobody is taken for having drawn.
	bare := loggedRound(t, "no lots", false, 5)
	if err := bare.devices[0].c.SetLot(lotOf(seed, 0)); !errors.Is(err, ErrLot) {
		t.Errorf("a lot in a round that is not dealt: %v", err)
	}
	m, err = bare.devices[0].c.Advertise()
	bare.must(err)
	if err := bare.devices[0].c.SetLot([LotSize]byte{}); err == nil {
		t.Error("a lot behind turn 1")
	}
	m.Lot = lotOf(seed, 0)
	if err := bare.keying.Add(bare.devices[0].id, m); !errors.Is(err, ErrLot) {
		t.Errorf("a lot in a round that is not dealt: %v", err)
	}
	// And where something is, a device that has not drawn says nothing.
	cfg := r.cfg
	c, err := NewClient(cfg, r.plan, r.devices[0].key, newDRBG("without a lot"))
	r.must(err)
	if _, err := c.Advertise(); !errors.Is(err, ErrLot) {
		t.Errorf("advertised without a lot: %v", err)
	}
	cfg.Logged = false
	if err := cfg.Validate(); !errors.Is(err, ErrConfig) {
		t.Errorf("dealt without a log: %v", err)
	}
}
