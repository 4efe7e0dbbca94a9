package shelf

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/bucket"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// shelfOf is a shelf over a bucket that answers as f does.
func shelfOf(t *testing.T, f http.HandlerFunc) *Shelf {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		io.Copy(io.Discard, r.Body)
		f(w, r)
	}))
	t.Cleanup(s.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "somebody")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "something")
	b, err := bucket.Open("s3://models/fleet?region=eu-1&endpoint=" + s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return New(b, t.TempDir(), nil, nil)
}

// TestHostileSource: what the bucket has under a hash and is not its content is refused, and no file
// of that name is left; what this machine has is verified, and fetched again where it was changed.
func TestHostileSource(t *testing.T) {
	content := bytes.Repeat([]byte("weights "), 1000)
	sum := sha256.Sum256(content)
	what := source{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content))}
	var mu sync.Mutex
	answer, asked := bytes.ToUpper(content), 0 // both by mu
	s := shelfOf(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodGet {
			asked++
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
		w.Write(answer)
	})
	path := filepath.Join(s.dir, "blobs", what.SHA256)
	open := func() (b []byte, err error) {
		watchdog.Wait(t, "a source", func() {
			var f *os.File
			if f, err = s.open(t.Context(), what); err == nil {
				b, err = io.ReadAll(f)
				err = errors.Join(err, f.Close())
			}
		})
		return b, err
	}
	if _, err := open(); !errors.Is(err, bucket.ErrContent) {
		t.Errorf("other content: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file is left: %v", err)
	}
	mu.Lock()
	answer, asked = content, 0
	mu.Unlock()
	for range 2 {
		if b, err := open(); err != nil || !bytes.Equal(b, content) {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	}
	if err := os.WriteFile(path, answer[1:], 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := open(); err != nil || !bytes.Equal(b, content) {
		t.Errorf("after a change: %d bytes, %v", len(b), err)
	}
	mu.Lock()
	defer mu.Unlock()
	if asked != 2 {
		t.Errorf("asked %d times, want 2", asked)
	}
	for _, bad := range []source{{"aa", 1}, {what.SHA256, 0}, {what.SHA256, maxSource + 1}, {"../" + what.SHA256[3:], 1}} {
		if _, err := s.open(t.Context(), bad); err == nil {
			t.Errorf("%+v was opened", bad)
		}
	}
}
