package edge

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/starling-fl/starling/internal/wire"
)

// Programs are asked for again in every round with their rank.
const (
	memoryMost = 32 << 20
	memoryEach = 4 << 20
)

// Downloads under way lie in the cache under this name; what a killed process
// has left of one is removed after a day.
const (
	partName  = ".blob-*"
	partStale = 24 * time.Hour
)

// body is where a blob's bytes go as they come, hashed on their way: a file in the
// cache, so that the download of a large base costs no memory, or memory where
// there is no cache to keep it in.
type body struct {
	most uint64 // bytes announced
	size uint64 // bytes so far
	hash hash.Hash
	file *os.File // nil: memory
	data []byte
}

// newBody makes an empty body. A cache that cannot be written is no error.
func (f *fetcher) newBody(b wire.Blob, keep bool) *body {
	p := &body{most: b.Size, hash: sha256.New()}
	if keep && f.dir != "" && b.Size > memoryEach && os.MkdirAll(f.dir, 0o700) == nil {
		f.sweep()
		if file, err := os.CreateTemp(f.dir, partName); err == nil {
			p.file = file
		}
	}
	return p
}

// sweep removes downloads that nobody continues.
func (f *fetcher) sweep() {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), strings.TrimSuffix(partName, "*")) && time.Since(info.ModTime()) > partStale {
			os.Remove(filepath.Join(f.dir, e.Name()))
		}
	}
}

// write appends. A file that takes no more, as on a full disk, is given up for
// memory.
func (p *body) write(b []byte) error {
	if p.file != nil {
		if _, err := p.file.WriteAt(b, int64(p.size)); err != nil {
			if p.data, err = p.bytes(); err != nil {
				return err
			}
			p.discard()
		}
	}
	if p.file == nil {
		// Grows with what has come, not with what was announced, and not beyond it.
		if need := len(p.data) + len(b); need > cap(p.data) {
			grown := make([]byte, len(p.data), max(uint64(need), min(p.most, 2*uint64(need))))
			copy(grown, p.data)
			p.data = grown
		}
		p.data = append(p.data, b...)
	}
	p.hash.Write(b)
	p.size += uint64(len(b))
	return nil
}

// restart forgets what has come.
func (p *body) restart() error {
	p.size, p.data = 0, p.data[:0]
	p.hash.Reset()
	if p.file != nil {
		return p.file.Truncate(0)
	}
	return nil
}

// bytes yields what has come, from a file in a slice of just that size.
func (p *body) bytes() ([]byte, error) {
	if p.file == nil {
		return p.data, nil
	}
	data := make([]byte, p.size)
	_, err := p.file.ReadAt(data, 0)
	if err == io.EOF && p.size == 0 {
		err = nil
	}
	return data, err
}

// discard removes the file where there is one.
func (p *body) discard() {
	if p.file != nil {
		_ = p.file.Close() // what it holds is thrown away
		os.Remove(p.file.Name())
		p.file = nil
	}
}

// keep puts a checked blob into the cache: by a rename, so that nobody sees a part
// of it. The cache is a convenience: a full disk is no error.
func (f *fetcher) keep(b wire.Blob, p *body, data []byte) {
	f.remember(b, data)
	if p.file != nil {
		if p.file.Close() != nil || os.Rename(p.file.Name(), f.path(b)) != nil {
			os.Remove(p.file.Name())
		}
		p.file = nil
		return
	}
	if f.dir == "" || os.MkdirAll(f.dir, 0o700) != nil {
		return
	}
	tmp, err := os.CreateTemp(f.dir, partName)
	if err != nil {
		return
	}
	_, err = tmp.Write(data)
	if errors.Join(err, tmp.Close()) != nil || os.Rename(tmp.Name(), f.path(b)) != nil {
		os.Remove(tmp.Name())
	}
}

func (f *fetcher) path(b wire.Blob) string { return filepath.Join(f.dir, fmt.Sprintf("%x", b.SHA256)) }

// onDisk tells whether a blob can be had again without the network. What lies
// in memory as well would not be given back by forgetting it.
func (f *fetcher) onDisk(b wire.Blob) bool {
	if f.dir == "" || b.Size <= memoryEach {
		return false
	}
	info, err := os.Stat(f.path(b))
	return err == nil && uint64(info.Size()) == b.Size
}

// cached reads a blob from the cache; a file with other bytes is removed.
func (f *fetcher) cached(b wire.Blob) ([]byte, bool) {
	f.mu.Lock()
	data, ok := f.memory[b.SHA256]
	f.mu.Unlock()
	if ok && uint64(len(data)) == b.Size {
		return data, true
	}
	if f.dir == "" {
		return nil, false
	}
	info, err := os.Stat(f.path(b))
	if err != nil || uint64(info.Size()) != b.Size {
		return nil, false
	}
	data, err = os.ReadFile(f.path(b))
	if err != nil {
		return nil, false
	}
	if sha256.Sum256(data) != b.SHA256 {
		os.Remove(f.path(b))
		return nil, false
	}
	return data, true
}

// remember keeps a small blob in memory; where there is no room, others go.
func (f *fetcher) remember(b wire.Blob, data []byte) {
	if len(data) > memoryEach {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.memory == nil {
		f.memory = make(map[[32]byte][]byte)
	}
	for sum, old := range f.memory {
		if f.held+len(data) <= memoryMost {
			break
		}
		delete(f.memory, sum)
		f.held -= len(old)
	}
	if _, there := f.memory[b.SHA256]; !there {
		f.held += len(data)
	}
	f.memory[b.SHA256] = data
}
