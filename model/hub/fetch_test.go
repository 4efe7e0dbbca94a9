package hub

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/leaf/pipes"
	"github.com/starling-fl/starling/model"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// fakeHub speaks a hub's API over one model: small files from itself, large ones by a
// redirection to another server, as a hub's storage is.
type fakeHub struct {
	t       *testing.T
	files   map[string][]byte
	large   map[string]bool // stored as LFS
	listed  func(name string, sibling map[string]any)
	answer  func(w http.ResponseWriter, r *http.Request, data []byte) bool // before a file is served; true: it has answered
	status  int                                                            // of the list; 0: 200
	address string
	storage string

	mu    sync.Mutex
	asked []string // by mu: file and range
	token []string // by mu: of storage's requests
}

func newHub(t *testing.T) (*fakeHub, *Client) {
	h := &fakeHub{t: t, files: map[string][]byte{}, large: map[string]bool{model.WeightsFile: true}}
	b, err := model.RandomBase(model.BERT(30, 8, 1, 2, 8), 1, []byte(`{"version":"1.0"}`))
	if err != nil {
		t.Fatal(err)
	}
	if h.files, err = (model.Release{Base: b}).Files(); err != nil {
		t.Fatal(err)
	}
	h.files["README.md"], h.files["pytorch_model.bin"] = []byte("not asked for"), []byte("code")
	front := httptest.NewServer(http.HandlerFunc(h.serve))
	t.Cleanup(front.Close)
	storage := httptest.NewServer(http.HandlerFunc(h.store))
	t.Cleanup(storage.Close)
	h.address = front.URL
	h.storage = strings.Replace(storage.URL, "127.0.0.1", "localhost", 1) // another host
	c := &Client{Endpoint: front.URL, Token: "secret", Cache: t.TempDir(), stall: 20 * time.Second, pause: time.Millisecond}
	return h, c
}

func (h *fakeHub) serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer secret" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if rest, ok := strings.CutPrefix(r.URL.Path, "/api/models/org/name/revision/"); ok && (rest == "main" || rest == commit) {
		if h.status != 0 {
			w.WriteHeader(h.status)
			return
		}
		var list []map[string]any
		for name, data := range h.files {
			s := map[string]any{"rfilename": name, "size": len(data), "blobId": gitHash(data)}
			if h.large[name] {
				s["lfs"] = map[string]any{"size": len(data), "sha256": fmt.Sprintf("%x", sha256.Sum256(data)), "pointerSize": 130}
			}
			if h.listed != nil {
				h.listed(name, s)
			}
			list = append(list, s)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"sha": commit, "siblings": list})
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, "/org/name/resolve/"+commit+"/")
	if _, has := h.files[name]; !ok || !has {
		http.NotFound(w, r)
		return
	}
	if h.large[name] {
		http.Redirect(w, r, h.storage+"/"+name, http.StatusFound)
		return
	}
	h.give(w, r, name)
}

func (h *fakeHub) store(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.token = append(h.token, r.Header.Get("Authorization"))
	h.mu.Unlock()
	h.give(w, r, strings.TrimPrefix(r.URL.Path, "/"))
}

func (h *fakeHub) give(w http.ResponseWriter, r *http.Request, name string) {
	h.mu.Lock()
	h.asked = append(h.asked, name+" "+r.Header.Get("Range"))
	h.mu.Unlock()
	if h.answer != nil && h.answer(w, r, h.files[name]) {
		return
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(h.files[name]))
}

func gitHash(data []byte) string {
	return fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(data), data)))
}

// parts lists what is left of downloads.
func (h *fakeHub) parts(c *Client) (names []string) {
	found, err := filepath.Glob(filepath.Join(folder(c.Cache, "org/name"), "blobs", "*incomplete*"))
	if err != nil {
		h.t.Fatal(err)
	}
	return found
}

