package trainer

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"sync"

	"github.com/starling-fl/starling/data/task"
)

// Features is a cache of what frozen convolutions made of recordings, so that no later step
// computes it again. Its keys are the recordings' contents. Once it is full nothing is added and
// nothing is evicted: steps take recordings in turn, so the least recently used one comes next.
// A nil Features keeps nothing. It is safe for concurrent use.
//
// They are one unit's, like its data: a program that made a recording's features of another's
// would else carry it into another unit's update. Simulations, on public data, share them.
type Features struct {
	most int // values

	mu    sync.Mutex
	maker Maker                           // by mu; of all that is kept
	rows  map[[sha256.Size]byte][]float32 // by mu
	size  int                             // by mu
}

// Maker determines the bits of features, together with the recording.
type Maker struct {
	Base  [sha256.Size]byte
	Fused bool
}

// NewFeatures keeps at most so many bytes.
func NewFeatures(bytes float64) *Features { return &Features{most: int(bytes / 4)} }

// Recordings returns the identities of a batch's recordings.
func Recordings(b Batch) (names [][sha256.Size]byte) {
	c, _ := b.Column(task.Samples)
	data := make([]byte, 4*c.Size())
	for at := 0; at < len(c.F32); at += c.Size() {
		for i, v := range c.F32[at : at+c.Size()] {
			binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(v))
		}
		names = append(names, sha256.Sum256(data))
	}
	return names
}

// Take writes what is kept of recordings, one after another, and reports whether it is all
// that into has room for.
func (f *Features) Take(by Maker, names [][sha256.Size]byte, into []float32) bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.maker != by {
		return false
	}
	for _, name := range names {
		n := copy(into, f.rows[name])
		if n == 0 {
			return false
		}
		into = into[n:]
	}
	return len(into) == 0
}

// Keep takes over the features of recordings, all of one length. Those of another maker go.
func (f *Features) Keep(by Maker, names [][sha256.Size]byte, made []float32) {
	if f == nil || len(names) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rows == nil || f.maker != by {
		f.maker, f.rows, f.size = by, map[[sha256.Size]byte][]float32{}, 0
	}
	n := len(made) / len(names)
	for i, name := range names {
		if _, there := f.rows[name]; !there && f.size+n <= f.most {
			f.rows[name] = append([]float32(nil), made[i*n:(i+1)*n]...)
			f.size += n
		}
	}
}
