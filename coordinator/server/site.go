package server

import (
	"context"
	"encoding/hex"

	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"

	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/jobs"
	"github.com/starling-fl/starling/coordinator/signin"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// SiteConfig sets addresses, TLS and limits of a host's jobs.
type SiteConfig struct {
	Host    *jobs.Host
	Pages   http.Handler   // as Config has it, for each job
	Trusted []netip.Prefix // as Config has it
	Version string
	// Gateways and SignIn are as Config has them.
	Gateways bool
	SignIn   *signin.Issuer
	Accept   func(file []byte) error // what a job that is submitted here cannot be run for; nil: that is seen when it is opened
	Log      *slog.Logger
}

// Site serves several coordinators at one address, each as if it were alone behind a proxy that
// serves it below a path.
type Site struct {
	desk
	listening listening
	cfg       SiteConfig
	sockets   *sockets

	mu   sync.RWMutex
	jobs map[string]*mounted // guarded by mu
	url  string              // guarded by mu: how devices reach us
	pin  []byte              // guarded by mu
}

// mounted is a job that is served.
type mounted struct {
	*Server
	devices, admin http.Handler
	token          string
	offer          wire.Offer // to devices of the fleet
	atRoot         bool       // devices that came before there were several ask there
}

// siteConnections is how many a site holds at most, where the process may.
const siteConnections = 1 << 20

// NewSite returns a site without jobs; Mount adds them.
func NewSite(cfg SiteConfig) (*Site, error) {
	b, err := cfg.Host.Secret("admin")
	if err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Site{cfg: cfg, jobs: map[string]*mounted{}, sockets: newSockets(siteConnections, 0, filesFor(cfg.Gateways)),
		desk: desk{log: cfg.Log, fleet: cfg.Host.Fleet, changed: cfg.Host.Kick, adminToken: hex.EncodeToString(b), trusted: cfg.Trusted, issuer: cfg.SignIn}}, nil
}

// Log is the site's logger.
func (s *Site) Log() *slog.Logger { return s.log }

// Reach sets how devices reach the site. Call it before mounting jobs.
func (s *Site) Reach(baseURL string, pin []byte) error {
	t := wire.Token{URL: baseURL, Pin: pin}
	if err := t.Validate(); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	s.answersTo(baseURL)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.url, s.pin = baseURL, pin
	return s.cfg.Host.Reached(t.String())
}

// Mount serves a job. With atRoot, devices that ask without a job's path get this one.
func (s *Site) Mount(j store.Hosted, c *coordinator.Coordinator, atRoot bool) error {
	name := j.Name
	one, err := New(c, Config{Pages: s.cfg.Pages, Trusted: s.cfg.Trusted, Version: s.cfg.Version, Gateways: s.cfg.Gateways, Fleet: s.fleet, AdminToken: s.adminToken, SignIn: s.cfg.SignIn,
		FleetBudget: s.cfg.Host.Budgeted})
	if err != nil {
		return err
	}
	one.changed, one.job = s.changed, name
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &mounted{Server: one, atRoot: atRoot}
	m.token = one.Token(s.url+wire.JobPath+name, s.pin)
	t, err := wire.ParseToken(m.token)
	if err != nil {
		return err
	}
	m.offer = wire.OfferOf(name, j.Pool, t)
	t.Secret = nil
	one.leads = t.String()
	m.devices, m.admin = one.Handler(), one.AdminHandler()
	s.jobs[name] = m
	return nil
}

// Unmount stops serving a job. Its sessions end with its coordinator.
func (s *Site) Unmount(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.jobs, name)
}

// Token is the argument of `starling join` for a job that is mounted; empty if it is not.
func (s *Site) Token(name string) string {
	if m := s.at(name); m != nil {
		return m.token
	}
	return ""
}

// FleetToken is the token for a device that takes part in whichever jobs its owner allows,
// including those submitted later. Call Reach before.
func (s *Site) FleetToken() (string, error) {
	secret, err := s.cfg.Host.Secret("enrolment")
	if err != nil {
		return "", err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return wire.Token{URL: s.url, Pin: s.pin, Secret: secret}.String(), nil
}

// serveOffers lists the jobs that are open, by name.
func (s *Site) serveOffers(w http.ResponseWriter, _ *http.Request) {
	open := s.all()
	out := wire.Offers{Jobs: []wire.Offer{}}
	for _, name := range slices.Sorted(maps.Keys(open)) {
		if len(out.Jobs) < wire.MaxOffers {
			out.Jobs = append(out.Jobs, open[name].offer)
		}
	}
	serveJSON(w, out)
}

func (s *Site) at(name string) *mounted {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.jobs[name]
}

// all are the jobs that are mounted, by name.
func (s *Site) all() map[string]*mounted {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make(map[string]*mounted, len(s.jobs))
	for name, m := range s.jobs {
		out[name] = m
	}
	return out
}

// Serve serves devices on the endpoint, as a Server does.
func (s *Site) Serve(ctx context.Context, e *Endpoint) error {
	defer s.listening.serve("devices", e)()
	return serveOn(ctx, e, s.identified(s.fronted(s.named(s.Handler()))), s.sockets, s.log, false)
}

// ServeAdmin serves operators.
func (s *Site) ServeAdmin(ctx context.Context, e *Endpoint) error {
	defer s.listening.serve("operators", e)()
	return serveOn(ctx, e, s.identified(s.named(s.AdminHandler())), newSockets(sparedFiles/4, 0, 0), s.log, false)
}

// Handler serves devices: each job's below its path.
func (s *Site) Handler() http.Handler {
	mux := http.NewServeMux()
	s.common(mux, func(m *mounted) http.Handler { return m.devices })
	mux.HandleFunc("GET "+wire.JobsPath, s.serveOffers)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		for _, m := range s.all() {
			if m.atRoot {
				m.devices.ServeHTTP(w, r)
				return
			}
		}
		http.Error(w, "this coordinator has several jobs: ask below /jobs/NAME/", http.StatusNotFound)
	})
	return unframed(mux)
}

