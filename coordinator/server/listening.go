package server

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/starling-fl/starling/coordinator"
)

// listening is what a server serves now: endpoints by what they are for, and whether each can be reached.
type listening struct {
	mu sync.Mutex
	at []namedEndpoint // guarded by mu
}

type namedEndpoint struct {
	name string // devices or operators
	*Endpoint
}

// serve notes an endpoint until the returned function is called.
func (l *listening) serve(name string, e *Endpoint) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = append(l.at, namedEndpoint{name, e})
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.at = slices.DeleteFunc(l.at, func(o namedEndpoint) bool { return o.Endpoint == e })
	}
}

func (l *listening) all() []namedEndpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.at)
}

// checks are conditions of the listeners: a certificate within its dates, and gateways where devices come by them.
func (l *listening) checks(now time.Time) (checks []coordinator.Check) {
	for _, e := range l.all() {
		if e.cert != nil && e.cert.Pin() == nil {
			c := coordinator.Check{Name: "certificate", OK: true, Detail: "an authority has issued none yet"}
			if ends := e.cert.Ends(); !ends.IsZero() {
				c.Detail = fmt.Sprintf("it ends %s", ends.UTC().Format(time.DateOnly))
			}
			checks = append(checks, failing(c, e.cert.Check(now)))
		}
		if e.check != nil {
			checks = append(checks, failing(coordinator.Check{Name: "gateways", OK: true, Detail: "one is heard"}, e.check(now)))
		}
	}
	return checks
}

// elsewhere are the conditions that another machine may fulfil where this one does not.
var elsewhere = []string{"engine", "disk", "clock", "gateways"}

// unfit is the first of them that fails; "" if none does.
func unfit(checks []coordinator.Check) string {
	for _, c := range checks {
		if !c.OK && slices.Contains(elsewhere, c.Name) {
			return c.Name + ": " + c.Detail
		}
	}
	return ""
}

// Unfit says what keeps this process from serving that another machine may do better; "" for nothing.
func (s *Server) Unfit(ctx context.Context) string { return unfit(s.checks(ctx)) }

// Unfit says what keeps this process from serving that another machine may do better; "" for nothing.
func (s *Site) Unfit(ctx context.Context) string {
	all, _ := s.everyCheck(ctx)
	return unfit(all)
}

// everyCheck has the site's checks, by which it is ready, and those of each job.
func (s *Site) everyCheck(ctx context.Context) (all []coordinator.Check, isReady bool) {
	able := false
	for _, m := range s.all() {
		checks := m.c.Checks(ctx)
		able = able || ready(checks)
		all = append(all, checks...)
	}
	own := s.own(able)
	return append(own, all...), ready(own)
}

// failing is a check with the error that it found, if any.
func failing(c coordinator.Check, err error) coordinator.Check {
	if err != nil {
		c.OK, c.Detail = false, err.Error()
	}
	return c
}

var (
	readyDesc = prometheus.NewDesc("starling_ready", "1 while rounds can be made and devices can come, as /readyz says it.", nil, nil)
	checkDesc = prometheus.NewDesc("starling_check", "1 for each condition of readiness that holds, 0 for one that does not.", []string{"check"}, nil)
	endsDesc  = prometheus.NewDesc("starling_certificate_not_after_timestamp_seconds", "When a listener's certificate ends, in Unix time.", []string{"listener"}, nil)
)

// figures are checks and certificates for Prometheus, made at each scrape.
type figures struct {
	of *listening
	// checks makes the checks, of which those of several jobs have one name, and says whether they make a state to be ready in.
	checks func() (all []coordinator.Check, ready bool)
}

// Describe announces nothing: which series there are depends on the listeners.
func (figures) Describe(chan<- *prometheus.Desc) {}

// Collect makes the checks.
func (f figures) Collect(ch chan<- prometheus.Metric) {
	put := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	truth := map[bool]float64{true: 1}
	all, isReady := f.checks()
	put(readyDesc, truth[isReady])
	holds := map[string]bool{}
	for _, c := range all {
		before, known := holds[c.Name]
		holds[c.Name] = c.OK && (before || !known)
	}
	for name, ok := range holds {
		put(checkDesc, truth[ok], name)
	}
	seen := map[string]bool{}
	for _, e := range f.of.all() {
		if e.cert == nil || seen[e.name] || e.cert.Ends().IsZero() {
			continue
		}
		seen[e.name] = true
		put(endsDesc, float64(e.cert.Ends().Unix()), e.name)
	}
}
