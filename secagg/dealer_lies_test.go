package secagg

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"filippo.io/edwards25519"
)

// badShares runs a shard of n whose devices in liars reveal wrong scalars.
func badShares(t *testing.T, n int, liars, absent []int, drop int) (*Server, *round, map[ID]*Reveal) {
	t.Helper()
	r := newRound(t, fmt.Sprint("bad shares", n, liars), testConfig(5, 11, 12, n), n)
	r.key()
	s := r.shards[0]
	ids := s.Members()
	for _, id := range ids[n-drop:] {
		r.byID[id].lastTurn = TurnShare
	}
	r.must(r.share(s))
	sv, err := r.mask(s)
	r.must(err)
	cs, err := r.confirm(s, sv)
	r.must(err)
	kept := map[ID]*Reveal{}
	for i, id := range ids {
		if s.in(s.u4, id) {
			m, err := r.byID[id].c.Reveal(cs)
			r.must(err)
			if slices.Contains(liars, i) {
				for j := 0; j < len(m.Shares); j += scalarSize {
					m.Shares[j] ^= 1
				}
			}
			if slices.Contains(absent, i) {
				kept[id] = m
			} else {
				r.must(s.Add(id, m))
			}
		}
	}
	return s, r, kept
}

// TestBadShares: wrong shares are found and left out while t right ones are there;
// with fewer the shard waits for more.
func TestBadShares(t *testing.T) {
	s, r, _ := badShares(t, 9, []int{0, 3}, nil, 2) // t=5, 7 survivors, 5 right
	sum, err := s.Unmask()
	r.must(err)
	if !slices.Equal(sum, r.plain(s)) {
		t.Error("wrong sum")
	}

	// Who is caught once is asked last from then on.
	s, _, _ = badShares(t, 9, []int{0, 3}, nil, 2)
	b := rebuilder{s: s, coefficients: map[string][]*edwards25519.Scalar{}}
	if _, err := b.rebuild(1); err != nil || b.suspects.Len() != 2 || !b.suspects.Has(0) || !b.suspects.Has(3) {
		t.Errorf("suspects %v, %v", b.suspects, err)
	}
	if _, err := b.rebuild(2); err != nil || len(b.coefficients) != 2 {
		t.Errorf("%d sets of holders were tried, %v: the liars were asked again", len(b.coefficients), err)
	}

	s, r, kept := badShares(t, 9, []int{0, 3}, []int{6}, 2) // 4 right ones until 6 comes
	err = unchanged(t, "four right shares", func() error { _, err := s.Unmask(); return err }, s)
	var shardErr *ShardError
	if !errors.As(err, &shardErr) || !errors.Is(err, ErrShare) {
		t.Error(err)
	}
	for id, m := range kept {
		r.must(s.Add(id, m))
	}
	sum, err = s.Unmask()
	r.must(err)
	if !slices.Equal(sum, r.plain(s)) {
		t.Error("wrong sum")
	}
}

