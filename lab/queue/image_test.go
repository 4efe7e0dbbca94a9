package queue

import (
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/simulate"
)

// An image goes through a message as it is, and one that lies about its size is
// refused before anything reads it.
func TestImagesInMessages(t *testing.T) {
	m := &dataset.Image{Width: 2, Height: 1, Channels: 1, Pixels: []float32{0.25, 1}}
	pack := func(m *dataset.Image) []byte {
		set := &dataset.Set{Labels: []string{"a", "b"}, Examples: []dataset.Example{{Label: 1, Image: m}}}
		b, err := cbor.Marshal(item{Plan: simulate.Plan{Classes: 2}, Clients: []client{flatten(0, simulate.Client{Set: set})}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	it, err := decodeItem(pack(m))
	if err != nil {
		t.Fatal(err)
	}
	if got := it.Clients[0].set().Examples[0].Image; got == nil || got.Width != 2 || got.Pixels[0] != 0.25 {
		t.Errorf("%+v", got)
	}
	if _, err := decodeItem(pack(&dataset.Image{Width: 9, Height: 9, Channels: 3, Pixels: m.Pixels})); err == nil {
		t.Error("an image that says it is larger than it is")
	}
}
