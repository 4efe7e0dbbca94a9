package edge

import (
	"io"
	"sync"
	"weak"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model"
)

// opened are the bases that edges of this process hold, by the hash of their
// blobs: a fleet in one process holds one, not one for each of its devices. An
// opened base is never changed, and goes with the last edge that holds it.
var opened struct {
	mu    sync.Mutex
	bases map[[32]byte]weak.Pointer[model.Base] // by mu
}

// openedBase is the base of that hash that some edge has opened and still holds, or nil.
func openedBase(sum [32]byte) *model.Base {
	opened.mu.Lock()
	defer opened.mu.Unlock()
	return opened.bases[sum].Value()
}

// openBlob opens a base's blob, whose hash was checked, or returns the one that
// another edge has opened. A blob that is not kept is closed.
func openBlob(b wire.Blob, blob io.ReaderAt) (*model.Base, error) {
	sum := b.SHA256
	opened.mu.Lock()
	defer opened.mu.Unlock()
	if base := opened.bases[sum].Value(); base != nil {
		closeBlob(blob)
		return base, nil
	}
	base, err := model.OpenBlob(blob, int64(b.Size))
	if err != nil {
		closeBlob(blob)
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

// closeBlob closes a file of the cache.
func closeBlob(blob io.ReaderAt) {
	if file, ok := blob.(io.Closer); ok {
		_ = file.Close() // it was only read
	}
}
