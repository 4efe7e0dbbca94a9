package main

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/command/operator"
	"github.com/starling-fl/starling/model"
)

// smallHub serves one model of that name.
func smallHub(t *testing.T, name string, files map[string][]byte) *httptest.Server {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/models/"+name+"/revision/main" {
			var list []map[string]any
			for file, data := range files {
				list = append(list, map[string]any{"rfilename": file, "size": len(data),
					"blobId": fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(data), data)))})
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"sha": commit, "siblings": list})
			return
		}
		file, ok := strings.CutPrefix(r.URL.Path, "/"+name+"/resolve/"+commit+"/")
		if data, has := files[file]; ok && has {
			_, _ = w.Write(data)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func runBase(args ...string) (out, said string, code int) {
	var stdout, stderr bytes.Buffer
	code = run(context.Background(), append([]string{"base"}, args...), strings.NewReader(""), &stdout, &stderr)
	return stdout.String(), stderr.String(), code
}

// A base that was fetched is what --base takes by its name, without a network.
func TestBaseFetch(t *testing.T) {
	b, err := model.RandomBase(model.BERT(30, 8, 1, 2, 8), 1, []byte(`{"version":"1.0"}`))
	if err != nil {
		t.Fatal(err)
	}
	files, err := model.Release{Base: b}.Files()
	if err != nil {
		t.Fatal(err)
	}
	hub := smallHub(t, "org/small", files)
	t.Setenv("HF_ENDPOINT", hub.URL)
	t.Setenv("HF_TOKEN", "")
	t.Setenv("HF_HUB_OFFLINE", "")
	t.Setenv("HF_HUB_CACHE", t.TempDir())
	if _, err := bases.Load("org/small"); err == nil || !strings.Contains(err.Error(), "starling base fetch org/small") {
		t.Errorf("before it is fetched: %v", err)
	}
	out, said, code := runBase("fetch", "org/small", "--json")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, said)
	}
	var r operator.FetchReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Architecture != "bert" || r.Fetched.Fetched != r.Bytes || r.Bytes == 0 {
		t.Errorf("%q: %+v, %v", out, r, err)
	}
	if !strings.Contains(said, model.WeightsFile) {
		t.Errorf("no progress: %q", said)
	}
	hub.Close()
	got, err := bases.Load("org/small")
	if err != nil {
		t.Fatal(err)
	}
	want, err := b.SHA256()
	if sum, e := got.SHA256(); err != nil || e != nil || sum != want || r.SHA256 != fmt.Sprintf("%x", want) {
		t.Errorf("another base came: %v %v", err, e)
	}
	if _, said, code := runBase("fetch", "org/other"); code != 1 || !strings.Contains(said, "--base") {
		t.Errorf("without a hub: exit %d, %s", code, said)
	}
	if _, said, code := runBase("fetch"); code != 2 || !strings.Contains(said, "one model's name") {
		t.Errorf("without a name: exit %d, %s", code, said)
	}
}
