package edge

import (
	"io"
	"sync"
	"weak"

	"github.com/starling-fl/starling/internal/wire"
	"github.com/starling-fl/starling/model"
)

// opened are the bases that edges of this process hold, by the hash of their
// blobs: a fleet in one process holds one, not one for each of its devices. An
// opened base is never changed, and goes with the last edge that holds it.
var opened struct {
	mu    sync.Mutex
	bases map[[32]byte]weak.Pointer[model.Base] // by mu
}

// openBlob opens a base's blob, whose hash was checked, or returns the one that
// another edge has opened.
func openBlob(b wire.Blob, blob io.ReaderAt) (*model.Base, error) {
	sum := b.SHA256
	opened.mu.Lock()
	defer opened.mu.Unlock()
	if base := opened.bases[sum].Value(); base != nil {
		return base, nil
	}
	base, err := model.OpenBlob(blob, int64(b.Size))
	if err != nil {
		return nil, err
	}
	if opened.bases == nil {
		opened.bases = map[[32]byte]weak.Pointer[model.Base]{}
	}
	for old, held := range opened.bases {
		if held.Value() == nil {
			delete(opened.bases, old)
		}
	}
	opened.bases[sum] = weak.Make(base)
	return base, nil
}
