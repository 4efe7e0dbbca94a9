package hub

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// tries is how often the hub is asked in a row without getting a byte further.
const tries = 6

// statusError is an answer that asking again does not change.
type statusError struct {
	text  string
	cause error // may be nil
}

func (e *statusError) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%v: %s", e.cause, e.text)
	}
	return e.text
}

func (e *statusError) Unwrap() error { return e.cause }

// newHash hashes a file of so many bytes as the hub names it.
func (e entry) newHash() hash.Hash {
	if len(e.hash) == 64 {
		return sha256.New()
	}
	h := sha1.New() // git's, which a name here is: nobody is kept out by it
	fmt.Fprintf(h, "blob %d\x00", e.size)
	return h
}

// file puts a file among the blobs of the cache, if it is not there. It returns the
// bytes that came.
func (c *Client) file(ctx context.Context, name, commit, repo string, e entry) (came int64, err error) {
	blobs, locks := filepath.Join(repo, "blobs"), filepath.Join(c.Cache, ".locks", filepath.Base(repo))
	for _, dir := range []string{blobs, locks} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return 0, err
		}
	}
	// huggingface_hub takes this lock, too.
	lock := flock.New(filepath.Join(locks, e.hash+".lock"))
	if ok, err := lock.TryLockContext(ctx, 100*time.Millisecond); err != nil || !ok {
		return 0, errors.Join(err, ctx.Err())
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	blob := filepath.Join(blobs, e.hash)
	if err := e.verify(blob); err == nil {
		return 0, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		if err := os.Remove(blob); err != nil { // it was spoilt
			return 0, err
		}
	}
	part := blob + ".starling.incomplete"
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return 0, err
	}
	d := &download{client: c, entry: e, file: f,
		from: c.Endpoint + "/" + name + "/resolve/" + commit + "/" + (&url.URL{Path: e.name}).EscapedPath()}
	err = d.run(ctx)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if errors.Is(err, ErrHash) {
		err = errors.Join(err, os.Remove(part))
	}
	if err == nil {
		err = os.Rename(part, blob)
	}
	return d.came, err
}

// verify reads a file and checks it against the entry.
func (e entry) verify(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := e.newHash()
	n, err := io.Copy(h, f)
	if err == nil && (n != e.size || hex.EncodeToString(h.Sum(nil)) != e.hash) {
		err = ErrHash
	}
	return err
}

// download is a file that comes.
type download struct {
	client *Client
	entry  entry
	from   string
	file   *os.File
	hash   hash.Hash
	size   int64 // bytes in the file
	came   int64 // bytes from the network
}

// run continues with what is in the file, and begins anew, once, where that was spoilt.
func (d *download) run(ctx context.Context) error {
	d.hash = d.entry.newHash()
	n, err := io.Copy(d.hash, io.LimitReader(d.file, d.entry.size+1))
	if err != nil {
		return err
	}
	inherited := n > 0
	if d.size = n; n > d.entry.size {
		if err := d.restart(); err != nil {
			return err
		}
		inherited = false
	}
	err = d.fetch(ctx)
	if errors.Is(err, ErrHash) && inherited {
		if err = d.restart(); err == nil {
			err = d.fetch(ctx)
		}
	}
	return err
}

func (d *download) restart() error {
	d.size, d.hash = 0, d.entry.newHash()
	return d.file.Truncate(0)
}

func (d *download) fetch(ctx context.Context) error {
	if d.size < d.entry.size {
		if err := d.client.retry(ctx, d.read); err != nil {
			return err
		}
	}
	if hex.EncodeToString(d.hash.Sum(nil)) != d.entry.hash {
		return ErrHash
	}
	return nil
}

// read appends what one connection brings.
func (d *download) read(ctx context.Context, alive func()) (moved bool, err error) {
	resp, err := d.client.ask(ctx, d.from, d.size)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK: // the whole of it
		if d.size > 0 {
			if err := d.restart(); err != nil {
				return false, err
			}
		}
	case http.StatusPartialContent:
		want := fmt.Sprintf("bytes %d-%d/%d", d.size, d.entry.size-1, d.entry.size)
		if got := resp.Header.Get("Content-Range"); d.size == 0 || got != want {
			return false, &statusError{text: fmt.Sprintf("the hub answers with the range %.80q, %q was asked for", got, want)}
		}
	default:
		return false, d.client.refused(resp, strings.TrimPrefix(d.from, d.client.Endpoint+"/"), "that was listed")
	}
	began := d.size
	buf := make([]byte, 1<<17)
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			alive()
		}
		if d.size+int64(n) > d.entry.size {
			return false, &statusError{text: fmt.Sprintf("the hub sends more than the %d bytes that it lists", d.entry.size)}
		}
		if _, err := d.file.WriteAt(buf[:n], d.size); err != nil {
			return false, &statusError{"cannot be written", err}
		}
		d.hash.Write(buf[:n])
		d.size, d.came = d.size+int64(n), d.came+int64(n)
		if n > 0 && d.client.Progress != nil {
			d.client.Progress(d.entry.name, d.size, d.entry.size)
		}
		switch {
		case err == io.EOF && d.size == d.entry.size:
			return true, nil
		case err == io.EOF:
			return d.size > began, io.ErrUnexpectedEOF
		case err != nil:
			return d.size > began, err
		}
	}
}

// ask opens a file from the given byte on.
func (c *Client) ask(ctx context.Context, at string, from int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	// Compressed, a file's bytes would not be those that its size and hash are of.
	req.Header.Set("Accept-Encoding", "identity")
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	return c.http.Do(req)
}

// retry does something that may fail for a while, until it neither moves nor succeeds
// for tries times in a row. A connection that is not alive for as long as stall is cut.
func (c *Client) retry(ctx context.Context, do func(ctx context.Context, alive func()) (moved bool, err error)) error {
	wait := c.pause
	for try := 1; ; try++ {
		one, cancel := context.WithCancelCause(ctx)
		stalled := time.AfterFunc(c.stall, func() { cancel(fmt.Errorf("no byte for %v", c.stall)) })
		moved, err := do(one, func() { stalled.Reset(c.stall) })
		stalled.Stop()
		if err != nil && ctx.Err() == nil && one.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(one), err)
		}
		cancel(nil)
		if err == nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if moved {
			try, wait = 0, c.pause
		}
		if final := new(statusError); errors.As(err, &final) || try >= tries {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
		wait = min(2*wait, 20*c.pause)
	}
}

// watched says of a reader that it moves.
type watched struct {
	io.Reader
	alive func()
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.alive()
	}
	return n, err
}
