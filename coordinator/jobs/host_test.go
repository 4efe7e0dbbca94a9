package jobs_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/jobs"
	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/leaf/strict"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tinyJob is a job that three devices make a round of.
func tinyJob(name string, rounds int) job.Job {
	j := job.Default()
	j.Name, j.Labels, j.Rounds = name, []string{"a", "b"}, rounds
	j.Adapter = job.Adapter{RankMin: 1, RankMax: 3, Alpha: 4, Sequence: 8}
	j.Privacy.ClipNorm, j.Privacy.NoiseMultiplier, j.Privacy.Epsilon = 1, 30, 4
	j.Cohort.Population, j.Cohort.Floor = 3, 3
	j.Shard = job.Shard{Size: 64, Floor: 3}
	j.Deadlines = job.Deadlines{Gather: time.Minute, Key: time.Minute, Share: time.Minute, Collect: time.Minute,
		Confirm: time.Minute, Unmask: time.Minute, Reconnect: time.Minute}
	return j
}

// town is a host on a network, which a test lets run and stop.
type town struct {
	t    *testing.T
	dir  string
	h    *jobs.Host
	http *httptest.Server
	stop context.CancelFunc
	ran  chan error
	host func(coordinator.Host) coordinator.Host // what a job gets; nil: as it is

	mu      sync.Mutex
	servers map[string]http.Handler             // guarded by mu
	tokens  map[string]string                   // guarded by mu
	cs      map[string]*coordinator.Coordinator // guarded by mu
}

// open opens a folder's host and runs it; the test's end stops it.
func open(t *testing.T, dir string, most int) *town { return openWith(t, dir, most, nil) }

// openWith puts something between jobs and their host.
func openWith(t *testing.T, dir string, most int, between func(coordinator.Host) coordinator.Host) *town {
	t.Helper()
	w := &town{t: t, dir: dir, host: between, ran: make(chan error, 1), servers: map[string]http.Handler{}, tokens: map[string]string{}, cs: map[string]*coordinator.Coordinator{}}
	w.http = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/jobs/"), "/")
		w.mu.Lock()
		s := w.servers[name]
		w.mu.Unlock()
		if s == nil {
			http.NotFound(rw, r)
			return
		}
		http.StripPrefix("/jobs/"+name, s).ServeHTTP(rw, r)
	}))
	base := tiny.Base(t, 8, 1, 8)
	var err error
	w.h, err = jobs.Open(jobs.Config{
		Dir: dir, MaxOpen: most, Every: 10 * time.Millisecond,
		Open: func(j store.Hosted, dir string, host coordinator.Host) (*coordinator.Coordinator, error) {
			if w.host != nil {
				host = w.host(host)
			}
			parsed, err := job.Parse(strings.NewReader(string(j.File)))
			if err != nil {
				return nil, err
			}
			return coordinator.New(coordinator.Config{Job: parsed, Dir: dir, Base: base, Hosts: []string{}, Host: host, Patient: true})
		},
		Mount: func(j store.Hosted, c *coordinator.Coordinator) error {
			name := j.Name
			s, err := server.New(c, server.Config{})
			if err != nil {
				return err
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.servers[name], w.cs[name] = s.Handler(), c
			w.tokens[name] = s.Token(w.http.URL+"/jobs/"+name, nil)
			return nil
		},
		Unmount: func(name string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.servers, name)
		},
	})
	ok(t, err)
	ctx, stop := context.WithCancel(t.Context())
	w.stop = stop
	go func() { w.ran <- w.h.Run(ctx) }()
	t.Cleanup(func() { w.close() })
	return w
}

// close stops it, once.
func (w *town) close() {
	if w.stop == nil {
		return
	}
	w.stop()
	w.stop = nil
	watchdog.Wait(w.t, "the host's end", func() {
		if err := errors.Join(<-w.ran, w.h.Close()); err != nil {
			w.t.Error(err)
		}
	}, w.state)
	w.http.Close()
}

func (w *town) state() string {
	f, err := store.OpenFleet(w.dir)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	all, err := f.Hosted()
	out := fmt.Sprint(err)
	for _, j := range all {
		s, _ := w.h.Status(j.Name)
		out += fmt.Sprintf("; %s wanted %s is %s: %s; version %d, %s", j.Name, j.Want, j.State, j.Reason, s.Version, s.State)
	}
	return out
}

// with gives a test the operator's hand.
func (w *town) with(use func(f *store.Fleet)) {
	w.t.Helper()
	f, err := store.OpenFleet(w.dir)
	ok(w.t, err)
	use(f)
	ok(w.t, f.Close())
}

func (w *town) submit(j job.Job, pool string, priority int) {
	w.t.Helper()
	b := fileOf(w.t, j)
	w.with(func(f *store.Fleet) {
		ok(w.t, f.Submit(store.Hosted{Name: j.Name, Pool: pool, Priority: priority, File: b}))
	})
	w.h.Kick()
}

