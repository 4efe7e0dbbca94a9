package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/andybalholm/brotli"

	"github.com/starling-fl/starling/edge"
)

// packed is a file as it is stored: these bytes are node's brotliCompressSync of "\x00asm".
var packed = []byte{0x8b, 0x01, 0x80, 0x00, 0x61, 0x73, 0x6d, 0x03}

// opens is what a client reads of an answer in an encoding.
func opens(t *testing.T, encoding string, body []byte) string {
	t.Helper()
	r := io.Reader(bytes.NewReader(body))
	switch encoding {
	case "br":
		r = brotli.NewReader(r)
	case "gzip":
		z, err := gzip.NewReader(r)
		if err != nil {
			t.Fatal(err)
		}
		r = z
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func ask(h http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestEncodings: brotli where the browser takes it, then gzip, then plain; what
// is named by its content is cached for good, the rest answered by a 304.
func TestEncodings(t *testing.T) {
	h := handler(fstest.MapFS{
		"index.html":               {Data: []byte("<title>join</title>")},
		"dashboard.html":           {Data: []byte("<title>dashboard</title>")},
		"assets/edge-ABCD.wasm.br": {Data: packed},
		".gitkeep":                 {},
		"built.json":               {Data: []byte(`{"protocol":"9-ab","sources":"0"}`)},
	}, "9-ab")
	const wasm = "/assets/edge-ABCD.wasm"
	for accept, encoding := range map[string]string{
		"gzip, deflate, br, zstd": "br",
		"gzip;q=1.0, br;q=0":      "gzip",
		"gzip":                    "gzip",
		"":                        "",
		"identity":                "",
	} {
		w := ask(h, "GET", wasm, "Accept-Encoding", accept)
		if w.Code != 200 || w.Header().Get("Content-Encoding") != encoding || opens(t, encoding, w.Body.Bytes()) != "\x00asm" ||
			w.Header().Get("Content-Type") != "application/wasm" || w.Header().Get("Vary") != "Accept-Encoding" ||
			!strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("Accept-Encoding %q: %d %q %v", accept, w.Code, w.Body, w.Header())
		}
	}
	tags := map[string]bool{}
	for _, accept := range []string{"br", "gzip", ""} {
		tags[ask(h, "GET", wasm, "Accept-Encoding", accept).Header().Get("ETag")] = true
	}
	if len(tags) != 3 {
		t.Errorf("encodings share tags: %v", tags)
	}
	page := ask(h, "GET", "/")
	tag := page.Header().Get("ETag")
	if page.Code != 200 || page.Header().Get("Cache-Control") != "no-cache" || tag == "" {
		t.Errorf("page: %d %v", page.Code, page.Header())
	}
	for _, held := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
		if w := ask(h, "GET", "/", "If-None-Match", held); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
			t.Errorf("If-None-Match %s: %d", held, w.Code)
		}
	}
	if w := ask(h, "GET", "/", "If-None-Match", `"other"`); w.Code != 200 {
		t.Errorf("another tag: %d", w.Code)
	}
	if w := ask(h, "GET", "/dashboard"); !strings.Contains(w.Body.String(), "dashboard") {
		t.Errorf("dashboard: %d %q", w.Code, w.Body)
	}
	if w := ask(h, "HEAD", "/"); w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Length") != "19" {
		t.Errorf("HEAD: %d %v", w.Code, w.Header())
	}
	if w := ask(h, "POST", "/"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
	for _, path := range []string{"/nothing", "/.gitkeep", "/built.json", "/assets/", "/../web.go", "/assets/edge-ABCD.wasm.br"} {
		if w := ask(h, "GET", path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// TestPolicy: no page of ours loads from elsewhere or is framed.
func TestPolicy(t *testing.T) {
	w := ask(Handler(edge.Protocol()), "GET", "/")
	csp := w.Header().Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "script-src 'self' 'wasm-unsafe-eval'", "connect-src 'self'"} {
		if !strings.Contains(csp, want) {
			t.Errorf("policy lacks %q: %s", want, csp)
		}
	}
	if strings.Contains(csp, "unsafe-inline") || strings.Contains(csp, "http") {
		t.Errorf("policy: %s", csp)
	}
	if w.Header().Get("Cross-Origin-Opener-Policy") != "same-origin" || w.Header().Get("Cross-Origin-Embedder-Policy") != "require-corp" {
		t.Error("the page is not isolated: its workers cannot share memory")
	}
	if w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Error("types may be guessed")
	}
}

// opened counts how often each file is read.
type opened struct {
	fstest.MapFS
	mu sync.Mutex
	of map[string]int
}

func (o *opened) Open(name string) (fs.File, error) {
	o.count(name)
	return o.MapFS.Open(name)
}

func (o *opened) ReadFile(name string) ([]byte, error) {
	o.count(name)
	return o.MapFS.ReadFile(name)
}

func (o *opened) count(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.of[name]++
}

// TestAssetsAreReadWhenAskedFor: a start reads none, and of many who ask at once one
// reads. What lies damaged costs nobody but who wants it.
func TestAssetsAreReadWhenAskedFor(t *testing.T) {
	const wasm, broken = "assets/edge-ABCD.wasm", "assets/worker-ABCD.js"
	dist := &opened{of: map[string]int{}, MapFS: fstest.MapFS{
		"index.html":   {Data: []byte("<title>join</title>")},
		wasm + ".br":   {Data: packed},
		broken + ".br": {Data: []byte("no brotli")},
		"built.json":   {Data: []byte(`{"protocol":"9-ab","sources":"0"}`)},
	}}
	h := handler(dist, "9-ab")
	for _, name := range []string{wasm + ".br", broken + ".br", "index.html"} {
		if n := dist.of[name]; n != 0 {
			t.Errorf("%s is read %d times before anybody asks", name, n)
		}
	}
	var all sync.WaitGroup
	for i := range 32 {
		encoding := []string{"br", "gzip", ""}[i%3]
		all.Go(func() {
			if w := ask(h, "GET", "/"+wasm, "Accept-Encoding", encoding); w.Code != 200 || opens(t, encoding, w.Body.Bytes()) != "\x00asm" {
				t.Errorf("%q: %d %q", encoding, w.Code, w.Body)
			}
		})
	}
	all.Wait()
	if n := dist.of[wasm+".br"]; n != 1 {
		t.Errorf("%s is read %d times", wasm, n)
	}
	for _, accept := range []string{"", "gzip"} {
		w := ask(h, "GET", "/"+broken, "Accept-Encoding", accept)
		if w.Code != 500 || w.Header().Get("ETag") != "" || w.Header().Get("Content-Encoding") != "" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("a damaged file, Accept-Encoding %q: %d %v", accept, w.Code, w.Header())
		}
	}
	if w := ask(h, "GET", "/"+broken, "Accept-Encoding", "br"); w.Code != 200 {
		t.Errorf("as it is stored: %d", w.Code)
	}
}

