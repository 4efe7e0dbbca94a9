package queue

import (
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/starling-fl/starling/simulate"
)

// Anyone who reaches the queue can publish: nothing decoded may do worse than be
// refused.
func FuzzDecodeItem(f *testing.F) {
	good, err := cbor.Marshal(item{Version: "v", Run: "r", Plan: simulate.Plan{Classes: 2}, Clients: []client{{Examples: []example{{Text: "x", Label: 1}}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	heard, err := cbor.Marshal(item{Plan: simulate.Plan{Classes: 2}, Clients: []client{{Examples: []example{{Recording: &recording{16_000, []byte("\x00\x00\x00\x3f\x00\x00\x00\x00")}}}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(heard)
	f.Fuzz(func(t *testing.T, b []byte) {
		it, err := decodeItem(b)
		if err == nil && (len(it.Clients) == 0 || len(it.Clients) > maxClients) {
			t.Errorf("%d clients", len(it.Clients))
		}
	})
}

// A worker has the key and sends what it likes.
func FuzzDecodeOutcome(f *testing.F) {
	good, err := cbor.Marshal(outcome{Run: "r", Places: []int{3}, Norms: [][]float64{{1}}, Sum: varints([]int64{1, -2})})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		var o outcome
		if decoder.Unmarshal(b, &o) != nil || o.check([]int{3}, 1) != nil {
			return
		}
		if len(o.Norms) != 1 || len(o.Norms[0]) > 1 || o.Empty > 1 {
			t.Errorf("%+v", o)
		}
	})
}

// What is sealed is opened as it was, and nothing else is.
func FuzzOpen(f *testing.F) {
	k := newKey()
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		sealed, err := k.seal(sealedItem, b)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := k.open(sealedItem, sealed); err != nil || string(got) != string(b) {
			t.Errorf("%x, %v", got, err)
		}
		if _, err := k.open(sealedResult, sealed); err == nil {
			t.Error("an item was read as a result")
		}
		if _, err := k.open(sealedItem, b); err == nil {
			t.Error("anything was read as an item")
		}
	})
}
