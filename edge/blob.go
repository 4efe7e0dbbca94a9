package edge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/starling-fl/starling/internal/wire"
)

const (
	fetchTries   = 6                // connections used for one blob, each going on where the last broke
	fetchPiece   = 1 << 18          // bytes between two progress events
	fetchStalled = 30 * time.Second // without a byte: the connection is given up
)

// errWrongBytes is a blob whose bytes are not those that its name promises.
var errWrongBytes = errors.New("bytes do not have the hash they are named by")

// fetcher gets blobs by hash. Safe for concurrent use.
type fetcher struct {
	client blobClient
	token  wire.Token
	dir    string        // cache; empty: none
	most   uint64        // largest blob, bytes
	down   *atomic.Int64 // counts bytes received

	mu     sync.Mutex
	memory map[[32]byte][]byte // by mu; small blobs to keep, memoryMost bytes in all
	held   int                 // by mu; bytes in memory
}

// Programs are asked for again in every round with their rank.
const (
	memoryMost = 32 << 20
	memoryEach = 4 << 20
)

// get returns a blob's bytes, checked against hash and size. keep puts them
// into the cache. progress may be nil.
func (f *fetcher) get(ctx context.Context, b wire.Blob, keep bool, progress func(done, total int64)) ([]byte, error) {
	if b.Size > f.most {
		return nil, fmt.Errorf("blob of %d bytes, limit %d", b.Size, f.most)
	}
	if data, ok := f.cached(b); ok {
		return data, nil
	}
	var body bytes.Buffer // grows with what arrives, not with what was announced
	wait := backoff{least: 200 * time.Millisecond, most: 5 * time.Second}
	for try := 1; ; try++ {
		before := body.Len()
		err := f.read(ctx, b, &body, progress)
		if err == nil {
			break
		}
		if permanent := new(statusError); errors.As(err, &permanent) || ctx.Err() != nil || (try >= fetchTries && body.Len() == before) {
			return nil, fmt.Errorf("blob %x: %w", b.SHA256[:6], err)
		}
		if body.Len() > before {
			try = 0 // it moves: a long download may break often
		}
		if err := sleep(ctx, wait.next(0)); err != nil {
			return nil, err
		}
	}
	data := body.Bytes()
	if sha256.Sum256(data) != b.SHA256 {
		return nil, fmt.Errorf("blob %x: %w", b.SHA256[:6], errWrongBytes)
	}
	if keep {
		f.store(b, data)
	}
	return data, nil
}

// answer is what a server said to a request for a blob.
type answer struct {
	status       int
	contentRange string
	body         io.ReadCloser
}

// The statuses that matter here.
const (
	statusOK      = 200
	statusPartial = 206
	statusTooMany = 429
)

// statusError is an answer that trying again does not change.
type statusError struct{ status string }

func (e *statusError) Error() string { return "coordinator answers " + e.status }

// read appends to body what is missing from it.
func (f *fetcher) read(ctx context.Context, b wire.Blob, body *bytes.Buffer, progress func(done, total int64)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(fetchStalled, func() { cancel(errors.New("no byte for " + fetchStalled.String())) })
	defer stalled.Stop()

	from := uint64(body.Len())
	resp, err := f.client.open(ctx, f.token.BlobURL(b.SHA256), from, fmt.Sprintf(`"%x"`, b.SHA256))
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	defer resp.body.Close()
	want := statusOK
	if from > 0 {
		want = statusPartial
	}
	switch {
	case resp.status == statusOK:
		body.Reset() // the whole of it, from the start
	case resp.status != want:
		if resp.status >= 500 || resp.status == statusTooMany {
			return fmt.Errorf("coordinator answers %d", resp.status)
		}
		return &statusError{strconv.Itoa(resp.status)}
	default:
		if got, expect := resp.contentRange, fmt.Sprintf("bytes %d-%d/%d", body.Len(), b.Size-1, b.Size); got != expect {
			return &statusError{fmt.Sprintf("range %q, %q expected", got, expect)}
		}
	}
	for {
		n, err := io.CopyN(body, resp.body, min(fetchPiece, int64(b.Size)-int64(body.Len())+1))
		f.down.Add(n)
		if n > 0 {
			stalled.Reset(fetchStalled)
		}
		if uint64(body.Len()) > b.Size {
			return &statusError{fmt.Sprintf("more than the %d bytes announced", b.Size)}
		}
		if progress != nil {
			progress(int64(body.Len()), int64(b.Size))
		}
		switch {
		case err == nil:
		case uint64(body.Len()) == b.Size && err == io.EOF:
			return nil
		case err == io.EOF:
			return io.ErrUnexpectedEOF
		default:
			return errors.Join(err, context.Cause(ctx))
		}
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

// store keeps a blob. The cache is a convenience: a full disk is no error.
func (f *fetcher) store(b wire.Blob, data []byte) {
	f.remember(b, data)
	if f.dir == "" || os.MkdirAll(f.dir, 0o700) != nil {
		return
	}
	tmp, err := os.CreateTemp(f.dir, ".blob-*")
	if err != nil {
		return
	}
	_, err = tmp.Write(data)
	if errors.Join(err, tmp.Close()) != nil || os.Rename(tmp.Name(), f.path(b)) != nil {
		os.Remove(tmp.Name())
	}
}
