package coordinator

import (
	"fmt"
	"testing"

	"github.com/starling-fl/starling/coordinator/monitor"
)

// A round whose slice is that of an earlier one, as after an attempt that was
// abandoned or an adapter that did not move, can be fetched as long as any.
func TestABlobOfSeveralRoundsIsKeptForTheLast(t *testing.T) {
	b := newBlobs()
	same, base := []byte("the same slice"), []byte("the base")
	kept := b.keep(monitor.PartBase, base)
	for round := range 10 {
		own := []byte{byte(round)}
		refs := b.assign(same, own, base)
		for i := range keptRounds { // of the rounds that can still be fetched
			if older := round - i; older >= 0 {
				if data, _ := b.get(blobRef([]byte{byte(older)}).SHA256); data == nil {
					t.Errorf("in round %d the blob of round %d is gone", round, older)
				}
			}
		}
		if data, _ := b.get(refs[0].SHA256); data == nil {
			t.Errorf("the slice of round %d is gone", round)
		}
	}
	for range keptRounds {
		b.assign([]byte("another"))
	}
	if data, _ := b.get(blobRef(same).SHA256); data != nil {
		t.Error("the slice that no round names any more is kept")
	}
	if data, permanent := b.get(kept.SHA256); data == nil || permanent != monitor.PartBase {
		t.Error("the base went with its round")
	}
	if n := len(b.data); n != 2 {
		t.Errorf("%d blobs are held, want the base and the last round's", n)
	}
}

// TestKeptBlobs: a round's blobs go after keptRounds more; the kept one stays even
// where a round assigns the same bytes.
func TestKeptBlobs(t *testing.T) {
	b := newBlobs()
	kept := b.keep(monitor.PartBase, []byte("the base, which stays"))
	first := b.assign([]byte("round 0"), []byte("the base, which stays"))
	for i := range keptRounds {
		if data, _ := b.get(first[0].SHA256); data == nil {
			t.Errorf("dropped after %d rounds", i)
		}
		b.assign(fmt.Appendf(nil, "round %d", i+1))
	}
	gone, _ := b.get(first[0].SHA256)
	if stays, _ := b.get(kept.SHA256); gone != nil || stays == nil {
		t.Error("the oldest round's slice is still there, or the base is gone")
	}
}
