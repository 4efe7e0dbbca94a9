package secagg

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/starling-fl/starling/internal/protocol/cbor"
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

// Masks that were added up elsewhere, from their encoding, give the sum that Unmask gives, and
// nothing of what went there is of both kinds of secret of one device.
func TestMasksElsewhere(t *testing.T) {
	for _, c := range []struct{ n, dropped, width int }{{5, 0, 11}, {9, 3, 11}, {9, 4, 16}, {12, 5, 17}, {12, 2, 32}} {
		r, s := masked(t, c.n, c.dropped, c.width)
		m, err := s.Masks()
		r.must(err)
		there := over(t, m)
		m.Erase()
		sum := there.Sum()
		if !slices.Equal(sum, there.Sum()) {
			t.Fatal("another sum of the same masks")
		}
		p := there.Pack(sum)
		back, err := m.Unpack(p)
		if err != nil || len(p) != m.PackedSize() || !slices.Equal(back, sum) {
			t.Fatalf("%+v: %d bytes, %v", c, len(p), err)
		}
		if there.dropped.Len() != c.dropped || there.survivors.Len() != c.n-c.dropped {
			t.Fatalf("%+v: %d dropped, %d survived", c, there.dropped.Len(), there.survivors.Len())
		}
		got, err := s.Strip(back)
		r.must(err)
		if !slices.Equal(got, r.plain(s)) {
			t.Fatalf("%+v: wrong sum", c)
		}
		if _, err := s.Strip(back); err == nil {
			t.Error("a shard is unmasked twice")
		}
	}
}

// What is no encoding of masks is refused by the field that is wrong.
func TestMasksRefused(t *testing.T) {
	r, s := masked(t, 9, 3, 11)
	m, err := s.Masks()
	r.must(err)
	for name, c := range map[string]struct {
		want error
		lie  func(*Masks)
	}{
		"no symbols":       {ErrEncoding, func(m *Masks) { m.dim = 0 }},
		"too many symbols": {ErrEncoding, func(m *Masks) { m.dim = MaxDim + 1 }},
		"no width":         {ErrEncoding, func(m *Masks) { m.width = 0 }},
		"two shards":       {ErrSet, func(m *Masks) { m.dropped = append(m.dropped, 0) }},
		"both": {ErrSet, func(m *Masks) {
			m.survivors[0] |= m.dropped[0]
			m.selves = make([]byte, 9*16)
			m.peers = make([]byte, 9*32)
		}},
		"a self-mask less":     {ErrLength, func(m *Masks) { m.selves = m.selves[16:] }},
		"a key less":           {ErrLength, func(m *Masks) { m.private = m.private[32:] }},
		"a public key more":    {ErrLength, func(m *Masks) { m.peers = append(m.peers, make([]byte, 32)...) }},
		"a key of low order":   {ErrKey, func(m *Masks) { clear(m.peers[:32]) }},
		"nobody to agree with": {ErrLength, func(m *Masks) { m.peers = nil }},
	} {
		lie := over(t, m)
		c.lie(lie)
		b, _ := lie.AppendBinary(nil)
		if err := new(Masks).UnmarshalBinary(b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b, _ := m.AppendBinary(nil)
	b[1] = cbor.AppendUint(nil, masksVersion+1)[0]
	if err := new(Masks).UnmarshalBinary(b); !errors.Is(err, ErrEncoding) {
		t.Errorf("another program's masks: %v", err)
	}
	for _, sum := range [][]uint32{nil, make([]uint32, 299)} {
		if _, err := s.Strip(sum); err == nil {
			t.Errorf("masks of %d symbols are taken off", len(sum))
		}
	}
	if _, err := m.Unpack(make([]byte, m.PackedSize()-1)); !errors.Is(err, ErrLength) {
		t.Errorf("a sum that lacks a byte: %v", err)
	}
}

func FuzzMasks(f *testing.F) {
	for _, dropped := range []int{0, 3} {
		_, s := masked(f, 9, dropped, 11)
		m, err := s.Masks()
		if err != nil {
			f.Fatal(err)
		}
		b, _ := m.AppendBinary(nil)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := new(Masks)
		if m.UnmarshalBinary(data) != nil {
			return
		}
		again, _ := m.AppendBinary(nil)
		if string(again) != string(data) {
			t.Fatal("comes back as other bytes")
		}
		if m.dim > 1000 {
			return
		}
		sum := m.Sum()
		if back, err := m.Unpack(m.Pack(sum)); err != nil || !slices.Equal(back, sum) {
			t.Fatalf("%v", err)
		}
	})
}
