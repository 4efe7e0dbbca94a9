package coordinator

import (
	"context"
	"encoding/json"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"path"
	"strings"

	"github.com/starling-fl/starling/internal/wire"
)

// Handler serves devices, blobs, the operator's endpoints and the dashboard.
func (c *Coordinator) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+wire.Path, c.serveJoin)
	mux.Handle(wire.BlobPath, c.blobs)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if !c.mayAskFigures(r) {
			http.Error(w, "metrics are for requests from the coordinator's machine", http.StatusForbidden)
			return
		}
		c.metrics.ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, r *http.Request) {
		p := c.Status()
		if !c.mayAskFigures(r) {
			p.Connected, p.Cohort, p.Dropped, p.Answered = 0, 0, 0, 0
			p.BytesUp, p.BytesDown, p.Reason = 0, 0, ""
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(p) // the reader is gone: nobody to tell
	})
	if c.cfg.Static != nil {
		mux.Handle("/", static(c.cfg.Static))
	}
	return mux
}

// mayAskFigures reports whether a request may see counts of devices: it comes
// from this machine, or the operator has opened them.
func (c *Coordinator) mayAskFigures(r *http.Request) bool {
	if c.cfg.OpenFigures {
		return true
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// policy lets the dashboard load only what comes with it, and run WebAssembly.
const policy = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'"

// static serves the dashboard's files. A file that exists only compressed, with
// .gz behind its name, is sent with that encoding.
func static(files fs.FS) http.Handler {
	plain := http.FileServerFS(files)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
		if strings.HasSuffix(name, ".wasm") {
			h.Set("Content-Type", "application/wasm")
		}
		if _, err := fs.Stat(files, name); err != nil && name != "" {
			if b, err := fs.ReadFile(files, name+".gz"); err == nil {
				if h.Get("Content-Type") == "" {
					if t := mime.TypeByExtension(path.Ext(name)); t != "" {
						h.Set("Content-Type", t)
					}
				}
				h.Set("Content-Encoding", "gzip")
				_, _ = w.Write(b)
				return
			}
		}
		plain.ServeHTTP(w, r)
	})
}

type countedKey struct{}

// isCounted reports whether a request came over a listener that counts bytes.
func isCounted(ctx context.Context) bool { return ctx.Value(countedKey{}) != nil }
