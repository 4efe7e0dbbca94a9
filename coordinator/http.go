package coordinator

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/starling-fl/starling/internal/wire"
)

// Handler serves devices: sessions, blobs, what the job is, and the join page.
// Nothing of it counts devices or is for the operator, wherever a request seems to
// come from: behind a proxy all come from this machine. See AdminHandler.
func (c *Coordinator) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+wire.Path, c.serveJoin)
	mux.Handle(wire.BlobPath, c.blobs)
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, r *http.Request) {
		p := c.Status()
		p.Enrolled, p.Connected, p.Cohort, p.Dropped, p.Answered = 0, 0, 0, 0, 0
		p.BytesUp, p.BytesDown, p.Reason = 0, 0, ""
		serveStatus(w, p)
	})
	c.commonRoutes(mux)
	return unframed(mux)
}

// AdminHandler serves the operator, for a listener of its own: the dashboard, its
// endpoints, and the figures, all of which ask for the admin token.
func (c *Coordinator) AdminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", c.admin(c.metrics.ServeHTTP))
	mux.HandleFunc("GET /v1/status", c.admin(func(w http.ResponseWriter, _ *http.Request) { serveStatus(w, c.Status()) }))
	c.adminRoutes(mux)
	c.commonRoutes(mux)
	return unframed(mux)
}

func (c *Coordinator) commonRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/job", func(w http.ResponseWriter, r *http.Request) {
		fetchedOnce(r)
		c.serveAbout(w, r)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n"))
	})
	if c.cfg.Pages != nil {
		mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			fetchedOnce(r)
			c.cfg.Pages.ServeHTTP(w, r)
		})
	}
}

func serveStatus(w http.ResponseWriter, p Progress) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(p) // the reader is gone: nobody to tell
}

// unframed lets no other page show an answer of ours inside itself.
func unframed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "frame-ancestors 'none'") // a page sets more
		h.Set("X-Frame-Options", "DENY")
		h.Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

// named refuses requests to a name that is not ours: a page of a stranger's, whose
// name was made to mean this machine, would be of one origin with us (DNS
// rebinding). Addresses and localhost cannot be made to mean something else. A
// request that a browser sends for a page of another origin is refused as well.
func (c *Coordinator) named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !c.isOurs(r.Host) {
			http.Error(w, "the coordinator is not called that; see serve --url", http.StatusMisdirectedRequest)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" {
			if u, err := url.Parse(origin); err != nil || !strings.EqualFold(u.Host, r.Host) {
				http.Error(w, "not for pages of another origin", http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// isOurs reports whether a Host header is an address, localhost, or the name that
// tokens give.
func (c *Coordinator) isOurs(host string) bool {
	u := url.URL{Host: host}
	name := strings.ToLower(u.Hostname())
	if name == "localhost" || net.ParseIP(name) != nil {
		return true
	}
	_, known := c.names.Load(name)
	return known
}

// answersTo notes a name by which devices reach us.
func (c *Coordinator) answersTo(baseURL string) {
	if u, err := url.Parse(baseURL); err == nil && u.Hostname() != "" {
		c.names.Store(strings.ToLower(u.Hostname()), nil)
	}
}

type countedKey struct{}

// isCounted reports whether a request came over a listener that counts bytes.
func isCounted(ctx context.Context) bool { return ctx.Value(countedKey{}) != nil }
