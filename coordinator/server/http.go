package server

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/internal/protocol/card"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// Handler serves devices: sessions, blobs, the description of the job, and the join page. Nothing
// in it counts devices or is for the operator, even if a request seems to come from this machine,
// as all do behind a proxy. See AdminHandler.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+wire.Path, s.serveSession)
	mux.HandleFunc(wire.BlobPath, s.serveBlob)
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		serveStatus(w, s.c.PublicStatus())
	})
	s.commonRoutes(mux)
	return unframed(mux)
}

func (s *Server) commonRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/job", func(w http.ResponseWriter, r *http.Request) {
		meant(r, monitor.PartPage)
		s.serveAbout(w, r)
	})
	mux.HandleFunc("GET /v1/job/announced", func(w http.ResponseWriter, r *http.Request) {
		meant(r, monitor.PartPage)
		w.Header().Set("Content-Type", "application/cbor")
		w.Header().Set("Cache-Control", "no-cache")
		_, _ = w.Write(s.c.Announced()) // the reader is gone: nobody to tell
	})
	mux.HandleFunc("GET /v1/job/base", func(w http.ResponseWriter, r *http.Request) {
		meant(r, monitor.PartPage)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-cache")
		_ = json.NewEncoder(w).Encode(s.c.BaseConfig()) // the reader is gone: nobody to tell
	})
	mux.HandleFunc("GET /v1/job/programs", s.servePrograms)
	mux.HandleFunc("GET "+card.Path, s.serveCard)
	if len(s.cfg.Sample) > 0 {
		mux.HandleFunc("GET /v1/sample", func(w http.ResponseWriter, r *http.Request) {
			meant(r, monitor.PartPage)
			w.Header().Set("Cache-Control", "no-cache")
			attach(w, "application/octet-stream", s.cfg.SampleName)
			_, _ = w.Write(s.cfg.Sample) // the reader is gone: nobody to tell
		})
	}
	mux.HandleFunc("GET /healthz", s.serveHealth)
	mux.HandleFunc("GET /readyz", s.serveReadiness)
	if s.cfg.Pages != nil {
		mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			meant(r, monitor.PartPage)
			s.cfg.Pages.ServeHTTP(w, r)
		})
	}
}

// servePrograms names the programs of the greatest rank, for a device that tries what a
// round takes before it joins. They are compiled once, whoever asks first.
func (s *Server) servePrograms(w http.ResponseWriter, r *http.Request) {
	meant(r, monitor.PartPage)
	programs, err := s.c.Programs()
	if err != nil {
		http.Error(w, "the job's programs cannot be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	_ = json.NewEncoder(w).Encode(programs) // the reader is gone: nobody to tell
}

// serveStatus writes a monitor.Status, or its public part.
func serveStatus(w http.ResponseWriter, status any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(status) // the reader is gone: nobody to tell
}

// serveAbout answers /v1/job: the same for everybody, computed once but for whether its statement is verified.
func (s *Server) serveAbout(w http.ResponseWriter, r *http.Request) {
	a, err := s.about()
	if err != nil {
		s.logOf(r).Error("the job's guarantees cannot be stated", "error", err)
		http.Error(w, "the job's guarantees cannot be stated", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	b := a.plain
	if s.says.verified(r.Context(), a.job, a.asks) {
		b = a.verified
	}
	_, _ = w.Write(b) // the reader is gone: nobody to tell
}

// serveCard answers with the job's signed privacy card.
func (s *Server) serveCard(w http.ResponseWriter, r *http.Request) {
	meant(r, monitor.PartPage)
	b, err := s.card()
	switch {
	case errors.Is(err, coordinator.ErrNoCard):
		http.Error(w, "the job is not private: it promises nothing, and has no privacy card", http.StatusNotFound)
	case err != nil:
		s.logOf(r).Error("the job's privacy card cannot be made", "error", err)
		http.Error(w, "the job's privacy card cannot be made", http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-cache")
		_, _ = w.Write(b) // the reader is gone: nobody to tell
	}
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
// request that a browser sends for a page of another origin is refused as well, but see
// shared.
func (s *desk) named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.isOurs(r.Host) {
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

// reachable guards what devices ask for: pages of our own may, those of the origins that
// the operator allows, and anyone who is no page.
func (s *Server) reachable(next http.Handler) http.Handler {
	return s.shared(next, s.fronted(s.named(next)))
}

// fronted takes what a page of ours sends through a proxy as sent to the name that the
// page has: a proxy may ask under the listener's own address instead, or leave the port
// out, and then the page would be of another origin.
func (s *desk) fronted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, err := url.Parse(r.Header.Get("Origin")); err == nil && u.Host != "" && s.isOurs(r.Host) {
			if _, known := s.fronts.Load(strings.ToLower(u.Host)); known {
				r = r.Clone(r.Context())
				r.Host = u.Host
			}
		}
		next.ServeHTTP(w, r)
	})
}

// machine is this machine's own name, "" where it has none: a container's, by which others on its
// network ask. It counts without a dot alone: no name of the Internet is so short, so that no site
// can have a browser take its address for it; who answers for names on this very network can, and
// is asked for a token like everybody.
var machine = sync.OnceValue(func() string {
	name, _ := os.Hostname() // anyone who knows no name is asked by an address
	if strings.Contains(name, ".") {
		return ""
	}
	return strings.ToLower(name)
})

// isOurs reports whether a Host header is an address, localhost, this machine's own name, or one
// that tokens give.
func (s *desk) isOurs(host string) bool {
	u := url.URL{Host: host}
	name := strings.ToLower(u.Hostname())
	if name == "localhost" || net.ParseIP(name) != nil || name != "" && name == machine() {
		return true
	}
	_, known := s.names.Load(name)
	return known
}

// isLocal reports whether an address means the machine of anyone who reads it.
func isLocal(baseURL string) bool {
	u, err := url.Parse(baseURL)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// answersTo notes a name by which devices reach us.
func (s *desk) answersTo(baseURL string) {
	if u, err := url.Parse(baseURL); err == nil && u.Hostname() != "" {
		s.names.Store(strings.ToLower(u.Hostname()), nil)
		s.fronts.Store(strings.ToLower(u.Host), nil)
	}
}
