package secagg

import (
	"fmt"
	"slices"
	"testing"
)

// masked is a round's first shard with as many of n devices dropped, ready to be unmasked.
func masked(t testing.TB, n, dropped, width int) (*round, *Server) {
	r := newRound(t, fmt.Sprint("masks ", n, dropped, width), testConfig(300, width, 1, n), n)
	for _, d := range r.devices[:dropped] {
		d.lastTurn = TurnShare
	}
	r.key()
	s := r.shards[0]
	r.must(r.share(s))
	sv, err := r.mask(s)
	r.must(err)
	cs, err := r.confirm(s, sv)
	r.must(err)
	r.reveal(s, cs)
	return r, s
}

// The masks that remain are never of both kinds for one device, their sum unmasks the survivors' sum, and a shard is
// unmasked once.
func TestRemainingMasks(t *testing.T) {
	for _, c := range []struct{ n, dropped, width int }{{5, 0, 11}, {9, 3, 11}, {9, 4, 16}, {12, 5, 17}, {12, 2, 32}} {
		r, s := masked(t, c.n, c.dropped, c.width)
		m, err := s.remaining()
		r.must(err)
		if m.dropped.Len() != c.dropped || m.survivors.Len() != c.n-c.dropped ||
			len(m.private) != scalarSize*c.dropped || len(m.selves) != maskKeyLen*(c.n-c.dropped) {
			t.Fatalf("%+v: %d dropped, %d survived, %d and %d bytes of keys", c, m.dropped.Len(), m.survivors.Len(), len(m.private), len(m.selves))
		}
		for i := range m.survivors {
			if m.survivors[i]&m.dropped[i] != 0 {
				t.Fatalf("%+v: both secrets of one device", c)
			}
		}
		m.erase()
		if slices.ContainsFunc(append(m.selves, m.private...), func(b byte) bool { return b != 0 }) {
			t.Errorf("%+v: keys are not erased", c)
		}
		got, err := s.Unmask()
		r.must(err)
		if !slices.Equal(got, r.plain(s)) {
			t.Fatalf("%+v: wrong sum", c)
		}
		if _, err := s.Unmask(); err == nil {
			t.Error("a shard is unmasked twice")
		}
	}
}
