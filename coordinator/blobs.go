package coordinator

import (
	"bytes"
	"crypto/sha256"
	"io"
	"slices"
	"sync"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// Blob is an immutable byte string, in memory or read from its file. It may be read from any
// goroutine.
type Blob interface {
	io.ReaderAt
	Size() int64
}

// blobs holds immutable byte strings by their SHA-256: the base, programs and
// adapter slices. Permanent ones stay, those of a round are dropped when two
// more rounds have been assigned.
type blobs struct {
	mu    sync.RWMutex
	data  map[[32]byte]Blob         // guarded by mu
	kept  map[[32]byte]monitor.Part // guarded by mu: permanent, and what for
	round [][][32]byte              // guarded by mu: names of the last rounds' blobs, oldest first
}

func newBlobs() *blobs { return &blobs{data: map[[32]byte]Blob{}, kept: map[[32]byte]monitor.Part{}} }

// keptRounds is how many rounds a slice can still be fetched for.
const keptRounds = 3

// keep adds a blob permanently.
func (b *blobs) keep(part monitor.Part, data []byte) wire.Blob {
	ref := blobRef(data)
	b.hold(part, ref, bytes.NewReader(data))
	return ref
}

// hold is keep for a blob whose hash is known already.
func (b *blobs) hold(part monitor.Part, ref wire.Blob, data Blob) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data[ref.SHA256], b.kept[ref.SHA256] = data, part
}

// assign replaces the oldest round's blobs by these, and returns their names. A
// blob that is permanent or of another kept round is not dropped.
func (b *blobs) assign(data ...[]byte) []wire.Blob {
	refs := make([]wire.Blob, len(data))
	names := make([][32]byte, len(data))
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, d := range data {
		refs[i] = blobRef(d)
		names[i] = refs[i].SHA256
		if _, known := b.data[names[i]]; !known {
			b.data[names[i]] = bytes.NewReader(d)
		}
	}
	b.round = append(b.round, names)
	if len(b.round) > keptRounds {
		oldest := b.round[0]
		b.round = b.round[1:]
		// An adapter that did not move, or a round after one that was abandoned,
		// has the same slice again: it is of the later round, too.
		for _, n := range oldest {
			if b.kept[n] == monitor.PartNone && !slices.ContainsFunc(b.round, func(later [][32]byte) bool { return slices.Contains(later, n) }) {
				delete(b.data, n)
			}
		}
	}
	return refs
}

func (b *blobs) get(name [32]byte) (data Blob, kept monitor.Part) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.data[name], b.kept[name]
}

// Blob returns the bytes with the given SHA-256 and what they are part of, or nil: the base, a
// program, or a slice of the last rounds.
func (c *Coordinator) Blob(name [32]byte) (data Blob, part monitor.Part) {
	if data, part = c.blobs.get(name); part == monitor.PartNone {
		part = monitor.PartSlices
	}
	return data, part
}

func blobRef(b []byte) wire.Blob {
	return wire.Blob{SHA256: sha256.Sum256(b), Size: uint64(len(b))}
}
