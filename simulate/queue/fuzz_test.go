package queue

import (
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/starling-fl/starling/simulate"
)

// Whoever reaches the queue can publish: nothing decoded may do worse than be
// refused.
func FuzzDecodeItem(f *testing.F) {
	good, err := cbor.Marshal(item{Version: "v", Run: "r", Plan: simulate.Plan{Classes: 2}, Clients: []client{{Examples: []example{{Text: "x", Label: 1}}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		it, err := decodeItem(b)
		if err == nil && (len(it.Clients) == 0 || len(it.Clients) > maxClients) {
			t.Errorf("%d clients", len(it.Clients))
		}
	})
}
