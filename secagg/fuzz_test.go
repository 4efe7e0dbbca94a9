package secagg

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
)

// Each decoder: what it accepts it encodes to the same bytes, and it never
// allocates more than a small multiple of its input. Seeds are the transcript's
// messages.

type message[T any] interface {
	*T
	wireMessage
	UnmarshalBinary([]byte) error
}

func fuzzDecoder[T any, M message[T]](f *testing.F, field string) {
	f.Add([]byte{})
	for _, b := range seeds(f, field) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		m := M(new(T))
		err := m.UnmarshalBinary(data)
		if !bytes.Equal(before, data) {
			t.Fatal("the input was changed")
		}
		if err != nil {
			return
		}
		again, err := m.AppendBinary(nil)
		if err != nil || !bytes.Equal(again, data) {
			t.Fatalf("%x comes back as %x, %v", data, again, err)
		}
	})
}

// seeds collects the hexadecimal strings under a field of the transcripts.
func seeds(t testing.TB, field string) (out [][]byte) {
	data, err := os.ReadFile("testdata/transcript.json")
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	var walk func(v any, under bool)
	walk = func(v any, under bool) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x, under)
			}
		case map[string]any:
			for k, x := range v {
				walk(x, under || k == field)
			}
		case string:
			if b, err := hex.DecodeString(v); under && err == nil {
				out = append(out, b)
			}
		}
	}
	walk(v, false)
	if len(out) == 0 {
		t.Fatalf("no seeds for %s", field)
	}
	return out
}

func FuzzConfig(f *testing.F)        { fuzzDecoder[Config](f, "config_encoding") }
func FuzzAdvertise(f *testing.F)     { fuzzDecoder[Advertise](f, "advertise") }
func FuzzRoster(f *testing.F)        { fuzzDecoder[Roster](f, "roster") }
func FuzzShares(f *testing.F)        { fuzzDecoder[Shares](f, "shares") }
func FuzzDelivery(f *testing.F)      { fuzzDecoder[Delivery](f, "delivery") }
func FuzzMasked(f *testing.F)        { fuzzDecoder[Masked](f, "masked") }
func FuzzSurvivors(f *testing.F)     { fuzzDecoder[Survivors](f, "survivors") }
func FuzzConfirmation(f *testing.F)  { fuzzDecoder[Confirmation](f, "confirmation") }
func FuzzConfirmations(f *testing.F) { fuzzDecoder[Confirmations](f, "confirmations") }
func FuzzReveal(f *testing.F)        { fuzzDecoder[Reveal](f, "reveal") }

// FuzzMachines feeds decoded messages of every kind to machines in every turn:
// whatever they contain, a call fails or succeeds, it does not panic, and what
// fails changes nothing.
func FuzzMachines(f *testing.F) {
	for _, field := range []string{"advertise", "roster", "shares", "delivery", "masked", "survivors", "confirmation", "confirmations", "reveal"} {
		for i, b := range seeds(f, field) {
			f.Add(b, byte(i), true)
			f.Add(b, byte(i), false)
		}
	}
	r := newRound(f, "fuzz", testConfig(3, 11, 12, 3), 3)
	r.key()
	s := r.shards[0]
	type state struct {
		s *Server
		c *Client
	}
	d := r.byID[s.Members()[0]]
	states := []state{{cloneServer(s), cloneClient(d.c)}}
	r.must(r.share(s))
	states = append(states, state{cloneServer(s), cloneClient(d.c)})
	sv, err := r.mask(s)
	r.must(err)
	states = append(states, state{cloneServer(s), cloneClient(d.c)})
	_, err = r.confirm(s, sv)
	r.must(err)
	states = append(states, state{cloneServer(s), cloneClient(d.c)})
	roster := s.roster

	f.Fuzz(func(t *testing.T, data []byte, at byte, bind bool) {
		st := states[int(at)%len(states)]
		s, c := cloneServer(st.s), cloneClient(st.c)
		id := s.members[int(at/4)%len(s.members)]
		var call func() error
		// bind gives the message this round's roster, to get past the first check.
		hash := func(h *Hash) {
			if bind {
				*h = roster
			}
		}
		switch kindOf(data) {
		case kindAdvertise:
			m := new(Advertise)
			if m.UnmarshalBinary(data) != nil {
				return
			}
			if bind {
				m.Plan = r.plan
			}
			k, err := NewKeying(r.cfg, r.plan, r.auth)
			if err != nil {
				t.Fatal(err)
			}
			call = func() error { return k.Add(m.Identity, m) }
		case kindRoster:
			m := new(Roster)
			if m.UnmarshalBinary(data) != nil {
				return
			}
			if bind {
				m.Plan = r.plan
			}
			call = func() error { _, err := c.Share(m); return err }
		case kindShares:
			m := new(Shares)
			if m.UnmarshalBinary(data) != nil {
				return
			}
			hash(&m.Roster)
			call = func() error { return s.Add(id, m) }
		case kindDelivery:
			m := new(Delivery)
			if m.UnmarshalBinary(data) != nil {
				return
			}
			hash(&m.Roster)
			call = func() error { return c.Deliver(m) }
		case kindMasked:
			m := new(Masked)
			if m.UnmarshalBinary(data) != nil {
				return
			}
			hash(&m.roster)
			call = func() error { return s.Add(id, m) }
		case kindSurvivors:
			m := new(Survivors)
			if m.UnmarshalBinary(data) != nil {
				return
			}
			hash(&m.Roster)
			call = func() error { _, err := c.Confirm(m); return err }
		case kindConfirmation:
			m := new(Confirmation)
			if m.UnmarshalBinary(data) != nil {
				return
			}
			hash(&m.Roster)
			call = func() error { return s.Add(id, m) }
		case kindConfirmations:
			m := new(Confirmations)
			if m.UnmarshalBinary(data) != nil {
				return
			}
			hash(&m.Roster)
			call = func() error { _, err := c.Reveal(m); return err }
		case kindReveal:
			m := new(Reveal)
			if m.UnmarshalBinary(data) != nil {
				return
			}
			hash(&m.Roster)
			call = func() error {
				err := s.Add(id, m)
				if s.u5.Len() >= s.threshold {
					s.Unmask()
				}
				return err
			}
		default:
			return
		}
		before := snapshot(s) + snapshot(c)
		if call() != nil && snapshot(s)+snapshot(c) != before {
			t.Fatal("a refused message changed a machine")
		}
	})
}

