package edge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

const (
	fetchTries   = 6                // connections used for one blob, each going on where the last broke
	fetchPiece   = 1 << 18          // bytes between two progress events
	fetchStalled = 30 * time.Second // without a byte: the connection is given up
)

// errWrongBytes is a blob whose bytes do not have the hash that names it.
var errWrongBytes = errors.New("bytes do not have the hash they are named by")

// fetcher fetches blobs by their hash. It is safe for concurrent use.
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

// get returns a blob's bytes, checked against hash and size. keep puts them
// into the cache. progress may be nil.
func (f *fetcher) get(ctx context.Context, b wire.Blob, keep bool, progress func(done, total int64)) ([]byte, error) {
	if err := f.bound(b); err != nil {
		return nil, err
	}
	if data, ok := f.cached(b); ok {
		return data, nil
	}
	body, err := f.download(ctx, b, keep, progress)
	if err != nil {
		return nil, err
	}
	defer body.discard()
	data, err := body.bytes()
	if err != nil {
		return nil, fmt.Errorf("blob %x: %w", b.SHA256[:6], err)
	}
	if keep {
		f.keep(b, body, data)
	}
	return data, nil
}

// open is get for a blob that is read in place from the cache. Its bytes are held in memory only if
// there is no cache. They are checked against the hash once.
func (f *fetcher) open(ctx context.Context, b wire.Blob, progress func(done, total int64)) (io.ReaderAt, error) {
	if err := f.bound(b); err != nil {
		return nil, err
	}
	if f.dir != "" && b.Size > memoryEach {
		if file, ok := f.opened(b); ok {
			return file, nil
		}
		body, err := f.download(ctx, b, true, progress)
		if err != nil {
			return nil, err
		}
		defer body.discard()
		return f.settle(b, body)
	}
	data, err := f.get(ctx, b, true, progress)
	return bytes.NewReader(data), err
}

// bound checks a blob against the limit before it is looked for anywhere: the cache may
// be of a job whose limit was higher.
func (f *fetcher) bound(b wire.Blob) error {
	if b.Size > f.most {
		return fmt.Errorf("blob of %d bytes, limit %d", b.Size, f.most)
	}
	return nil
}

// download fetches a blob and checks it. It resumes what an earlier process left; if the result is
// damaged, it fetches the blob anew.
func (f *fetcher) download(ctx context.Context, b wire.Blob, keep bool, progress func(done, total int64)) (*body, error) {
	body := f.newBody(b, keep)
	inherited := body.size > 0
	err := f.fetch(ctx, b, body, progress)
	if inherited && errors.Is(err, errWrongBytes) {
		if err = body.restart(); err == nil {
			err = f.fetch(ctx, b, body, progress)
		}
	}
	if err != nil {
		body.leave(err)
		return nil, fmt.Errorf("blob %x: %w", b.SHA256[:6], err)
	}
	return body, nil
}

// fetch reads what is missing from body, over as many connections as that takes, and checks the
// whole.
func (f *fetcher) fetch(ctx context.Context, b wire.Blob, body *body, progress func(done, total int64)) error {
	wait := backoff{least: 200 * time.Millisecond, most: 5 * time.Second}
	for try := 1; body.size < b.Size || b.Size == 0; try++ {
		before := body.size
		err := f.read(ctx, b, body, progress)
		if err == nil {
			break
		}
		if permanent := new(statusError); errors.As(err, &permanent) || ctx.Err() != nil || (try >= fetchTries && body.size == before) {
			return err
		}
		if body.size > before {
			try = 0 // it moves: a long download may break often
		}
		if err := sleep(ctx, wait.next(0)); err != nil {
			return err
		}
	}
	if [32]byte(body.hash.Sum(nil)) != b.SHA256 {
		return errWrongBytes
	}
	return nil
}

// answer is a server's answer to a request for a blob.
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

// statusError is an HTTP status that a retry would not change.
type statusError struct{ status string }

func (e *statusError) Error() string { return "coordinator answers " + e.status }

// read appends to body what is missing from it.
func (f *fetcher) read(ctx context.Context, b wire.Blob, body *body, progress func(done, total int64)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(fetchStalled, func() { cancel(errors.New("no byte for " + fetchStalled.String())) })
	defer stalled.Stop()

	resp, err := f.client.open(ctx, f.token.BlobURL(b.SHA256), body.size, fmt.Sprintf(`"%x"`, b.SHA256))
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	defer resp.body.Close()
	want := statusOK
	if body.size > 0 {
		want = statusPartial
	}
	switch {
	case resp.status == statusOK:
		if err := body.restart(); err != nil { // the whole of it, from the start
			return err
		}
	case resp.status != want:
		if resp.status >= 500 || resp.status == statusTooMany {
			return fmt.Errorf("coordinator answers %d", resp.status)
		}
		return &statusError{strconv.Itoa(resp.status)}
	default:
		if got, expect := resp.contentRange, fmt.Sprintf("bytes %d-%d/%d", body.size, b.Size-1, b.Size); got != expect {
			return &statusError{fmt.Sprintf("range %q, %q expected", got, expect)}
		}
	}
	piece := make([]byte, min(fetchPiece, b.Size-body.size+1)) // one more, to see that there is no more
	told := body.size
	for {
		n, err := resp.body.Read(piece)
		f.down.Add(int64(n))
		if n > 0 {
			stalled.Reset(fetchStalled)
		}
		if body.size+uint64(n) > b.Size {
			return &statusError{fmt.Sprintf("more than the %d bytes announced", b.Size)}
		}
		if err := body.write(piece[:n]); err != nil {
			return err
		}
		if progress != nil && (body.size-told >= fetchPiece || err != nil) {
			told = body.size
			progress(int64(body.size), int64(b.Size))
		}
		switch {
		case err == nil:
		case body.size == b.Size && err == io.EOF:
			return nil
		case err == io.EOF:
			return io.ErrUnexpectedEOF
		default:
			return errors.Join(err, context.Cause(ctx))
		}
	}
}
