package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/store"
)

// Config sets a host's limits and budget.
type Config struct {
	Dir string
	// Open makes a job's coordinator over its folder, with host as its Host.
	Open func(j store.Hosted, dir string, host coordinator.Host) (*coordinator.Coordinator, error)
	// Mount puts it on the network, before it runs; Unmount takes it off again, before it is
	// closed. A job that is over stays mounted, so that devices are told, until it is archived.
	Mount   func(j store.Hosted, c *coordinator.Coordinator) error
	Unmount func(name string)
	// MaxOpen limits the open jobs; others wait in a queue. 0: 4.
	MaxOpen int
	// Every is the interval at which the store is read for operators' orders. 0: 2 s.
	Every time.Duration
	Log   *slog.Logger
}

// Host runs a server's jobs.
type Host struct {
	cfg    Config
	log    *slog.Logger
	store  *store.Store
	secret []byte
	kicked chan struct{}
	ended  chan ended

	mu     sync.Mutex
	turns  *turns                 // guarded by mu
	spent  *store.Spent           // guarded by mu
	totals []Total                // guarded by mu: of what was spent with the first accounted entries
	upTo   int64                  // guarded by mu; -1: none were made
	seats  map[string]*seat       // guarded by mu: of jobs that are open
	states map[string]store.State // guarded by mu

	open    map[string]*opened // Run's alone
	adopted bool               // the same: see adopt
}

// opened is a job that has a coordinator, or is about to.
type opened struct {
	seat *seat
	stop context.CancelCauseFunc
	over bool
}

// ended is a job that makes no more rounds.
type ended struct {
	name string
	err  error
	cut  bool // with the host: it goes on at the next start
}

const (
	mostOpen    = 4
	followEvery = 2 * time.Second
)

// Open opens a server's folder, and makes it if there is none. Nothing runs yet.
func Open(cfg Config) (*Host, error) {
	cfg.MaxOpen, cfg.Every = cmp.Or(cfg.MaxOpen, mostOpen), cmp.Or(cfg.Every, followEvery)
	h := &Host{cfg: cfg, log: cfg.Log, turns: newTurns(), seats: map[string]*seat{}, open: map[string]*opened{}, upTo: -1,
		kicked: make(chan struct{}, 1), ended: make(chan ended)}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if h.store, err = store.OpenShared(cfg.Dir); err != nil {
		return nil, err
	}
	if h.spent, err = h.store.Spent(); err != nil {
		return nil, errors.Join(err, h.store.Close())
	}
	if h.secret, err = h.Secret("enrolment"); err != nil {
		return nil, errors.Join(err, h.store.Close())
	}
	return h, nil
}

// Secret returns 32 random bytes, which are drawn once and kept under a name.
func (h *Host) Secret(name string) ([]byte, error) {
	return h.store.Secret(name, coordinator.NewSecret)
}

// Owns reports whether the host certainly still holds the fleet's lease.
func (h *Host) Owns() bool { return h.store.Holds() }

// StandsBy reports whether another coordinator waits for the lease and could serve.
func (h *Host) StandsBy() bool { return h.store.StandsBy() }

// Reached stores how devices reach the server, for invitations.
func (h *Host) Reached(token string) error { return h.store.Reached(token) }

// Fleet opens the operators' view of devices, jobs and operators; the caller closes it.
func (h *Host) Fleet() (*store.Fleet, error) { return store.OpenFleet(h.cfg.Dir) }

// Budget sets the joint budget of a pool's jobs from now on. With epsilon 0 only the jobs' own budgets hold.
func (h *Host) Budget(epsilon, delta float64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.spent.Epsilon == epsilon && h.spent.Delta == delta {
		return nil
	}
	err := h.store.Spend(h.spent, store.Spending{Act: store.SpendBudget, Epsilon: epsilon, Delta: delta})
	for _, s := range h.seats {
		s.wake()
	}
	return err
}

// Budgeted is what Budget set; epsilon 0 means that there is no limit.
func (h *Host) Budgeted() (epsilon, delta float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.spent.Epsilon, h.spent.Delta
}