// kindOf is the kind a message claims to be.
func kindOf(data []byte) int {
	if len(data) < 2 || data[1] > kindReveal {
		return 0
	}
	return int(data[1])
}

// FuzzPacked: any string of the right shape unpacks to values that pack to it.
func FuzzPacked(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9}, byte(11))
	f.Fuzz(func(t *testing.T, p []byte, w byte) {
		width := int(w)%32 + 1
		dim := len(p) * 8 / width
		if dim == 0 || checkPacked(p, dim, width) != nil {
			return
		}
		v := make([]uint32, dim)
		addPacked(v, p, width)
		if got := pack(v, width); !bytes.Equal(got, p) {
			t.Fatalf("width %d: %x comes back as %x", width, p, got)
		}
	})
}

// TestDecodersRefuse: prefixes, trailing bytes, other kinds, and lengths in a
// longer form than needed.
func TestDecodersRefuse(t *testing.T) {
	decoders := map[string]func([]byte) error{
		"config_encoding": func(b []byte) error { return new(Config).UnmarshalBinary(b) },
		"advertise":       func(b []byte) error { return new(Advertise).UnmarshalBinary(b) },
		"roster":          func(b []byte) error { return new(Roster).UnmarshalBinary(b) },
		"shares":          func(b []byte) error { return new(Shares).UnmarshalBinary(b) },
		"delivery":        func(b []byte) error { return new(Delivery).UnmarshalBinary(b) },
		"masked":          func(b []byte) error { return new(Masked).UnmarshalBinary(b) },
		"survivors":       func(b []byte) error { return new(Survivors).UnmarshalBinary(b) },
		"confirmation":    func(b []byte) error { return new(Confirmation).UnmarshalBinary(b) },
		"confirmations":   func(b []byte) error { return new(Confirmations).UnmarshalBinary(b) },
		"reveal":          func(b []byte) error { return new(Reveal).UnmarshalBinary(b) },
	}
	for field, decode := range decoders {
		b := seeds(t, field)[0]
		if err := decode(b); err != nil {
			t.Fatalf("%s: %v", field, err)
		}
		for i := range b {
			if decode(b[:i]) == nil {
				t.Fatalf("%s: %d of %d bytes pass", field, i, len(b))
			}
		}
		for other := range decoders {
			if other != field && decode(seeds(t, other)[0]) == nil {
				t.Errorf("%s passes as %s", other, field)
			}
		}
		for what, bad := range map[string][]byte{
			"a byte too many":      append(bytes.Clone(b), 0),
			"array in a long form": append([]byte{0x98, b[0] & 0x1f}, b[1:]...),
			"kind in a long form":  append([]byte{b[0], 0x18, b[1]}, b[2:]...),
			"indefinite array":     append([]byte{0x9f}, b[1:]...),
			"a promise of 2^60":    append(bytes.Clone(b[:2]), 0x5b, 0x10, 0, 0, 0, 0, 0, 0, 0),
			"a negative integer":   append([]byte{b[0], b[1] | 0x20}, b[2:]...),
		} {
			if decode(bad) == nil {
				t.Errorf("%s: %s passes", field, what)
			}
		}
	}
}