// TestMissing: a program built without its pages says so, and what to do.
func TestMissing(t *testing.T) {
	for _, path := range []string{"/", "/dashboard"} {
		w := ask(handler(fstest.MapFS{".gitkeep": {}}, "9-ab"), "GET", path)
		if w.Code != 200 || !strings.Contains(w.Body.String(), "make web") {
			t.Errorf("%s: %d %q", path, w.Code, w.Body)
		}
	}
}

// TestStale: a page whose client speaks another protocol than the program is not
// served, and the operator hears of it; its dashboard still is.
func TestStale(t *testing.T) {
	pages := func(built string) fstest.MapFS {
		f := fstest.MapFS{"index.html": {Data: []byte("join here")}, "dashboard.html": {Data: []byte("figures")}}
		if built != "" {
			f[record] = &fstest.MapFile{Data: []byte(built)}
		}
		return f
	}
	for _, x := range []struct{ built, fault string }{
		{`{"protocol":"9-ab"}`, ""},
		{`{"protocol":"9-cd"}`, "speaks protocol 9-cd, this program 9-ab"},
		{`{"protocol":"8-ab"}`, "speaks protocol 8-ab"},
		{``, "speaks protocol unknown"}, // by an earlier build
		{`{`, "built.json"},
	} {
		dist := pages(x.built)
		got := fault(dist, "9-ab")
		if (x.fault == "") != (got == "") || !strings.Contains(got, x.fault) {
			t.Errorf("built as %q: fault %q, want %q", x.built, got, x.fault)
		}
		h := handler(dist, "9-ab")
		page := ask(h, "GET", "/").Body.String()
		if stale := strings.Contains(page, "make web"); stale != (x.fault != "") || stale == strings.Contains(page, "join here") {
			t.Errorf("built as %q: the page is %q", x.built, page)
		}
		if w := ask(h, "GET", "/dashboard"); !strings.Contains(w.Body.String(), "figures") {
			t.Errorf("built as %q: dashboard %q", x.built, w.Body)
		}
	}
	if got := fault(fstest.MapFS{".gitkeep": {}}, "9-ab"); !strings.Contains(got, "without its pages") {
		t.Errorf("no pages: %q", got)
	}
}

// TestBuiltPagesAreCurrent: pages that were built before the protocol changed are
// to be built anew; nothing else tells who changes it.
func TestBuiltPagesAreCurrent(t *testing.T) {
	if built, err := buildOf(embedded()); err == nil && built == "" {
		t.Skip("no pages are built: make web")
	}
	if why := Fault(edge.Protocol()); why != "" {
		t.Error(why)
	}
}
