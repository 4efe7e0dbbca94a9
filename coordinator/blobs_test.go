package coordinator

import "testing"

// A round whose slice is that of an earlier one, as after an attempt that was
// abandoned or an adapter that did not move, can be fetched as long as any.
func TestABlobOfSeveralRoundsIsKeptForTheLast(t *testing.T) {
	b := newBlobs()
	same, base := []byte("the same slice"), []byte("the base")
	kept := b.keep(base)
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
	if data, permanent := b.get(kept.SHA256); data == nil || !permanent {
		t.Error("the base went with its round")
	}
	if n := len(b.data); n != 2 {
		t.Errorf("%d blobs are held, want the base and the last round's", n)
	}
}