// TestGarbageDealer: a dealer whose secrets cannot be rebuilt fails its own shard,
// whatever is wrong with what it dealt, and never by a panic or a wrong sum.
func TestGarbageDealer(t *testing.T) {
	// A point of order 8: commitments may be outside the prime-order group.
	torsion, err := new(edwards25519.Point).SetBytes(unhex(t, "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what  string
		drop  bool
		spoil func(m *Shares, t int)
		cause error // nil: no harm done
	}{
		{"another constant commitment, dropped", true, func(m *Shares, _ int) {
			copy(m.Commit, edwards25519.NewGeneratorPoint().Bytes())
		}, ErrShare},
		{"another constant commitment, survived", false, func(m *Shares, t int) {
			copy(m.Commit[t*pointSize:], edwards25519.NewGeneratorPoint().Bytes())
		}, ErrShare},
		{"torsion in the constant commitment", false, func(m *Shares, t int) {
			p, err := new(edwards25519.Point).SetBytes(m.Commit[t*pointSize : (t+1)*pointSize])
			if err != nil {
				panic(err)
			}
			copy(m.Commit[t*pointSize:], p.Add(p, torsion).Bytes())
		}, ErrShare},
		{"torsion that odd abscissas do not see", false, func(m *Shares, t int) {
			// A point of order 2 on the first two commitments: T*(1+x) vanishes for odd x, so
			// that three of five shares verify, but not at 0.
			two, err := new(edwards25519.Point).SetBytes(append([]byte{0xec}, append(bytes.Repeat([]byte{0xff}, 30), 0x7f)...))
			if err != nil {
				panic(err)
			}
			for k := t; k < t+2; k++ {
				p, err := new(edwards25519.Point).SetBytes(m.Commit[k*pointSize : (k+1)*pointSize])
				if err != nil {
					panic(err)
				}
				copy(m.Commit[k*pointSize:], p.Add(p, two).Bytes())
			}
		}, ErrCommitment},
		{"sealed garbage for everyone, dropped", true, func(m *Shares, _ int) { clear(m.Sealed) }, ErrShare},
		{"sealed garbage for one", false, func(m *Shares, _ int) { clear(m.Sealed[:boxSize]) }, nil},
	} {
		r := newRound(t, "garbage"+c.what, testConfig(5, 11, 12, 5), 10)
		r.key()
		s := r.shards[0]
		ids := s.Members()
		if c.drop {
			r.byID[ids[2]].lastTurn = TurnShare
		}
		for _, id := range ids {
			m, err := r.byID[id].c.Share(s.Roster())
			r.must(err)
			if id == ids[2] {
				c.spoil(m, s.Threshold())
			}
			r.must(s.Add(id, m))
		}
		r.must(s.CloseSharing())
		sv, err := r.mask(s)
		r.must(err)
		cs, err := r.confirm(s, sv)
		r.must(err)
		r.reveal(s, cs)
		sum, err := s.Unmask()
		var shardErr *ShardError
		switch {
		case c.cause == nil && c.what == "sealed garbage for one":
			if err != nil || !slices.Equal(sum, r.plain(s)) {
				t.Errorf("%s: %v", c.what, err)
			}
		case !errors.As(err, &shardErr):
			t.Errorf("%s: %v", c.what, err)
		case c.cause != nil && !errors.Is(err, c.cause):
			t.Errorf("%s: %v, want %v", c.what, err, c.cause)
		}
		faults := s.Faults()
		if shardErr != nil {
			faults = shardErr.Faults
		}
		switch {
		case c.what == "sealed garbage for one":
			if len(faults) != 0 {
				t.Errorf("%s: %+v is blamed", c.what, faults)
			}
		case len(faults) != 1 || faults[0].Device != ids[2] || !faults[0].Proven:
			t.Errorf("%s: blamed is %+v, the dealer is %x", c.what, faults, ids[2][:4])
		}
		r.check(r.shards[1]) // the other shard goes on
	}
}

// TestHostileCommitmentsThatAreNoPoints are refused when they come, not when the
// shard needs them.
func TestHostileCommitmentsThatAreNoPoints(t *testing.T) {
	r := newRound(t, "no points", testConfig(5, 11, 12, 5), 5)
	r.key()
	s := r.shards[0]
	id := s.Members()[2]
	m, err := r.byID[id].c.Share(s.Roster())
	r.must(err)
	last := m.Commit[len(m.Commit)-pointSize:]
	copy(last, bytes.Repeat([]byte{0xff}, pointSize))
	last[0] = 2 // y = 2 with the sign and the high bits set: no point of the curve
	var device *DeviceError
	if err := s.Add(id, m); !errors.As(err, &device) || device.Device != id || !errors.Is(err, ErrCommitment) {
		t.Errorf("%v", err)
	}
	if s.in(s.u2, id) {
		t.Error("its sender is in U2")
	}
}

// TestHostileRevealers: who reveals wrong shares of everybody is convicted and
// costs nothing; a dealer that deals garbage to a few can frame none of them.
func TestHostileRevealers(t *testing.T) {
	for name, lie := range map[string]func(m *Reveal, own int) bool{
		"wrong shares of all": func(m *Reveal, _ int) bool {
			for k := 0; k < len(m.Shares); k += scalarSize {
				m.Shares[k] ^= 1
			}
			return true
		},
		"a wrong share of one": func(m *Reveal, own int) bool {
			at := 0
			if own == 0 {
				at = 1
			}
			m.Shares[at*scalarSize] ^= 1
			return false
		},
		"shares of itself alone": func(m *Reveal, own int) bool {
			share := bytes.Clone(m.Shares[own*scalarSize : (own+1)*scalarSize])
			clear(m.Held)
			m.Held.add(own)
			m.Shares = share
			return true
		},
	} {
		r := newRound(t, "revealer "+name, testConfig(7, 11, 12, 7), 7)
		r.key()
		s := r.shards[0]
		r.must(r.share(s))
		sv, err := r.mask(s)
		r.must(err)
		cs, err := r.confirm(s, sv)
		r.must(err)
		convict := false
		liar := s.Members()[0] // of the first to be asked
		for i, id := range s.Members() {
			m, err := r.byID[id].c.Reveal(cs)
			r.must(err)
			if id == liar {
				convict = lie(m, i)
			}
			r.must(s.Add(id, m))
		}
		sum, err := s.Unmask()
		if err != nil || !slices.Equal(sum, r.plain(s)) {
			t.Errorf("%s: %v", name, err)
		}
		if faults := s.Faults(); convict && (len(faults) != 1 || faults[0].Device != liar || !faults[0].Proven) || !convict && len(faults) != 0 {
			t.Errorf("%s: blamed is %+v", name, faults)
		}
	}
}

// TestWrongKeyShared: a dealer shares, consistently, a scalar that is not its mask
// key's. If it survives nobody needs it; if it drops its shard fails.
func TestWrongKeyShared(t *testing.T) {
	for _, drop := range []bool{false, true} {
		r := newRound(t, fmt.Sprint("wrong key", drop), testConfig(5, 11, 12, 5), 5)
		r.key()
		s := r.shards[0]
		liar := r.byID[s.Members()[3]]
		real := liar.c.maskA
		a, err := randomScalar(newDRBG("another key"))
		r.must(err)
		copy(liar.c.maskA[:], a.Bytes())
		if drop {
			liar.lastTurn = TurnShare
		}
		r.must(r.share(s))
		liar.c.maskA = real
		sv, err := r.mask(s)
		r.must(err)
		cs, err := r.confirm(s, sv)
		r.must(err)
		r.reveal(s, cs)
		sum, err := s.Unmask()
		if drop {
			if !errors.Is(err, ErrCommitment) {
				t.Errorf("%v", err)
			}
		} else if err != nil || !slices.Equal(sum, r.plain(s)) {
			t.Errorf("survived: %v", err)
		}
	}
}