func fileOf(t *testing.T, j job.Job) []byte {
	t.Helper()
	b, err := strict.Encode(j)
	ok(t, err)
	return b
}

// front is a coordinator that is alone on a network.
type front struct {
	*httptest.Server
	token string
}

func serveOne(t *testing.T, c *coordinator.Coordinator) front {
	t.Helper()
	s, err := server.New(c, server.Config{})
	ok(t, err)
	f := front{Server: httptest.NewServer(s.Handler())}
	f.token = s.Token(f.URL, nil)
	return f
}

// withSecret is a token with another enrolment secret.
func withSecret(t *testing.T, token string, secret []byte) string {
	t.Helper()
	parsed, err := wire.ParseToken(token)
	ok(t, err)
	parsed.Secret = secret
	return parsed.String()
}

func (w *town) steer(name string, want store.Want) {
	w.t.Helper()
	w.with(func(f *store.Fleet) { ok(w.t, f.Steer(name, want, "")) })
	w.h.Kick()
}

// until waits until a job is as a test wants it.
func (w *town) until(name, what string, is func(j store.Hosted) bool) {
	w.t.Helper()
	watchdog.Wait(w.t, name+" "+what, func() {
		for {
			var found bool
			w.with(func(f *store.Fleet) {
				all, err := f.Hosted()
				ok(w.t, err)
				for _, j := range all {
					found = found || j.Name == name && is(j)
				}
			})
			if found {
				return
			}
			time.Sleep(2 * time.Millisecond)
		}
	}, w.state)
}

func (w *town) becomes(name string, state store.State) {
	w.t.Helper()
	w.until(name, "becomes "+string(state), func(j store.Hosted) bool { return j.State == state })
}