// What was fetched is found by its name and is the base, in huggingface_hub's layout;
// fetched again nothing comes, and what was spoilt in between comes anew.
func TestFetch(t *testing.T) {
	h, c := newHub(t)
	progress := map[string]int64{}
	c.Progress = func(file string, done, total int64) {
		if done <= progress[file] || done > total || total != int64(len(h.files[file])) {
			t.Errorf("%s: %d of %d after %d", file, done, total, progress[file])
		}
		progress[file] = done
	}
	got, err := c.Fetch(t.Context(), "org/name", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HF_HUB_CACHE", c.Cache)
	dir, err := Find("org/name")
	if err != nil || dir != got.Folder || got.Revision != commit || got.Files != 4 || got.Fetched != got.Bytes {
		t.Fatalf("found in %q, fetched %+v: %v", dir, got, err)
	}
	b, err := model.LoadBaseDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	want, err := model.RandomBase(b.Config, 1, b.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	x, errX := b.SHA256()
	if y, errY := want.SHA256(); errX != nil || errY != nil || x != y {
		t.Errorf("another base came: %v %v", errX, errY)
	}
	if to, err := os.Readlink(filepath.Join(dir, model.WeightsFile)); err != nil || !strings.HasPrefix(filepath.ToSlash(to), "../../blobs/") {
		t.Errorf("the snapshot's weights are %q, %v", to, err)
	}
	for _, token := range h.token {
		if token != "" {
			t.Errorf("the storage was sent %q", token)
		}
	}
	before := len(h.asked)
	if before != 4 {
		t.Errorf("asked for %q", h.asked)
	}
	if again, err := c.Fetch(t.Context(), "org/name", "main"); err != nil || again.Fetched != 0 || len(h.asked) != before {
		t.Errorf("fetched again %+v: %v", again, err)
	}
	c.Progress = nil
	if err := os.Truncate(filepath.Join(dir, model.WeightsFile), 100); err != nil {
		t.Fatal(err)
	}
	if again, err := c.Fetch(t.Context(), "org/name", ""); err != nil || again.Fetched != int64(len(h.files[model.WeightsFile])) {
		t.Errorf("a spoilt file: %+v: %v", again, err)
	}
	if left := h.parts(c); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// A download that breaks goes on where it broke, and where its process ended.
func TestFetchGoesOn(t *testing.T) {
	h, c := newHub(t)
	size := len(h.files[model.WeightsFile])
	ctx, cancel := context.WithCancel(t.Context())
	cuts := 0
	h.answer = func(w http.ResponseWriter, r *http.Request, data []byte) bool {
		if len(data) != size || cuts == 2 {
			return false
		}
		cuts++
		http.ServeContent(&pipes.Cut{ResponseWriter: w, Left: size / 3}, r, "", time.Time{}, bytes.NewReader(data))
		return true
	}
	c.Progress = func(file string, done, _ int64) {
		if cuts == 2 && file == model.WeightsFile && done > int64(size/2) {
			cancel()
		}
	}
	if _, err := c.Fetch(ctx, "org/name", ""); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	if left := h.parts(c); len(left) != 1 {
		t.Fatalf("left: %q", left)
	}
	other := &Client{Endpoint: c.Endpoint, Token: c.Token, Cache: c.Cache, stall: c.stall, pause: c.pause} // another process
	got, err := other.Fetch(t.Context(), "org/name", "")
	if err != nil {
		t.Fatal(err)
	}
	if got.Fetched >= int64(size/2+1) {
		t.Errorf("%d of %d bytes came again", got.Fetched, size)
	}
	last := h.asked[len(h.asked)-1]
	if !strings.HasPrefix(last, model.WeightsFile+" bytes=") {
		t.Errorf("asked for %q", h.asked)
	}
	// What a power cut has made of the rest is found out, and fetched anew.
	h2, c2 := newHub(t)
	blobs := filepath.Join(folder(c2.Cache, "org/name"), "blobs")
	if err := os.MkdirAll(blobs, 0o755); err != nil {
		t.Fatal(err)
	}
	part := filepath.Join(blobs, fmt.Sprintf("%x.starling.incomplete", sha256.Sum256(h2.files[model.WeightsFile])))
	if err := os.WriteFile(part, make([]byte, 500), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c2.Fetch(t.Context(), "org/name", ""); err != nil {
		t.Errorf("after zeros: %v", err)
	}
}

// Sharded weights come by their index, each file once.
func TestFetchShards(t *testing.T) {
	h, c := newHub(t)
	whole, err := model.ParseSafeTensors(h.files[model.WeightsFile])
	if err != nil {
		t.Fatal(err)
	}
	index := map[string]string{}
	for i := range 2 {
		name := fmt.Sprintf("model-%05d-of-00002.safetensors", i+1)
		part := &model.SafeTensors{}
		for j, x := range whole.Tensors {
			if j%2 == i {
				part.Tensors = append(part.Tensors, x)
				index[x.Name] = name
			}
		}
		if h.files[name], err = part.Encode(); err != nil {
			t.Fatal(err)
		}
		h.large[name] = true
	}
	delete(h.files, model.WeightsFile)
	h.files[model.IndexFile], _ = json.Marshal(map[string]any{"weight_map": index})
	got, err := c.Fetch(t.Context(), "org/name", commit)
	if err != nil || got.Files != 6 {
		t.Fatalf("%+v: %v", got, err)
	}
	if _, err := model.LoadBaseDir(got.Folder); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(folder(c.Cache, "org/name"), "refs")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a commit became a ref: %v", err)
	}
	for _, evil := range []string{"../../../evil.safetensors", "/etc/passwd", "config.json", "no-such.safetensors"} {
		index["one more"] = evil
		h.files[model.IndexFile], _ = json.Marshal(map[string]any{"weight_map": index})
		if _, err := c.Fetch(t.Context(), "org/name", ""); err == nil || !strings.Contains(err.Error(), evil) {
			t.Errorf("a shard %q: %v", evil, err)
		}
	}
}

// What a hub, or anyone who stands for it, must not do to this machine.
func TestHostileHub(t *testing.T) {
	weights := func(s map[string]any) map[string]any { return s["lfs"].(map[string]any) }
	for name, test := range map[string]struct {
		hub  func(h *fakeHub)
		says string
	}{
		"other bytes": {func(h *fakeHub) {
			h.answer = func(w http.ResponseWriter, r *http.Request, data []byte) bool {
				data = bytes.Clone(data)
				data[len(data)/2] ^= 1
				http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
				return true
			}
		}, "hash"},
		"more than it lists": {func(h *fakeHub) {
			h.answer = func(w http.ResponseWriter, r *http.Request, data []byte) bool {
				w.WriteHeader(http.StatusOK)
				for range 100 {
					_, _ = w.Write(data)
				}
				return true
			}
		}, "more than the"},
		"a wrong range": {func(h *fakeHub) {
			h.answer = func(w http.ResponseWriter, r *http.Request, data []byte) bool {
				w.Header().Set("Content-Range", "bytes 5-6/7")
				w.WriteHeader(http.StatusPartialContent)
				return true
			}
		}, "range"},
		"a size that fills the disk": {func(h *fakeHub) {
			h.listed = func(name string, s map[string]any) {
				if h.large[name] {
					weights(s)["size"] = int64(1) << 62
				}
			}
		}, "larger than"},
		"a large config": {func(h *fakeHub) {
			h.listed = func(name string, s map[string]any) {
				if name == model.ConfigFile {
					s["size"] = maxSmall + 1
				}
			}
		}, "limit"},
		"a negative size": {func(h *fakeHub) {
			h.listed = func(name string, s map[string]any) {
				if name == model.ConfigFile {
					s["size"] = -1
				}
			}
		}, "has no config.json"},
		"a hash that leads elsewhere": {func(h *fakeHub) {
			h.listed = func(name string, s map[string]any) { s["blobId"] = "../../../../evil" }
		}, "has no config.json"},
		"weights by git's hash": {func(h *fakeHub) {
			h.listed = func(_ string, s map[string]any) { s["lfs"] = map[string]any{"sha256": gitHash(nil)} }
		},
			"has no config.json"},
		"pickled weights alone": {func(h *fakeHub) { delete(h.files, model.WeightsFile) }, "save_pretrained"},
		"no such model":         {func(h *fakeHub) { h.status = http.StatusNotFound }, "has no model"},
		"a gated model":         {func(h *fakeHub) { h.status = http.StatusForbidden }, "HF_TOKEN"},
		"a list without an end": {func(h *fakeHub) { h.files[strings.Repeat("x", maxListing)] = nil }, "longer than"},
	} {
		h, c := newHub(t)
		test.hub(h)
		if got, err := c.Fetch(t.Context(), "org/name", ""); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if left, _ := filepath.Glob(filepath.Join(folder(c.Cache, "org/name"), "refs", "*")); len(left) != 0 {
			t.Errorf("%s: it is in the cache: %q", name, left)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(c.Cache), "*evil*")); len(left) != 0 {
			t.Errorf("%s: %q", name, left)
		}
	}
}

// Names that are none are asked of nobody.
func TestFetchRefuses(t *testing.T) {
	h, c := newHub(t)
	for _, name := range []string{"", "a/b/c", "../x", "a/..", "a--b/c", "a b", "/a"} {
		if _, err := c.Fetch(t.Context(), name, ""); err == nil || !strings.Contains(err.Error(), "name") {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, revision := range []string{"../../x", "-x", "a b", "a/../../b"} {
		if _, err := c.Fetch(t.Context(), "org/name", revision); err == nil || !strings.Contains(err.Error(), "revision") {
			t.Errorf("%q: %v", revision, err)
		}
	}
	if len(h.asked) != 0 {
		t.Errorf("asked for %q", h.asked)
	}
	for _, endpoint := range []string{"ftp://x", "x", "https://a:b@x", "http://hub.example"} {
		if _, err := (&Client{Endpoint: endpoint, Token: "secret", Cache: c.Cache}).Fetch(t.Context(), "org/name", ""); err == nil ||
			!strings.Contains(err.Error(), "HF_ENDPOINT") {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}

// Without a hub, a user learns what to do.
func TestFetchOffline(t *testing.T) {
	_, c := newHub(t)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for what, set := range map[string]func(){"nobody listens": func() { c.Endpoint = closed.URL }, "offline": func() { c.Offline = true }} {
		set()
		_, err := c.Fetch(t.Context(), "org/name", "")
		if !errors.Is(err, ErrOffline) || !strings.Contains(err.Error(), "models--org--name") || !strings.Contains(err.Error(), "--base") {
			t.Errorf("%s: %v", what, err)
		}
		for _, line := range strings.Split(err.Error(), "\n") {
			if len(line) > 120 && !strings.Contains(line, c.Cache) && !strings.Contains(line, c.Endpoint) {
				t.Errorf("%s: a line of %d characters: %s", what, len(line), line)
			}
		}
	}
}

// huggingface_hub's variables are honoured.
func TestFromEnv(t *testing.T) {
	t.Setenv("HF_ENDPOINT", "https://mirror.example/")
	t.Setenv("HF_HUB_OFFLINE", "1")
	t.Setenv("HF_TOKEN", "x")
	t.Setenv("HF_HUB_CACHE", "/cache")
	c, err := FromEnv()
	if err != nil || c.Endpoint != "https://mirror.example" || !c.Offline || c.Token != "x" || c.Cache != "/cache" {
		t.Errorf("%+v, %v", c, err)
	}
	t.Setenv("HF_ENDPOINT", "")
	if c, err := FromEnv(); err != nil || c.Endpoint != Endpoint {
		t.Errorf("%+v, %v", c, err)
	}
}

// https is not left for http on the way to a file.
func TestRedirectToPlainHTTP(t *testing.T) {
	from, _ := http.NewRequest("GET", "https://hub.example/x", nil)
	to, _ := http.NewRequest("GET", "http://hub.example/x", nil)
	if checkRedirect(to, []*http.Request{from}) == nil || checkRedirect(from, []*http.Request{from}) != nil || checkRedirect(to, []*http.Request{to}) != nil {
		t.Error("a redirection from https to http is followed, or another is not")
	}
	if checkRedirect(to, make([]*http.Request, 10)) == nil {
		t.Error("redirections never end")
	}
}

// The token is for the hub: neither another host nor another port of the hub's machine,
// where somebody else may listen, is told it.
func TestRedirectWithoutTheToken(t *testing.T) {
	h, c := newHub(t)
	for _, host := range []string{"localhost", "127.0.0.1"} {
		h.storage = strings.NewReplacer("localhost", host, "127.0.0.1", host).Replace(h.storage)
		c.Cache, h.token = t.TempDir(), nil
		if _, err := c.Fetch(t.Context(), "org/name", ""); err != nil {
			t.Fatal(err)
		}
		if len(h.token) != 1 || h.token[0] != "" {
			t.Errorf("the storage at %s was asked with %q", h.storage, h.token)
		}
	}
}

// No more weights come than anyone who fetches has room for.
func TestMostWeights(t *testing.T) {
	h, c := newHub(t)
	c.MaxBytes = int64(len(h.files[model.WeightsFile])) - 1
	if _, err := c.Fetch(t.Context(), "org/name", ""); err == nil || !strings.Contains(err.Error(), "larger than") || len(h.token) != 0 {
		t.Errorf("%v, and %d requests of the weights", err, len(h.token))
	}
	c.MaxBytes++
	if _, err := c.Fetch(t.Context(), "org/name", ""); err != nil {
		t.Error(err)
	}
}

// A model without tokenizer.json comes with what one is made of; of one that has it, the
// older files are not asked for.
func TestFetchOlderTokenizer(t *testing.T) {
	h, c := newHub(t)
	h.files[model.VocabFile] = []byte("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n")
	h.files[model.TokenizerConfigFile] = []byte(`{"do_lower_case": false}`)
	for _, there := range []bool{true, false} {
		c.Cache = t.TempDir()
		if !there {
			delete(h.files, model.TokenizerFile)
		}
		f, err := c.Fetch(t.Context(), "org/name", "main")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(f.Folder, model.VocabFile)); (err == nil) == there {
			t.Errorf("%s where tokenizer.json is there: %v; %v", model.VocabFile, there, err)
		}
		if _, err := os.Stat(filepath.Join(f.Folder, model.TokenizerConfigFile)); err != nil { // which has the template of conversations
			t.Error(err)
		}
	}
}