// Totals returns the joint cost of each pool's jobs, and the fleet's budget, also with an error; epsilon 0 means
// that there is none.
func (h *Host) Totals() (totals []Total, epsilon, delta float64, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.upTo != h.spent.Entries { // who scrapes figures asks more often than rounds begin
		if totals, err = Totals(h.spent); err != nil {
			return nil, h.spent.Epsilon, h.spent.Delta, err
		}
		h.totals, h.upTo = totals, h.spent.Entries
	}
	return slices.Clone(h.totals), h.spent.Epsilon, h.spent.Delta, nil
}

// Kick makes the host read operators' orders at once.
func (h *Host) Kick() {
	select {
	case h.kicked <- struct{}{}:
	default:
	}
}

// Status returns the status of a job that is open.
func (h *Host) Status(name string) (monitor.Status, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.seats[name]
	if s == nil || s.c == nil {
		return monitor.Status{}, false
	}
	return s.c.Status(), true
}

// State is the state of a job, as of the last look at the store; "" if there is no such job.
func (h *Host) State(name string) store.State {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.states[name]
}

// States returns the states of all jobs, by their names, as of the last look at the store.
func (h *Host) States() map[string]store.State {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.states)
}

// wakeAll has a pool's jobs ask anew; under mu.
func (h *Host) wakeAll(pool string) {
	for _, s := range h.seats {
		if s.in == pool {
			s.wake()
		}
	}
}

// Run carries out operators' orders until ctx is done, and returns when all jobs have ended. The failure of a job
// is recorded with the job; the returned error is that of the fleet's store.
func (h *Host) Run(ctx context.Context) error {
	jobs, stop := context.WithCancel(ctx)
	tick := time.NewTicker(h.cfg.Every)
	defer tick.Stop()
	var wg sync.WaitGroup
	var err error
	for err == nil && ctx.Err() == nil {
		if err = h.follow(jobs, &wg); err != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-h.store.Lost():
			err = store.ErrFenced
		case <-h.kicked:
			h.mu.Lock()
			for _, s := range h.seats {
				s.wake()
			}
			h.mu.Unlock()
		case e := <-h.ended:
			err = h.note(e)
		}
	}
	stop()
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for {
		select {
		case e := <-h.ended:
			err = errors.Join(err, h.note(e))
			continue
		case <-done:
		}
		break
	}
	return err
}

// Close closes all jobs and the fleet's store. Call it after Run.
func (h *Host) Close() error {
	var err error
	for _, name := range sortedKeys(h.open) {
		err = errors.Join(err, h.closeJob(name))
	}
	return errors.Join(err, h.store.Close())
}

// closeJob closes a job that has ended.
func (h *Host) closeJob(name string) error {
	h.mu.Lock()
	s := h.seats[name]
	delete(h.seats, name)
	h.mu.Unlock()
	delete(h.open, name)
	if s == nil || s.c == nil {
		return nil
	}
	h.cfg.Unmount(name)
	return s.c.Close()
}

// follow does what operators want.
func (h *Host) follow(ctx context.Context, wg *sync.WaitGroup) error {
	all, err := h.store.Hosted()
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.states = make(map[string]store.State, len(all))
	for _, j := range all {
		h.states[j.Name] = j.State
	}
	h.mu.Unlock()
	for _, j := range all {
		if j.Folder == "." && !h.adopted {
			if err := h.adopt(j); err != nil {
				return err
			}
			h.adopted = true
		}
	}
	active := 0
	for _, o := range h.open {
		if !o.over {
			active++
		}
	}
	// Those that are open first: who is stopped makes room.
	slices.SortStableFunc(all, func(a, b store.Hosted) int { return cmp.Compare(b.Priority, a.Priority) })
	var waiting []store.Hosted
	for _, j := range all {
		o := h.open[j.Name]
		switch {
		case j.Want == store.WantArchive:
			if o != nil && !o.over {
				continue // its end is on its way
			}
			if err := errors.Join(h.closeJob(j.Name), h.say(j, store.StateArchived, j.Reason)); err != nil {
				return err
			}
		case o != nil && !o.over:
			if j.Want == store.WantStop {
				o.stop(coordinator.ErrStopped)
				continue
			}
			if err := h.steer(o, j); err != nil {
				return err
			}
		case j.Want == store.WantStop && !j.State.Over():
			if err := h.say(j, store.StateStopped, "it was stopped before it was opened"); err != nil {
				return err
			}
		case j.State.Over():
		case j.Want == store.WantPause:
			if err := h.say(j, store.StatePaused, j.PausedBy()); err != nil {
				return err
			}
		default:
			waiting = append(waiting, j)
		}
	}
	for _, j := range waiting {
		if active < h.cfg.MaxOpen {
			active++
			if err := errors.Join(h.closeJob(j.Name), h.say(j, store.StateRunning, "")); err != nil { // it may have failed before
				return err
			}
			h.start(ctx, wg, j)
			continue
		}
		if err := h.say(j, store.StateQueued, fmt.Sprintf("%d jobs are open, as many as may be", active)); err != nil {
			return err
		}
	}
	return nil
}