// token waits until a job is on the network.
func (w *town) token(name string) (token string) {
	w.t.Helper()
	w.until(name, "is on the network", func(j store.Hosted) bool {
		if j.State == store.StateFailed {
			w.t.Errorf("%s: %s", name, j.Reason)
			return true
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.servers[name] != nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tokens[name]
}

// people are devices that take part in several jobs, each under one identity.
type people struct {
	keys     []ed25519.PrivateKey
	train    func(ctx context.Context, device int, job string)
	progress func(edge.Event)                // nil: nobody listens
	over     atomic.Pointer[func(err error)] // called with what a device's part in a job ended with

	mu   sync.Mutex
	busy map[string]int // by device: jobs that it trains for
	most int
}

func newPeople(t *testing.T, n int) *people {
	p := &people{busy: map[string]int{}}
	for range n {
		key, err := edge.NewIdentity()
		ok(t, err)
		p.keys = append(p.keys, key)
	}
	return p
}

// hand is one device's work for one job.
type hand struct {
	p      *people
	device int
	job    string
}

func (h hand) Train(ctx context.Context, t edge.Task) ([]float32, error) {
	who := fmt.Sprint(h.device)
	h.p.mu.Lock()
	h.p.busy[who]++
	h.p.most = max(h.p.most, h.p.busy[who])
	h.p.mu.Unlock()
	defer func() {
		h.p.mu.Lock()
		defer h.p.mu.Unlock()
		h.p.busy[who]--
	}()
	if h.p.train != nil {
		h.p.train(ctx, h.device, h.job)
	}
	return make([]float32, len(t.Start)), ctx.Err()
}

func (hand) Close() error { return nil }

// join has all devices take part in a job until it is over or the returned function is called,
// which yields what each ended with.
func (p *people) join(t *testing.T, job, token string) func() []error {
	ctx, cancel := context.WithCancel(t.Context())
	trusting := edge.TrustingPolicy()
	errs := make([]error, len(p.keys))
	var wg sync.WaitGroup
	for i, key := range p.keys {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		cfg := edge.Config{Agent: "starling/9 linux/amd64 wazero", Token: token, Identity: key, Trainer: hand{p, i, job}, Policy: &trusting, HTTP: client, Progress: p.progress,
			BackoffMin: 5 * time.Millisecond, BackoffMax: 50 * time.Millisecond,
			Data: edge.Examples(&dataset.Set{Labels: []string{"a", "b"}, Examples: []dataset.Example{{Text: "the fox"}}})}
		wg.Go(func() {
			errs[i] = edge.Run(ctx, cfg)
			if over := p.over.Load(); over != nil {
				(*over)(errs[i])
			}
		})
	}
	end := func() []error {
		cancel()
		watchdog.Wait(t, "devices of "+job, wg.Wait)
		return errs
	}
	t.Cleanup(func() { end() })
	return end
}

// refused waits until all devices that would join a job were told why they may not.
func (p *people) refused(t *testing.T, job, token, why string) {
	t.Helper()
	var mu sync.Mutex
	told := 0
	ends := make([]func() []error, len(p.keys))
	for i := range ends {
		over := func(err error) {
			mu.Lock()
			defer mu.Unlock()
			told++
			if refused := new(edge.RefusedError); !errors.As(err, &refused) || !strings.Contains(refused.Text, why) {
				t.Errorf("a device that may not join %s: %v", job, err)
			}
		}
		one := &people{keys: p.keys[i : i+1], busy: map[string]int{}}
		one.over.Store(&over)
		ends[i] = one.join(t, job, token)
	}
	watchdog.Wait(t, "the refusals of "+job, func() {
		for {
			mu.Lock()
			all := told == len(ends)
			mu.Unlock()
			if all {
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
}

// ledgers holds the fleet's ledger against all jobs', and returns its entries.
func (w *town) ledgers() (entries []store.Spending) {
	w.t.Helper()
	w.with(func(f *store.Fleet) {
		s, err := f.Spent(func(e store.Spending) { entries = append(entries, e) })
		ok(w.t, err)
		all, err := f.Hosted()
		ok(w.t, err)
		for _, j := range all {
			l, err := store.ReadLedger(filepath.Join(w.dir, filepath.FromSlash(j.Folder)))
			if errors.Is(err, store.ErrNoStore) && s.By[j.Name] == nil {
				continue
			}
			ok(w.t, err)
			had := s.By[j.Name]
			if had == nil {
				had = &store.Bought{}
			}
			if len(had.Rounds) != len(l.Entries) {
				w.t.Errorf("%s: %d rounds in the fleet's ledger, %d in its own", j.Name, len(had.Rounds), len(l.Entries))
			}
			for _, e := range l.Entries {
				if cost := had.Rounds[e.Event.Round]; !cost.Charged || cost.Event != e.Event {
					w.t.Errorf("%s: round %d is %+v in the fleet's ledger, %+v in its own", j.Name, e.Event.Round, cost, e.Event)
				}
			}
		}
	})
	return entries
}

// TestTwoJobsOverOneFleet: the same devices make the rounds of two jobs, one round at a time,
// and all of it is in the fleet's ledger in the order in which it was.
func TestTwoJobsOverOneFleet(t *testing.T) {
	w, p := open(t, t.TempDir(), 0), newPeople(t, 3)
	for _, name := range []string{"one", "two"} {
		w.submit(tinyJob(name, 3), "", 0)
	}
	one, two := p.join(t, "one", w.token("one")), p.join(t, "two", w.token("two"))
	w.becomes("one", store.StateFinished)
	w.becomes("two", store.StateFinished)
	for _, err := range append(one(), two()...) {
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if p.most != 1 {
		t.Errorf("a device trained for %d jobs at once", p.most)
	}
	var under string
	rounds := map[string]int{}
	for _, e := range w.ledgers() {
		switch e.Act {
		case store.SpendReserve:
			if under != "" {
				t.Errorf("a round of %s begins within one of %s", e.Job, under)
			}
			under = e.Job
		case store.SpendCharge:
			rounds[e.Job]++
			under = ""
		}
	}
	if rounds["one"] != 3 || rounds["two"] != 3 {
		t.Errorf("rounds %v", rounds)
	}
	totals, _, _, err := w.h.Totals()
	ok(t, err)
	if len(totals) != 1 || totals[0].Jobs != 2 || totals[0].Rounds != 6 || totals[0].Guarantee == nil {
		t.Errorf("together %+v", totals)
	}
}

// TestFleetBudgetPausesAll: the fleet's budget ends before the jobs' own do. Both wait, and go
// on when it is raised.
func TestFleetBudgetPausesAll(t *testing.T) {
	w, p := open(t, t.TempDir(), 0), newPeople(t, 3)
	const delta = 1e-5
	w.submit(tinyJob("one", 4), "", 0)
	end := p.join(t, "one", w.token("one"))
	w.becomes("one", store.StateFinished)
	end()
	events, floor := w.h.Events(store.DefaultPool)
	five, _, err := jobs.Compose(append(slices.Clone(events), events[0]), delta, floor)
	ok(t, err)
	six, _, err := jobs.Compose(append(slices.Clone(events), events[0], events[1]), delta, floor)
	ok(t, err)
	// One more round of the six that two other jobs would make.
	ok(t, w.h.Budget((five.Epsilon+six.Epsilon)/2, delta))
	for _, name := range []string{"two", "three"} {
		w.submit(tinyJob(name, 3), "", 0)
	}
	p.join(t, "two", w.token("two"))
	p.join(t, "three", w.token("three"))
	for _, name := range []string{"two", "three"} {
		w.until(name, "is paused by the budget", func(j store.Hosted) bool { return strings.Contains(j.Reason, "the fleet's budget is") })
	}
	if n := len(w.ledgers()); n != 4*2+1+2 {
		t.Errorf("%d entries: more than one round was begun beyond the budget, or none", n)
	}
	before := w.h.Entries()
	ok(t, w.h.Budget(100, delta))
	for _, s := range []string{"two", "three"} {
		w.becomes(s, store.StateFinished)
	}
	if entries := w.ledgers(); entries[before].Act != store.SpendBudget || len(entries) != int(before)+1+5*2 {
		t.Errorf("%d entries, the raise is %+v", len(entries), entries[before])
	}
}

// TestSteering: jobs wait in a queue by priority, are paused, resumed, stopped and archived,
// and what may not be is refused.
func TestSteering(t *testing.T) {
	w, p := open(t, t.TempDir(), 1), newPeople(t, 3)
	w.submit(tinyJob("first", 1), "", 0)
	w.becomes("first", store.StateRunning)
	w.submit(tinyJob("low", 2), "", -1)
	w.submit(tinyJob("high", 40), "", 5)
	w.becomes("low", store.StateQueued)
	w.becomes("high", store.StateQueued)
	w.steer("first", store.WantPause)
	w.becomes("first", store.StatePaused)
	p.join(t, "first", w.token("first"))
	w.until("first", "waits", func(j store.Hosted) bool { return strings.Contains(j.Reason, "paused by "+store.ByFolder) })
	if n := len(w.ledgers()); n != 0 {
		t.Errorf("%d entries of a job that is paused", n)
	}
	w.steer("first", store.WantRun)
	w.becomes("first", store.StateFinished)
	w.becomes("high", store.StateRunning) // there is room, and it goes first
	w.with(func(f *store.Fleet) {
		for _, bad := range []struct {
			name string
			want store.Want
			err  error
		}{{"first", store.WantPause, store.ErrRequest}, {"first", store.WantRun, store.ErrRequest}, {"high", store.WantArchive, store.ErrRequest},
			{"none", store.WantStop, store.ErrUnknown}, {"high", "delete", store.ErrRequest}} {
			if err := f.Steer(bad.name, bad.want, ""); !errors.Is(err, bad.err) {
				t.Errorf("%s of %s: %v", bad.want, bad.name, err)
			}
		}
		for _, bad := range []store.Hosted{{Name: "../up"}, {Name: "first"}, {Name: "x", Pool: "A B"}, {Name: "x", Priority: 5000}, {Name: "x", File: make([]byte, store.MaxHostedFile+1)}} {
			if bad.File == nil {
				bad.File = []byte("name: x")
			}
			if err := f.Submit(bad); !errors.Is(err, store.ErrRequest) {
				t.Errorf("submitted %q: %v", bad.Name, err)
			}
		}
	})
	high := p.join(t, "high", w.token("high"))
	w.until("high", "makes rounds", func(store.Hosted) bool { s, _ := w.h.Status("high"); return s.Version >= 2 })
	w.steer("high", store.WantStop)
	w.becomes("high", store.StateStopped)
	for _, err := range high() {
		if err != nil && !errors.Is(err, context.Canceled) { // they heard that it is over, or were about to
			t.Errorf("a device of a job that was stopped: %v", err)
		}
	}
	w.becomes("low", store.StateRunning)
	w.steer("high", store.WantArchive)
	w.becomes("high", store.StateArchived)
	w.mu.Lock()
	if w.servers["high"] != nil {
		t.Error("an archived job is on the network")
	}
	w.mu.Unlock()
	p.join(t, "low", w.token("low"))
	w.becomes("low", store.StateFinished)
	w.ledgers()
	w.with(func(f *store.Fleet) {
		acts, _, err := f.Acts()
		ok(t, err)
		var did []string
		for _, a := range acts {
			did = append(did, a.Act)
		}
		if want := "submit job,submit job,submit job,pause job,resume job,stop job,archive job"; strings.Join(did, ",") != want {
			t.Errorf("acts %v", did)
		}
	})
}

// TestAJobThatFailsIsAlone: one that cannot be opened says why, and is tried again when asked;
// the other goes on.
func TestAJobThatFailsIsAlone(t *testing.T) {
	w, p := open(t, t.TempDir(), 0), newPeople(t, 3)
	w.with(func(f *store.Fleet) { ok(t, f.Submit(store.Hosted{Name: "broken", File: []byte("nonsense: 1\n")})) })
	w.submit(tinyJob("whole", 1), "", 0)
	w.until("broken", "says why", func(j store.Hosted) bool {
		return j.State == store.StateFailed && strings.Contains(j.Reason, "nonsense")
	})
	p.join(t, "whole", w.token("whole"))
	w.becomes("whole", store.StateFinished)
	w.steer("broken", store.WantRun)
	w.becomes("broken", store.StateFailed)
}
