//go:build !js

package edge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/leaf/pipes"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// read is all of an opened blob.
func read(t *testing.T, b wire.Blob, from io.ReaderAt) []byte {
	t.Helper()
	data, err := io.ReadAll(io.NewSectionReader(from, 0, int64(b.Size)))
	ok(t, err)
	return data
}

// TestDownloadOutlivesItsProcess: what came before a device ended is not fetched
// again by the next, and nothing of the blob is held in memory at the end.
func TestDownloadOutlivesItsProcess(t *testing.T) {
	data := blobData(8 * memoryEach)
	ctx, cancel := context.WithCancel(t.Context())
	var ranges []string
	f := blobServer(t, func(w http.ResponseWriter, r *http.Request) {
		ranges = append(ranges, r.Header.Get("Range"))
		if len(ranges) == 1 {
			serve(&pipes.Cut{ResponseWriter: w, Left: len(data) / 2}, r, data)
			return
		}
		serve(w, r, data)
	})
	f.dir, f.most = t.TempDir(), 1<<30
	_, err := f.open(ctx, ref(data), func(done, _ int64) { // the device ends before it asks again
		if done >= int64(len(data)/4) {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || len(ranges) != 1 {
		t.Fatalf("%q: %v", ranges, err)
	}
	names, size := files(t, f.dir)
	if len(names) != 1 || size == 0 || names[0] == fmt.Sprintf("%x", ref(data).SHA256) {
		t.Fatalf("%d bytes are left in %q", size, names)
	}
	blob, err := f.open(t.Context(), ref(data), nil)
	ok(t, err)
	if len(ranges) != 2 || ranges[1] != fmt.Sprintf("bytes=%d-", size) {
		t.Errorf("%d bytes were there, asked for %q", size, ranges)
	}
	if _, held := blob.(*os.File); !held || !bytes.Equal(read(t, ref(data), blob), data) {
		t.Errorf("%T has other bytes, or holds them", blob)
	}
	if names, size := files(t, f.dir); len(names) != 1 || names[0] != fmt.Sprintf("%x", ref(data).SHA256) || size != int64(len(data)) {
		t.Errorf("the cache holds %q, %d bytes", names, size)
	}
	if _, err := f.open(t.Context(), ref(data), nil); err != nil || len(ranges) != 2 {
		t.Errorf("it is fetched again: %q, %v", ranges, err)
	}
}

// TestSpoiltDownload: what a power cut, or somebody, has made of the part that came is
// thrown away, once, and a server that lies leaves nothing.
func TestSpoiltDownload(t *testing.T) {
	data := blobData(2 * memoryEach)
	for name, left := range map[string][]byte{
		"zeros": make([]byte, 1000), "too much": append(blobData(len(data)), 1, 2, 3), "all but the last": data[:len(data)-1], "all": data,
	} {
		asked := 0
		f := blobServer(t, func(w http.ResponseWriter, r *http.Request) { asked++; serve(w, r, data) })
		f.dir, f.most = t.TempDir(), 1<<30
		part := filepath.Join(f.dir, partName+fmt.Sprintf("%x", ref(data).SHA256))
		ok(t, os.WriteFile(part, left, 0o600))
		blob, err := f.open(t.Context(), ref(data), nil)
		if err != nil || !bytes.Equal(read(t, ref(data), blob), data) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want := map[string]int{"zeros": 2, "too much": 0, "all but the last": 1, "all": 0}[name]; asked != want {
			t.Errorf("%s: asked %d times, want %d", name, asked, want)
		}
		if names, _ := files(t, f.dir); len(names) != 1 || strings.HasPrefix(names[0], partName) {
			t.Errorf("%s: the cache holds %q", name, names)
		}
	}
	f := blobServer(t, func(w http.ResponseWriter, r *http.Request) { serve(w, r, blobData(len(data) + 1)[1:]) })
	f.dir, f.most = t.TempDir(), 1<<30
	ok(t, os.WriteFile(filepath.Join(f.dir, partName+fmt.Sprintf("%x", ref(data).SHA256)), data[:9], 0o600))
	if _, err := f.open(t.Context(), ref(data), nil); !errors.Is(err, errWrongBytes) {
		t.Errorf("other bytes: %v", err)
	}
	if names, _ := files(t, f.dir); len(names) != 0 {
		t.Errorf("after other bytes the cache holds %q", names)
	}
}

// TestTwoFetchOneBlob: two devices with one cache do not write into one file.
func TestTwoFetchOneBlob(t *testing.T) {
	data := blobData(4 * memoryEach)
	dir := t.TempDir()
	half, goOn := make(chan struct{}), make(chan struct{})
	first := blobServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data[:len(data)/2])
		w.(http.Flusher).Flush()
		close(half)
		select {
		case <-goOn:
		case <-t.Context().Done():
			return
		}
		_, _ = w.Write(data[len(data)/2:])
	})
	second := blobServer(t, func(w http.ResponseWriter, r *http.Request) { serve(w, r, data) })
	first.dir, second.dir, first.most, second.most = dir, dir, 1<<30, 1<<30
	done := make(chan error, 1)
	go func() {
		_, err := first.open(t.Context(), ref(data), nil)
		done <- err
	}()
	<-half
	blob, err := second.open(t.Context(), ref(data), nil)
	close(goOn)
	if err != nil || !bytes.Equal(read(t, ref(data), blob), data) {
		t.Errorf("the second: %v", err)
	}
	ok(t, <-done)
	if names, _ := files(t, dir); len(names) != 1 {
		t.Errorf("the cache holds %q", names)
	}
}

// TestBaseCutInTheCache: a cached base that is shorter or other than it was is fetched
// again.
func TestBaseCutInTheCache(t *testing.T) {
	data := blobData(2 * memoryEach)
	asked := 0
	f := blobServer(t, func(w http.ResponseWriter, r *http.Request) { asked++; serve(w, r, data) })
	f.dir, f.most = t.TempDir(), 1<<30
	for i, spoil := range []func(path string){
		func(string) {}, // not there yet
		func(path string) { ok(t, os.Truncate(path, 100)) },
		func(path string) { ok(t, os.WriteFile(path, blobData(len(data) + 1)[1:], 0o600)) },
	} {
		spoil(f.path(ref(data)))
		blob, err := f.open(t.Context(), ref(data), nil)
		if err != nil || !bytes.Equal(read(t, ref(data), blob), data) || asked != i+1 {
			t.Errorf("%d: asked %d times, %v", i, asked, err)
		}
	}
}