// steer pauses or resumes a job that is open, and keeps what it says of itself.
func (h *Host) steer(o *opened, j store.Hosted) error {
	paused := j.PausedBy()
	h.mu.Lock()
	var status monitor.Status
	if o.seat.c != nil {
		status = o.seat.c.Status()
	}
	if o.seat.paused != paused {
		o.seat.paused = paused
		o.seat.wake()
	}
	h.mu.Unlock()
	state := store.StateRunning
	if paused != "" {
		state = store.StatePaused
	}
	return h.say(j, state, status.Reason)
}

// say notes a state, where it is another one.
func (h *Host) say(j store.Hosted, state store.State, reason string) error {
	if j.State == state && j.Reason == reason {
		return nil
	}
	return h.store.SetState(j.Name, state, reason)
}

// note keeps how a job ended.
func (h *Host) note(e ended) error {
	h.open[e.name].over = true
	if e.cut {
		return nil
	}
	if errors.Is(e.err, store.ErrFenced) || errors.Is(e.err, store.ErrUnreachable) {
		return e.err // nothing is wrong with the job
	}
	state, reason := store.StateFinished, "its rounds are made"
	switch {
	case e.err == nil:
	case errors.Is(e.err, coordinator.ErrBudget):
		reason = e.err.Error()
	case errors.Is(e.err, coordinator.ErrStopped):
		state, reason = store.StateStopped, "by an operator"
	default:
		state, reason = store.StateFailed, e.err.Error()
	}
	h.log.Info("job over", "job", e.name, "state", state, "reason", reason)
	return h.store.SetState(e.name, state, reason)
}

// start opens a job and runs it.
func (h *Host) start(ctx context.Context, wg *sync.WaitGroup, j store.Hosted) {
	ctx, stop := context.WithCancelCause(ctx)
	s := &seat{h: h, name: j.Name, in: j.Pool, paused: j.PausedBy()}
	h.open[j.Name] = &opened{seat: s, stop: stop}
	h.mu.Lock()
	h.seats[j.Name] = s
	h.turns.enter(j.Name, j.Pool, j.Priority, s.wake)
	h.mu.Unlock()
	wg.Go(func() {
		defer stop(nil)
		err := h.play(ctx, s, j)
		cut := ctx.Err() != nil && !errors.Is(context.Cause(ctx), coordinator.ErrStopped)
		h.mu.Lock()
		h.turns.leave(j.Name)
		h.mu.Unlock()
		h.ended <- ended{j.Name, err, cut}
	})
}

// play is a job from its opening to its last round.
func (h *Host) play(ctx context.Context, s *seat, j store.Hosted) error {
	c, err := h.cfg.Open(j, filepath.Join(h.cfg.Dir, filepath.FromSlash(j.Folder)), s)
	if err != nil {
		return err
	}
	ledger, err := c.Ledger()
	if err == nil {
		err = s.settle(ledger, c)
	}
	if err == nil {
		err = h.cfg.Mount(j, c)
	}
	if err != nil {
		return errors.Join(err, c.Close())
	}
	h.mu.Lock()
	s.c = c
	h.mu.Unlock()
	return c.Run(ctx)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
