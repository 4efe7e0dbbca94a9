package edge

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// disk reports whether there are files to cache blobs in. In a browser there are none: what deals
// with them is not built into a page.
const disk = runtime.GOOS != "js"

// Programs are asked for again in every round with their rank.
const (
	memoryMost = 32 << 20
	memoryEach = 4 << 20
)

// Downloads under way lie in the cache under this and the blob's hash. What a killed
// process has left of one is resumed, or removed after a week.
const (
	partName  = ".blob-"
	partStale = 7 * 24 * time.Hour
)

// body receives the bytes of a blob as they arrive, and hashes them: in a file of the cache, so
// that the download of a large base costs no memory, or in memory if there is no cache.
type body struct {
	most   uint64 // bytes announced
	size   uint64 // bytes so far
	hash   hash.Hash
	file   *os.File // nil: memory
	unlock func()   // of the file
	data   []byte
}

// newBody makes an empty body. A cache that cannot be written is no error.
func (f *fetcher) newBody(b wire.Blob, keep bool) *body {
	p := &body{most: b.Size, hash: sha256.New()}
	if disk && keep && f.dir != "" && b.Size > memoryEach && os.MkdirAll(f.dir, 0o700) == nil {
		f.sweep()
		p.take(filepath.Join(f.dir, partName+fmt.Sprintf("%x", b.SHA256)))
	}
	return p
}

// take continues with the file of that name, or begins it. While another process, or
// another device of this one, does so, a file of this body's own serves.
func (p *body) take(path string) {
	unlock, alone := lockPart(path)
	var err error
	if alone {
		p.unlock = unlock
		p.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	} else {
		p.file, err = os.CreateTemp(filepath.Dir(path), partName+"*")
	}
	if err != nil {
		p.file = nil
		p.release()
		return
	}
	n, err := io.Copy(p.hash, io.LimitReader(p.file, int64(min(p.most, math.MaxInt64))))
	if p.size = uint64(n); err != nil {
		err = p.restart()
	}
	if err != nil {
		p.discard()
	}
}

// release lets others go on with the file.
func (p *body) release() {
	if p.unlock != nil {
		p.unlock()
		p.unlock = nil
	}
}

// leave keeps what has come for the next process, unless there is nothing to go on
// from: err is why it ends here.
func (p *body) leave(err error) {
	lied := new(statusError)
	if !disk || p.file == nil || p.unlock == nil || p.size == 0 || errors.Is(err, errWrongBytes) || errors.As(err, &lied) {
		p.discard()
		return
	}
	_ = p.file.Close() // what it has lost is missed by its hash
	p.file = nil
	p.release()
}

// sweep removes downloads that nobody continues.
func (f *fetcher) sweep() {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), partName) && time.Since(info.ModTime()) > partStale {
			os.Remove(filepath.Join(f.dir, e.Name()))
		}
	}
}

// write appends. If the file cannot grow, for example on a full disk, it continues in memory.
func (p *body) write(b []byte) error {
	if disk && p.file != nil {
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

// restart discards what has arrived.
func (p *body) restart() error {
	p.size, p.data = 0, p.data[:0]
	p.hash.Reset()
	if disk && p.file != nil {
		return p.file.Truncate(0)
	}
	return nil
}

// bytes yields what has come, from a file in a slice of just that size.
func (p *body) bytes() ([]byte, error) {
	if !disk || p.file == nil {
		return p.data, nil
	}
	data := make([]byte, p.size)
	_, err := p.file.ReadAt(data, 0)
	if err == io.EOF && p.size == 0 {
		err = nil
	}
	return data, err
}

// discard removes the file, if there is one.
func (p *body) discard() {
	if disk && p.file != nil {
		_ = p.file.Close() // what it holds is thrown away
		os.Remove(p.file.Name())
		p.file = nil
	}
	p.release()
}

// settle gives a checked file in the cache its name, so that nobody sees a part of it,
// and returns what reads it.
func (f *fetcher) settle(b wire.Blob, p *body) (io.ReaderAt, error) {
	if !disk || p.file == nil {
		return bytes.NewReader(p.data), nil
	}
	name := p.file.Name()
	err := p.file.Close()
	p.file = nil
	defer p.release()
	if err == nil && os.Rename(name, f.path(b)) == nil {
		name = f.path(b)
	}
	if err != nil {
		return nil, err
	}
	return os.Open(name)
}

// keep puts a checked blob into the cache: by a rename, so that nobody sees a part
// of it. The cache is a convenience: a full disk is no error.
func (f *fetcher) keep(b wire.Blob, p *body, data []byte) {
	f.remember(b, data)
	if disk && p.file != nil {
		if p.file.Close() != nil || os.Rename(p.file.Name(), f.path(b)) != nil {
			os.Remove(p.file.Name())
		}
		p.file = nil
		return
	}
	if !disk || f.dir == "" || os.MkdirAll(f.dir, 0o700) != nil {
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

// onDisk reports whether a blob can be had again without the network. What lies
// in memory as well would not be given back by forgetting it.
func (f *fetcher) onDisk(b wire.Blob) bool {
	if !disk || f.dir == "" || b.Size <= memoryEach {
		return false
	}
	info, err := os.Stat(f.path(b))
	return err == nil && uint64(info.Size()) == b.Size
}

// opened opens a blob in the cache, once it has read it all; a file with other bytes is
// removed.
func (f *fetcher) opened(b wire.Blob) (io.ReaderAt, bool) {
	if !disk {
		return nil, false
	}
	file, err := os.Open(f.path(b))
	if err != nil {
		return nil, false
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(file, int64(min(b.Size, math.MaxInt64-1)+1)))
	if err == nil && uint64(n) == b.Size && [32]byte(h.Sum(nil)) == b.SHA256 {
		return file, true
	}
	_ = file.Close() // it was only read
	if err == nil {
		os.Remove(f.path(b))
	}
	return nil, false
}

// cached reads a blob from the cache; a file with other bytes is removed.
func (f *fetcher) cached(b wire.Blob) ([]byte, bool) {
	f.mu.Lock()
	data, ok := f.memory[b.SHA256]
	f.mu.Unlock()
	if ok && uint64(len(data)) == b.Size {
		return data, true
	}
	if !disk || f.dir == "" {
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
