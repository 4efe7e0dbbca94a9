//go:build !js

package edge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-fl/starling/internal/leaf/pipes"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// blobServer serves one blob by a handler and returns a fetcher for it.
func blobServer(t *testing.T, handler http.HandlerFunc) *fetcher {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	client := newHTTPClient(wire.Token{}, nil)
	t.Cleanup(client.CloseIdleConnections)
	return &fetcher{client: blobClient{client}, token: wire.Token{URL: s.URL}, most: 1 << 24, down: new(atomic.Int64)}
}

func ref(data []byte) wire.Blob {
	return wire.Blob{SHA256: sha256.Sum256(data), Size: uint64(len(data))}
}

func blobData(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i * i >> 3)
	}
	return data
}

// A download that breaks goes on where it broke.
func TestBlobResumes(t *testing.T) {
	data := blobData(300_000)
	var asked []string
	f := blobServer(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Range"))
		w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(data)))
		if len(asked) < 4 {
			w = &pipes.Cut{ResponseWriter: w, Left: 100_000}
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	})
	var last int64
	got, err := f.get(t.Context(), ref(data), false, func(done, total int64) {
		if done < last || total != int64(len(data)) {
			t.Errorf("progress %d of %d after %d", done, total, last)
		}
		last = done
	})
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes: %v", len(got), err)
	}
	if len(asked) < 3 || asked[0] != "" || !strings.HasPrefix(asked[1], "bytes=") {
		t.Errorf("ranges asked for: %q", asked)
	}
}

func TestBlobThatLies(t *testing.T) {
	data := blobData(1000)
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		text    string
	}{
		"other bytes": {func(w http.ResponseWriter, r *http.Request) { w.Write(blobData(1001)[1:]) }, "hash"},
		"more bytes":  {func(w http.ResponseWriter, r *http.Request) { w.Write(blobData(1001)) }, "more than"},
		"not found":   {http.NotFound, "404"},
		"range where none was asked for": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusPartialContent)
			w.Write(data)
		}, "206"},
	} {
		f := blobServer(t, test.handler)
		if got, err := f.get(t.Context(), ref(data), true, nil); err == nil || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if _, cached := f.cached(ref(data)); cached {
			t.Errorf("%s: kept", name)
		}
	}
}

func TestBlobAboveTheLimitIsNotAskedFor(t *testing.T) {
	f := blobServer(t, func(http.ResponseWriter, *http.Request) { t.Error("asked for") })
	if _, err := f.get(t.Context(), wire.Blob{Size: f.most + 1}, false, nil); err == nil {
		t.Error("accepted")
	}
}

// A limit holds for what an earlier job has left in the cache as well.
func TestBlobAboveTheLimitIsNotTakenFromTheCache(t *testing.T) {
	data := blobData(memoryEach + 1)
	f := blobServer(t, func(w http.ResponseWriter, r *http.Request) { w.Write(data) })
	f.dir = filepath.Join(t.TempDir(), "cache")
	if _, err := f.get(t.Context(), ref(data), true, nil); err != nil {
		t.Fatal(err)
	}
	f.most = uint64(len(data)) - 1
	if _, err := f.get(t.Context(), ref(data), true, nil); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("got it: %v", err)
	}
	if _, err := f.open(t.Context(), ref(data), nil); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("opened it: %v", err)
	}
}

func TestBlobCache(t *testing.T) {
	data := blobData(1000)
	var asked int
	f := blobServer(t, func(w http.ResponseWriter, r *http.Request) { asked++; w.Write(data) })
	f.dir = filepath.Join(t.TempDir(), "cache")
	get := func() {
		t.Helper()
		if got, err := f.get(t.Context(), ref(data), true, nil); err != nil || !bytes.Equal(got, data) {
			t.Fatal(err)
		}
	}
	get()
	get()
	f.memory = nil // another process
	get()
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	f.memory = nil
	ok(t, os.WriteFile(f.path(ref(data)), blobData(1001)[1:], 0o600)) // somebody wrote into the cache
	get()
	if asked != 2 {
		t.Errorf("file with other bytes: asked %d times", asked)
	}
}

func TestMemoryCacheIsBounded(t *testing.T) {
	f := &fetcher{}
	for i := range 20 {
		data := make([]byte, memoryEach)
		data[0] = byte(i)
		f.remember(ref(data), data)
	}
	if f.held > memoryMost || len(f.memory) != memoryMost/memoryEach {
		t.Errorf("%d bytes in %d blobs", f.held, len(f.memory))
	}
	f.remember(wire.Blob{SHA256: [32]byte{1}}, make([]byte, memoryEach+1))
	if _, kept := f.memory[[32]byte{1}]; kept {
		t.Error("large blob kept in memory")
	}
}

// roundTripper is a transport in memory.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// stalledBody yields nothing until its request is given up.
type stalledBody struct{ ctx context.Context }

func (b stalledBody) Read([]byte) (int, error) { <-b.ctx.Done(); return 0, b.ctx.Err() }
func (stalledBody) Close() error               { return nil }

// A server that sends nothing is given up and asked again, at most fetchTries
// times.
func TestBlobThatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		f := &fetcher{token: wire.Token{URL: "http://x"}, most: 10, down: new(atomic.Int64), client: blobClient{&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			tries++
			return &http.Response{StatusCode: 200, Body: stalledBody{r.Context()}, Request: r}, nil
		})}}}
		start := time.Now()
		_, err := f.get(t.Context(), wire.Blob{Size: 5}, false, nil)
		if err == nil || !strings.Contains(err.Error(), "no byte for") || tries != fetchTries {
			t.Errorf("%d tries: %v", tries, err)
		}
		if took := time.Since(start); took < fetchTries*fetchStalled || took > fetchTries*(fetchStalled+5*time.Second) {
			t.Errorf("took %v", took)
		}
	})
}

func TestBlobEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := &fetcher{token: wire.Token{URL: "http://x"}, most: 10, down: new(atomic.Int64), client: blobClient{&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			return nil, errors.New("no route")
		})}}}
		time.AfterFunc(100*time.Millisecond, cancel)
		if _, err := f.get(ctx, wire.Blob{Size: 5}, false, nil); err == nil {
			t.Error("no error")
		}
	})
}
