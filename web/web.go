// Package web holds the coordinator's pages: "join from this browser" and the
// operator's dashboard. They are written in TypeScript (src/, edge/), built with
// the browser's edge (cmd/starling-web) into dist/ by make web, and
// embedded here. What is built is not in git: a binary built without it serves
// a page that says so.
//
//	mux.Handle("/", web.Handler(wire.Protocol()))
//
// The page trusts its coordinator for the code it runs, as any web page must:
// docs/PROTOCOL.md says what that leaves unprotected.
package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"

	"github.com/starling-fl/starling/internal/protocol/contentcoding"
)

//go:generate go run ./typescript

//go:embed all:dist
var built embed.FS

//go:embed missing.html
var missing []byte

//go:embed stale.html
var stale []byte

// Handler serves the pages that are built into this program, which speaks protocol.
// In place of a join page that speaks another it serves one that says so.
func Handler(protocol string) http.Handler { return handler(embedded(), protocol) }

// policy lets a page load only what comes with it, run WebAssembly, and be
// framed by nobody. Styles of elements are set by scripts through the CSSOM,
// which it does not concern.
const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; " +
	"img-src 'self' data:; connect-src 'self'; manifest-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// asset is a file in the encodings it is served in. It is stored in one, brotli unless it
// is small, and the others are made of that when somebody asks: a start costs no asset's
// expansion, and the program carries none twice.
type asset struct {
	kind    string                            // Content-Type
	forever bool                              // named by its content
	served  map[string]func() ([]byte, error) // by Content-Encoding; "" is the plain file
	tag     func() (string, error)            // hash of what is stored
}

// newAsset makes an asset of the file that read gives, of that name.
func newAsset(name string, read func() ([]byte, error)) *asset {
	read = sync.OnceValues(read)
	plain, packed := strings.CutSuffix(name, suffix)
	a := &asset{kind: contentType(plain), forever: strings.HasPrefix(plain, "assets/"), served: map[string]func() ([]byte, error){"": read}}
	if packed {
		a.served["br"] = read
		a.served[""] = sync.OnceValues(func() ([]byte, error) { return expanded(read) })
		a.served["gzip"] = sync.OnceValues(func() ([]byte, error) {
			b, err := read()
			if err != nil {
				return nil, err
			}
			return contentcoding.Gzip(brotli.NewReader(bytes.NewReader(b)))
		})
	}
	a.tag = sync.OnceValues(func() (string, error) {
		b, err := read()
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%x", sha256.Sum256(b))[:32], nil
	})
	return a
}

// suffix is how a file that is stored as brotli is named.
const suffix = ".br"

// encodings are what an asset may be served in, in the order they are preferred in:
// browsers name brotli over TLS and on their own machine, gzip everywhere.
var encodings = []string{"br", "gzip"}

// handler serves the files of dist. Each is there as brotli or, a small one, plain;
// what is in assets/ is named by its content and cached for good, everything
// else is asked for again and answered by a 304.
func handler(dist fs.FS, protocol string) http.Handler {
	assets := map[string]*asset{}
	err := fs.WalkDir(dist, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") || name == record {
			return err
		}
		assets[strings.TrimSuffix(name, suffix)] = newAsset(name, func() ([]byte, error) { return fs.ReadFile(dist, name) })
		return nil
	})
	if err != nil {
		panic(fmt.Sprintf("web: the embedded pages: %v", err)) // they are part of the program
	}
	if assets["index.html"] == nil {
		a := plainPage(missing)
		assets = map[string]*asset{"index.html": a, "dashboard.html": a}
	} else if fault(dist, protocol) != "" {
		assets["index.html"] = plainPage(stale)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(assets, w, r) })
}

// plainPage is a page of one file.
func plainPage(html []byte) *asset {
	return newAsset("index.html", func() ([]byte, error) { return html, nil })
}

func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".wasm":
		return "application/wasm"
	case ".bin": // the client, see web/edge/src/filter.js
		return "application/octet-stream"
	case ".svg":
		return "image/svg+xml"
	case ".txt", ".csv", ".jsonl":
		return "text/plain; charset=utf-8"
	}
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}

// expanded is the plain file of one that lies as brotli.
func expanded(read func() ([]byte, error)) ([]byte, error) {
	b, err := read()
	if err != nil {
		return nil, err
	}
	if b, err = io.ReadAll(brotli.NewReader(bytes.NewReader(b))); err != nil {
		return nil, fmt.Errorf("an asset is stored damaged: %w", err)
	}
	return b, nil
}

func serve(assets map[string]*asset, w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	// With both of these a page's workers may share memory.
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Embedder-Policy", "require-corp")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	if name == "" {
		name = "index.html"
	}
	a := assets[name]
	if a == nil && assets[name+".html"] != nil {
		a = assets[name+".html"] // /dashboard
	}
	if a == nil {
		h.Set("Cache-Control", "no-store")
		http.NotFound(w, r)
		return
	}
	encoding, read := a.choose(r.Header.Get("Accept-Encoding"))
	hash, err := a.tag()
	if err != nil {
		damaged(w)
		return
	}
	h.Set("Content-Type", a.kind)
	h.Set("Vary", "Accept-Encoding")
	if a.forever {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		h.Set("Cache-Control", "no-cache")
	}
	tag := `"` + hash + strings.TrimSuffix("-"+encoding, "-") + `"`
	h.Set("ETag", tag)
	if matches(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body, err := read()
	if err != nil {
		damaged(w)
		return
	}
	if encoding != "" {
		h.Set("Content-Encoding", encoding)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // the reader is gone: nobody to tell
	}
}

// damaged answers for a file that cannot be read; no cache may keep the answer.
func damaged(w http.ResponseWriter) {
	for _, h := range []string{"ETag", "Vary"} {
		w.Header().Del(h)
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, "this file is damaged", http.StatusInternalServerError)
}

// choose picks the first encoding that the client takes, and what reads it.
func (a *asset) choose(accepted string) (encoding string, read func() ([]byte, error)) {
	for _, encoding := range encodings {
		if read := a.served[encoding]; read != nil && contentcoding.Accepted(accepted, encoding) {
			return encoding, read
		}
	}
	return "", a.served[""]
}

// matches compares weakly, as RFC 9110 asks for If-None-Match.
func matches(header, tag string) bool {
	for part := range strings.SplitSeq(header, ",") {
		if part = strings.TrimPrefix(strings.TrimSpace(part), "W/"); part == tag || part == "*" {
			return true
		}
	}
	return false
}
