package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/starling-fl/starling/coordinator"
)

// serveHealth answers whether the process works, for who restarts it where it does not.
// Nobody needs a token for it, and it says nothing else.
func (s *Server) serveHealth(w http.ResponseWriter, r *http.Request) {
	// A page that may not read it, isolated or not, learns that somebody is here: that its
	// origin is the wrong one, then, and not the network.
	w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
	verdict(w, s.c.Alive(r.Context()) == nil, "ok", "the engine does not answer")
}

// serveReadiness answers whether rounds can be made, for who sends devices here. Why
// not is the operator's: see serveChecks and the log.
func (s *Server) serveReadiness(w http.ResponseWriter, r *http.Request) {
	verdict(w, ready(s.checks(r.Context())), "ready", "not ready")
}

// checks are the coordinator's and the listeners'.
func (s *Server) checks(ctx context.Context) []coordinator.Check {
	return append(slices.Clone(s.c.Checks(ctx)), s.listening.checks(time.Now())...)
}

func verdict(w http.ResponseWriter, ok bool, yes, no string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
		yes = no
	}
	_, _ = w.Write([]byte(yes + "\n")) // the reader is gone: nobody to tell
}

func ready(checks []coordinator.Check) bool {
	return !slices.ContainsFunc(checks, func(c coordinator.Check) bool { return !c.OK })
}

// serveChecks is what readiness consists of, one thing at a time.
func (s *Server) serveChecks(w http.ResponseWriter, r *http.Request) {
	serveChecks(w, s.checks(r.Context()))
}

func serveChecks(w http.ResponseWriter, checks []coordinator.Check) {
	w.Header().Set("Content-Type", "application/json")
	if !ready(checks) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"ready": ready(checks), "checks": checks}) // the reader is gone: nobody to tell
}

// metrics serves the coordinator's figures, the process's and the Go runtime's, in
// the formats that Prometheus asks for.
func (s *Server) metrics() http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(s.c.Metrics()...)
	build := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "starling", Name: "build_info", Help: "1, with the version that runs.",
		ConstLabels: prometheus.Labels{"version": s.cfg.Version}})
	build.Set(1)
	r.MustRegister(figures{&s.listening, func() ([]coordinator.Check, bool) {
		all := s.checks(context.Background())
		return all, ready(all)
	}})
	r.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{Registry: r, MaxRequestsInFlight: 4, DisableCompression: true})
}
