package coordinator

import (
	"context"
	"encoding/json"
	"net"
	"net/http"

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
			p.Enrolled, p.Connected, p.Cohort, p.Dropped, p.Answered = 0, 0, 0, 0, 0
			p.BytesUp, p.BytesDown, p.Reason = 0, 0, ""
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(p) // the reader is gone: nobody to tell
	})
	mux.HandleFunc("GET /v1/job", func(w http.ResponseWriter, r *http.Request) {
		fetchedOnce(r)
		c.serveAbout(w, r)
	})
	c.adminRoutes(mux)
	if c.cfg.Pages != nil {
		mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			fetchedOnce(r)
			c.cfg.Pages.ServeHTTP(w, r)
		})
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

type countedKey struct{}

// isCounted reports whether a request came over a listener that counts bytes.
func isCounted(ctx context.Context) bool { return ctx.Value(countedKey{}) != nil }
