package participation

import (
	"bytes"
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/model"
)

// A base comes from the mirror that is named, without the token, which is for another hub;
// the second time from the cache, without a network; and an embedded one from nowhere.
func TestBaseFrom(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	b, err := model.RandomBase(model.BERT(30, 8, 1, 2, 8), 1, []byte(`{"version":"1.0"}`))
	if err != nil {
		t.Fatal(err)
	}
	files, err := model.Release{Base: b}.Files()
	if err != nil {
		t.Fatal(err)
	}
	var asked, told atomic.Int64
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("Authorization") != "" {
			told.Add(1)
		}
		if r.URL.Path == "/api/models/org/small/revision/"+commit {
			var list []map[string]any
			for name, data := range files {
				list = append(list, map[string]any{"rfilename": name, "size": len(data), "blobId": fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(data), data)))})
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"sha": commit, "siblings": list})
			return
		}
		_, _ = w.Write(files[strings.TrimPrefix(r.URL.Path, "/org/small/resolve/"+commit+"/")])
	}))
	defer mirror.Close()
	t.Setenv("HF_HUB_CACHE", t.TempDir())
	t.Setenv("HF_TOKEN", "secret")
	t.Setenv("HF_ENDPOINT", "https://hub.example")
	fetch, err := baseFrom(mirror.URL, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want, err := b.SHA256()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fetch(t.Context(), edge.Published{Name: "org/small", Revision: commit, MaxBytes: 1}); err == nil || !strings.Contains(err.Error(), "larger than 1 bytes") {
		t.Errorf("more than may come: %v", err)
	}
	for _, again := range []bool{false, true} {
		asked.Store(0)
		got, err := fetch(t.Context(), edge.Published{Name: "org/small", Revision: commit, MaxBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		sum, err := got.SHA256()
		if err != nil || sum != want || !bytes.Equal(got.Tokenizer, b.Tokenizer) || (asked.Load() == 0) != again {
			t.Errorf("again %v: %x after %d requests, %v; want %x", again, sum, asked.Load(), err, want)
		}
	}
	asked.Store(0)
	if _, err := fetch(t.Context(), edge.Published{Name: "starling/default"}); err != nil || asked.Load() != 0 {
		t.Errorf("an embedded base: %v after %d requests", err, asked.Load())
	}
	if told.Load() != 0 {
		t.Errorf("the mirror was told the token %d times", told.Load())
	}
	if fetch, err := baseFrom(FromCoordinator, io.Discard); fetch != nil || err != nil {
		t.Errorf("the coordinator: %v", err)
	}
	for _, from := range []string{"", "elsewhere", "ftp://x", "https://u:p@x"} {
		if _, err := baseFrom(from, io.Discard); err == nil {
			t.Errorf("--base-from %q", from)
		}
	}
}
