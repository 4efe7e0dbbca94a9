//go:build !js

package edge

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/leaf/pipes"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// serve answers a request for a blob, with Range and ETag.
func serve(w http.ResponseWriter, r *http.Request, data []byte) {
	w.Header().Set("ETag", `"`+filepath.Base(r.URL.Path)+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

func files(t *testing.T, dir string) (names []string, size int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	ok(t, err)
	for _, e := range entries {
		info, err := e.Info()
		ok(t, err)
		names = append(names, e.Name())
		size += info.Size()
	}
	return names, size
}

// TestLargeBlobGoesToTheCacheAsItComes: a broken download is on disk, under
// another name than the whole one's and with a lock, and continues from there; in all, one slice of
// the blob's size is allocated.
func TestLargeBlobGoesToTheCacheAsItComes(t *testing.T) {
	data := blobData(8 * memoryEach)
	var ranges []string
	var dir string
	f := blobServer(t, func(w http.ResponseWriter, r *http.Request) {
		ranges = append(ranges, r.Header.Get("Range"))
		if len(ranges) == 1 {
			w = &pipes.Cut{ResponseWriter: w, Left: len(data) / 2}
		} else if names, size := files(t, dir); len(names) != 2 || names[1] != names[0]+".lock" || names[0] == filepath.Base(r.URL.Path) || size == 0 || size > int64(len(data)/2) {
			t.Errorf("after a break the cache holds %q, %d bytes", names, size)
		}
		serve(w, r, data)
	})
	dir = filepath.Join(t.TempDir(), "cache")
	f.dir, f.most = dir, 1<<30
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := f.get(t.Context(), ref(data), true, nil)
	runtime.ReadMemStats(&after)
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes: %v", len(got), err)
	}
	if len(ranges) != 2 || ranges[0] != "" || !strings.HasPrefix(ranges[1], "bytes=") || ranges[1] == "bytes=0-" {
		t.Errorf("ranges asked for: %q", ranges)
	}
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > uint64(len(data))*3/2 {
		t.Errorf("%d bytes allocated for a blob of %d", bytes, len(data))
	}
	if names, size := files(t, dir); len(names) != 1 || size != int64(len(data)) {
		t.Errorf("the cache holds %q, %d bytes", names, size)
	}
	if !f.onDisk(ref(data)) {
		t.Error("not in the cache")
	}
}

// TestLargeBlobThatLies leaves nothing behind.
func TestLargeBlobThatLies(t *testing.T) {
	data := blobData(2 * memoryEach)
	for name, handler := range map[string]http.HandlerFunc{
		"other bytes": func(w http.ResponseWriter, r *http.Request) { serve(w, r, data[:len(data)-1]) },
		"not found":   http.NotFound,
	} {
		f := blobServer(t, handler)
		f.dir, f.most = t.TempDir(), 1<<30
		b := ref(data)
		b.Size--
		if _, err := f.get(t.Context(), b, true, nil); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if names, _ := files(t, f.dir); len(names) != 0 {
			t.Errorf("%s: the cache holds %q", name, names)
		}
	}
}

// TestFullDisk: a cache that takes no more is no error.
func TestFullDisk(t *testing.T) {
	data := blobData(3 * memoryEach)
	path := filepath.Join(t.TempDir(), "part")
	p := (&fetcher{}).newBody(wire.Blob{Size: uint64(len(data))}, true)
	ok(t, os.WriteFile(path, nil, 0o600))
	var err error
	p.file, err = os.OpenFile(path, os.O_RDWR, 0)
	ok(t, err)
	ok(t, p.write(data[:memoryEach]))
	p.file.Close()
	p.file, err = os.Open(path) // from here on no write succeeds
	ok(t, err)
	ok(t, p.write(data[memoryEach:]))
	got, err := p.bytes()
	if err != nil || !bytes.Equal(got, data) || p.size != uint64(len(data)) || [32]byte(p.hash.Sum(nil)) != ref(data).SHA256 {
		t.Errorf("%d of %d bytes, %v", len(got), len(data), err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
}

// TestBodyGrowsWithWhatComes: an announced size allocates nothing, and a body in
// memory does not grow beyond it.
func TestBodyGrowsWithWhatComes(t *testing.T) {
	p := (&fetcher{}).newBody(wire.Blob{Size: 1 << 50}, false)
	ok(t, p.write(make([]byte, 1000)))
	if cap(p.data) > 4096 {
		t.Errorf("%d bytes held after 1000", cap(p.data))
	}
	p = (&fetcher{}).newBody(wire.Blob{Size: 1500}, false)
	ok(t, p.write(make([]byte, 1000)))
	ok(t, p.write(make([]byte, 500)))
	if cap(p.data) > 1536 {
		t.Errorf("%d bytes held for 1500", cap(p.data))
	}
}

// TestLeftDownloads: what a killed process left is removed, what is young stays.
func TestLeftDownloads(t *testing.T) {
	data := blobData(2 * memoryEach)
	f := blobServer(t, func(w http.ResponseWriter, r *http.Request) { serve(w, r, data) })
	f.dir, f.most = t.TempDir(), 1<<30
	old, young := filepath.Join(f.dir, ".blob-1"), filepath.Join(f.dir, ".blob-2")
	ok(t, os.WriteFile(old, nil, 0o600))
	ok(t, os.WriteFile(young, nil, 0o600))
	ok(t, os.Chtimes(old, time.Time{}, time.Now().Add(-2*partStale)))
	_, err := f.get(t.Context(), ref(data), true, nil)
	ok(t, err)
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Error("the old one is left")
	}
	_, err = os.Stat(young)
	ok(t, err)
}

// TestIdleBlobConnectionCloses: between rounds a device holds its session's
// connection alone.
func TestIdleBlobConnectionCloses(t *testing.T) {
	t.Parallel()
	data := blobData(1000)
	var open atomic.Int32
	closed := make(chan struct{}, 8)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r, data) }))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
			closed <- struct{}{}
		}
	}
	s.Start()
	defer s.Close()
	client, done := newBlobClient(wire.Token{}, nil)
	defer done()
	f := &fetcher{client: client, token: wire.Token{URL: s.URL}, most: 1 << 24, down: new(atomic.Int64)}
	for range 2 { // one connection for both
		_, err := f.get(t.Context(), ref(data), false, nil)
		ok(t, err)
	}
	select {
	case <-closed:
	case <-time.After(30 * time.Second):
		t.Fatal("the connection is still open")
	}
	if n := open.Load(); n != 0 {
		t.Errorf("%d connections open", n)
	}
}