// common is what both listeners answer of all jobs.
func (s *Site) common(mux *http.ServeMux, of func(*mounted) http.Handler) {
	mux.HandleFunc(wire.JobPath+"{name}/", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		m := s.at(name)
		if m == nil {
			s.absent(w, name)
			return
		}
		http.StripPrefix(wire.JobPath+name, of(m)).ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		ok := true
		for _, m := range s.all() {
			ok = ok && m.c.Alive(r.Context()) == nil
		}
		verdict(w, ok, "ok", "an engine does not answer")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		verdict(w, ready(s.checks(r.Context())), "ready", "no job is ready, or no device can come")
	})
}

// checks are the conditions under which rounds can be made: one job that can make them, and the listeners'.
func (s *Site) checks(ctx context.Context) []coordinator.Check {
	for _, m := range s.all() {
		if ready(m.c.Checks(ctx)) {
			return s.own(true)
		}
	}
	return s.own(false)
}

// own are the site's checks; able says whether one job can make rounds.
func (s *Site) own(able bool) []coordinator.Check {
	jobs := coordinator.Check{Name: "jobs", OK: able, Detail: "one can make rounds"}
	if !able {
		jobs.Detail = "no job can make rounds: 'starling job list' says why"
	}
	return append([]coordinator.Check{jobs}, s.listening.checks(time.Now())...)
}

// absent answers for a job that is not mounted: a device comes back to one that waits or
// is being opened, and to no other.
func (s *Site) absent(w http.ResponseWriter, name string) {
	switch state := s.cfg.Host.State(name); {
	case state == "":
		http.Error(w, "there is no job of that name", http.StatusNotFound)
	case state.Over():
		http.Error(w, "the job is over", http.StatusGone)
	default:
		w.Header().Set("Retry-After", "10")
		http.Error(w, "the job is not open now", http.StatusServiceUnavailable)
	}
}

// AdminHandler serves operators: the fleet, and each job's dashboard and metrics below its path.
func (s *Site) AdminHandler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.routes() {
		mux.HandleFunc(r.pattern, s.asks(r.role, r.serve))
	}
	s.common(mux, func(m *mounted) http.Handler { return m.admin })
	if s.cfg.Pages != nil {
		page := func(w http.ResponseWriter, r *http.Request) { // the jobs, where one job has its dashboard
			r = r.Clone(r.Context())
			r.URL.Path = "/jobs"
			s.cfg.Pages.ServeHTTP(w, r)
		}
		mux.HandleFunc("GET /{$}", page)
		mux.HandleFunc("GET /dashboard", page)
		mux.Handle("GET /assets/", s.cfg.Pages)
		mux.Handle("GET /favicon.svg", s.cfg.Pages)
	}
	return unframed(mux)
}

// routes are the operator's endpoints of all jobs.
func (s *Site) routes() []route {
	return append(s.desk.routes(), []route{
		{"GET /metrics", store.RoleViewer, s.serveMetrics},
		{"GET /v1/admin/jobs.json", store.RoleViewer, s.serveJobs},
		{"GET /v1/admin/spending.json", store.RoleViewer, s.serveSpending},
		{"GET /v1/admin/ready.json", store.RoleViewer, func(w http.ResponseWriter, r *http.Request) { serveChecks(w, s.checks(r.Context())) }},
		{"POST /v1/admin/jobs", store.RoleAdmin, s.serveSubmit},
		{"POST /v1/admin/jobs/{name}/{act}", store.RoleOperator, s.serveSteer},
	}...)
}

// JobLine is one job in the list for operators.
type JobLine struct {
	store.Hosted
	Version int    `json:"version,omitempty"` // rounds released, while it is open
	Rounds  int    `json:"rounds,omitempty"`
	Token   string `json:"token,omitempty"` // to join by; for an operator
}

