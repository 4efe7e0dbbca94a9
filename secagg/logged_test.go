package secagg

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// loggedRound is one whose rosters say who is in them; the proof is the caller's.
func loggedRound(t testing.TB, seed string, identified bool, n int) *round {
	cfg := testConfig(5, 11, 12, n)
	cfg.ShardMin, cfg.Logged, cfg.Identified = n-1, true, identified
	return newRound(t, seed, cfg, n)
}

func TestLoggedRosters(t *testing.T) {
	for _, identified := range []bool{false, true} {
		r := loggedRound(t, fmt.Sprintf("logged %v", identified), identified, 5)
		r.key() // with a proof, which this package does not read
		s := r.shards[0]
		for i, e := range over(t, s.Roster()).Entries {
			if id, ok := e.Member(&r.cfg); !ok || id != s.Members()[i] {
				t.Errorf("entry %d says that it is %x, %v, and is %x", i, id, ok, s.Members()[i])
			}
		}
		var wrong *StateError
		if err := s.SetEnrolments([]byte("another proof")); !errors.As(err, &wrong) {
			t.Errorf("a second proof: %v", err)
		}
		r.check(s)
	}
	bare := newRound(t, "bare", testConfig(5, 11, 12, 5), 5)
	bare.key()
	if err := bare.shards[0].SetEnrolments([]byte("proof")); !errors.Is(err, ErrConfig) {
		t.Errorf("a proof in a round without a log: %v", err)
	}
}

func TestLyingLoggedRoster(t *testing.T) {
	r := loggedRound(t, "lying logged roster", false, 5)
	r.key()
	s := r.shards[0]
	d := r.byID[s.Members()[2]]
	outsider := ed25519.NewKeyFromSeed(make([]byte, 32))
	k := [32]byte{1}
	fresh := x25519Private(&k).PublicKey().Bytes()
	invented := func(m *Roster) *Entry {
		m.Entries[0] = signEntry(r.plan, r.auth, outsider, Keys{Mask: [32]byte(fresh), Seal: fresh})
		return &m.Entries[0]
	}
	for _, c := range []struct {
		what  string
		lie   func(m *Roster)
		cause error
	}{
		{"nothing proves that they are enrolled", func(m *Roster) { m.Enrolments = nil }, ErrRoster},
		{"a peer that does not say who it is", func(m *Roster) { m.Entries[0].Identity, m.Entries[0].Vouch = ID{}, [64]byte{} }, ErrRoster},
		{"an invented peer that does not say who it is", func(m *Roster) { invented(m); sortRoster(m) }, ErrRoster},
		{"an invented peer under an enrolled device's name", func(m *Roster) {
			was := m.Entries[0]
			e := invented(m)
			e.Identity, e.Vouch = was.Identity, was.Vouch
			sortRoster(m)
		}, ErrSignature},
		{"a peer's name that did not sign these keys", func(m *Roster) { m.Entries[0].Identity = ID(outsider.Public().(ed25519.PublicKey)) }, ErrSignature},
		{"two peers' names exchanged", func(m *Roster) {
			a, b := &m.Entries[0], &m.Entries[1]
			a.Identity, b.Identity = b.Identity, a.Identity
		}, ErrSignature},
		{"one device twice", func(m *Roster) { m.Entries[0].Identity = m.Entries[1].Identity }, ErrRoster},
		{"this device under another name", func(m *Roster) { m.Entries[2].Identity = ID{9} }, ErrRoster},
		{"this device's name beside another's keys", func(m *Roster) { m.Entries[0].Identity = d.id }, ErrRoster},
	} {
		m := copyRoster(s.Roster())
		c.lie(m)
		err := unchanged(t, c.what, func() error { _, err := d.c.Share(m); return err }, d.c)
		refused(t, c.what, err, c.cause, TurnShare)
	}
	r.check(s)

	// Where a round is not logged, nobody's name is taken either.
	bare := newRound(t, "bare roster", testConfig(5, 11, 12, 5), 5)
	bare.key()
	m := copyRoster(bare.shards[0].Roster())
	named := slices.Clone(m.Entries)
	named[0].Identity = ID{9}
	for _, lie := range []*Roster{{m.Plan, 0, named, nil}, {m.Plan, 0, m.Entries, []byte("proof")}} {
		_, err := bare.byID[bare.shards[0].Members()[2]].c.Share(lie)
		refused(t, "names in a roster of keys", err, ErrRoster, TurnShare)
	}
}

// What a device proves its peers' enrolment by is of one roster: another proof is another
// roster, whose shares do not open.
func TestTheProofIsInTheRoster(t *testing.T) {
	r := loggedRound(t, "proof", false, 4)
	r.key()
	a := r.shards[0].Roster()
	b := copyRoster(a)
	b.Enrolments = []byte("another")
	if a.Hash() == b.Hash() {
		t.Error("R does not cover what proves that the shard is enrolled")
	}
}
