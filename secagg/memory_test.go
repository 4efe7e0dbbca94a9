package secagg

import "testing"

// TestOneRunningSum: however many vectors come, the server holds one sum, and
// nothing of a vector's bytes.
func TestOneRunningSum(t *testing.T) {
	r := newRound(t, "memory", testConfig(5000, 11, 12, 8), 8)
	r.key()
	s := r.shards[0]
	r.must(r.share(s))
	var size int
	for k, d := range r.of(s, TurnMask) {
		r.must(d.c.Deliver(s.Delivery(d.id)))
		m, err := d.c.Mask(d.symbols)
		r.must(err)
		r.must(s.Add(d.id, m))
		held := snapshot(s)
		if k > 0 && len(held) > size+5000 { // numbers are written with up to 10 digits
			t.Fatalf("vector %d: the server grew by %d bytes", k, len(held)-size)
		}
		size = max(size, len(held))
		clear(m.packed)
		if snapshot(s) != held {
			t.Fatal("the server keeps a reference to the vector")
		}
	}
	if len(s.sum) != 5000 {
		t.Fatalf("sum of %d values", len(s.sum))
	}
	sv, err := s.CloseCollecting()
	r.must(err)
	if s.sealed != nil {
		t.Error("sealed shares are kept after turn 3")
	}
	cs, err := r.confirm(s, sv)
	r.must(err)
	r.reveal(s, cs)
	if _, err := s.Unmask(); err != nil {
		t.Fatal(err)
	}
	if s.sum != nil || s.commit != nil || s.turn != TurnDone {
		t.Error("the server keeps its sum after unmasking")
	}
	for _, m := range s.reveals {
		if m != nil {
			t.Error("the server keeps shares after unmasking")
		}
	}
	s.Close()
}