func (s *Site) serveJobs(w http.ResponseWriter, r *http.Request) {
	s.withFleet(w, r, func(f *store.Fleet) (any, error) {
		all, err := f.Hosted()
		out := []JobLine{}
		for _, j := range all {
			line := JobLine{Hosted: j}
			if status, open := s.cfg.Host.Status(j.Name); open {
				line.Version, line.Rounds = status.Version, status.Rounds
			}
			if who(r).Role.Allows(store.RoleOperator) { // it enrols devices
				line.Token = s.Token(j.Name)
			}
			out = append(out, line)
		}
		return out, err
	})
}

// Submitted is a job for the fleet, with the text of its file.
type Submitted struct {
	Name     string `json:"name"`
	Pool     string `json:"pool,omitempty"`
	Priority int    `json:"priority,omitempty"`
	File     string `json:"file"`
}

func (s *Site) serveSubmit(w http.ResponseWriter, r *http.Request) {
	var in Submitted
	if !toldMore(w, r, &in, 2*store.MaxHostedFile) {
		return
	}
	s.withFleet(w, r, func(f *store.Fleet) (any, error) {
		if s.cfg.Accept != nil {
			if err := s.cfg.Accept([]byte(in.File)); err != nil {
				return nil, fmt.Errorf("%w: %w", store.ErrRequest, err)
			}
		}
		defer s.changed()
		return map[string]string{"submitted": in.Name}, f.Submit(store.Hosted{Name: in.Name, Pool: in.Pool, Priority: in.Priority, File: []byte(in.File)})
	})
}

// acts are what operators ask of a job, by the last part of an address.
var acts = map[string]store.Want{"pause": store.WantPause, "resume": store.WantRun, "stop": store.WantStop, "archive": store.WantArchive}

func (s *Site) serveSteer(w http.ResponseWriter, r *http.Request) {
	name, act := r.PathValue("name"), r.PathValue("act")
	var why struct {
		Reason string `json:"reason"`
	}
	if !told(w, r, &why) {
		return
	}
	s.withFleet(w, r, func(f *store.Fleet) (any, error) {
		return map[string]string{"job": name, "act": act}, s.steer(r, f, name, act, why.Reason)
	})
}

// steer has a hosted job do what an operator asks.
func (s *desk) steer(r *http.Request, f *store.Fleet, name, act, reason string) error {
	want, known := acts[act]
	if !known {
		return fmt.Errorf("%w: %.40q", store.ErrUnknown, act)
	}
	defer s.changed()
	s.logOf(r).Info("by an operator", "operator", who(r).Name, "act", act, "job", name)
	return f.Steer(name, want, reason)
}

// Ledger is the fleet's ledger, verified.
type Ledger struct {
	Epsilon float64          `json:"epsilon,omitempty"` // of the fleet's budget; absent: there is none
	Delta   float64          `json:"delta,omitempty"`
	Totals  []jobs.Total     `json:"totals"`
	Entries []store.Spending `json:"entries"`
	Head    string           `json:"head"`
}

// LedgerOf reads and verifies a fleet's ledger.
func LedgerOf(f *store.Fleet) (Ledger, error) {
	out := Ledger{Entries: []store.Spending{}}
	spent, err := f.Spent(func(e store.Spending) { out.Entries = append(out.Entries, e) })
	if err != nil {
		return out, err
	}
	out.Head = hex.EncodeToString(spent.Head[:])
	out.Epsilon, out.Delta = spent.Epsilon, spent.Delta
	out.Totals, err = jobs.Totals(spent)
	return out, err
}

func (s *Site) serveSpending(w http.ResponseWriter, r *http.Request) {
	s.withFleet(w, r, func(f *store.Fleet) (any, error) { return LedgerOf(f) })
}

// serveMetrics serves the figures of all jobs that are open, each with its name, and the fleet's.
func (s *Site) serveMetrics(w http.ResponseWriter, r *http.Request) {
	registry := prometheus.NewRegistry()
	var errs []error
	all := s.all()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		of := prometheus.WrapRegistererWith(prometheus.Labels{"job_name": name}, registry)
		for _, c := range all[name].c.Metrics() {
			errs = append(errs, of.Register(c))
		}
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "starling", Name: "build_info", Help: "1, with the version that runs.",
		ConstLabels: prometheus.Labels{"version": s.cfg.Version}})
	build.Set(1)
	errs = append(errs, registry.Register(build), registry.Register(fleetFigures{s.cfg.Host, func(err error) {
		s.logOf(r).Error("the fleet's ledger cannot be accounted for", "error", err)
	}}), registry.Register(figures{&s.listening, func() ([]coordinator.Check, bool) { return s.everyCheck(r.Context()) }}), registry.Register(collectors.NewGoCollector()),
		registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})))
	if err := errors.Join(errs...); err != nil {
		s.logOf(r).Error("the figures cannot be shown", "error", err)
		http.Error(w, "the figures cannot be shown", http.StatusInternalServerError)
		return
	}
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true}).ServeHTTP(w, r)
}
