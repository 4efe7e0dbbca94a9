// Package monitor holds what a job publishes: its status, the bytes that crossed its sockets,
// finished rounds, lines of its log, and figures for Prometheus. A coordinator writes into a
// [Monitor]; its operator's pages, progress and metrics read it.
//
//	m := monitor.New(slog.Default().Handler())
//	m.Log().Info("round begins", "round", 7) // also on the dashboard
//	status := m.Status()
//
// There is one type of a job's status, of a finished round and of bytes by purpose, so that a
// figure is added in one place and copied nowhere.
//
// It shows counts, states and what has been released, never an update or anything about one device.
// [PublicStatus] is the part that everybody may see.
package monitor

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Monitor shows one job. Its methods are safe for concurrent use, except that only the goroutine
// that runs the job may call Recall, Publish, Ended and Measure.
type Monitor struct {
	meter    Meter
	metrics  *Metrics
	log      *slog.Logger
	lines    occurrences
	watchers atomic.Int32
	history  History // where records outlive the process; set by Recall
	whole    bool    // all earlier rounds are known; set by Recall

	mu      sync.Mutex
	view    Overview      // by mu: the last that was published
	public  PublicStatus  // by mu: what of it is everybody's
	result  Result        // by mu
	before  Parts         // by mu: what crossed the sockets of earlier processes
	rounds  []RoundRecord // by mu: that are over, oldest first; the last maxRecords
	made    int           // by mu: changes of rounds
	stamps  []int         // by mu: of each of rounds, what made was with its last change
	began   Parts         // by mu: what had crossed the sockets when the round began
	refused int64         // by mu: how many sessions had been refused when the round began
	changed chan struct{} // by mu: closed at the next change
}

// New returns the monitor of a job that logs to the handler, or nowhere if that is nil.
func New(to slog.Handler) *Monitor {
	if to == nil {
		to = slog.DiscardHandler
	}
	m := &Monitor{metrics: newMetrics(), changed: make(chan struct{})}
	m.log = slog.New(tee{to: &m.lines, next: to})
	return m
}

// Log passes lines on to the handler that New was given, and keeps the last of them.
func (m *Monitor) Log() *slog.Logger { return m.log }

// Meter counts the bytes of sockets.
func (m *Monitor) Meter() *Meter { return &m.meter }

// Metrics are what a coordinator counts.
func (m *Monitor) Metrics() *Metrics { return m.metrics }

// Publish makes a job's status and result visible, with the bytes so far, and returns the status.
// devices is the number of devices that answered the first turn of a round, over all rounds of this
// run and, if all are known, of earlier ones. settled says that no round is under way. v needs a cohort only if Monitor.Watched.
func (m *Monitor) Publish(v Overview, r Result, devices int, settled bool) Status {
	run := m.meter.parts()
	m.tell(func() {
		v.Status.Parts = m.before.plus(run)
		v.Status.Traffic = v.Status.Parts.traffic()
		r.Validation, r.Guarantees = v.Status.Validation, v.Status.Guarantees
		counted := run
		if m.whole {
			counted = v.Status.Parts
		}
		r.moved(counted, v.Status.Parts, devices)
		m.view, m.result = v, r
		m.public = v.Status.PublicStatus.after(m.public, settled)
	})
	return v.Status
}

// tell takes a change in and wakes those who follow.
func (m *Monitor) tell(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	close(m.changed)
	m.changed = make(chan struct{})
}

// Status is the state of the job, for the operator.
func (m *Monitor) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.view.Status
}

// PublicStatus is the part of the status that everybody may see, as it was when the last round
// ended. During a round it says only that there is one, and times are whole minutes, since the
// duration of a turn shows a slow device.
func (m *Monitor) PublicStatus() PublicStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.public
}

// Result is what the job has achieved so far.
func (m *Monitor) Result() Result {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.result
}

// Rounds lists the last 2000 finished rounds, including those of earlier processes.
func (m *Monitor) Rounds() []RoundRecord {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.rounds)
}

// LastEnded is when the last round ended; the zero time before the first.
func (m *Monitor) LastEnded() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.rounds) == 0 {
		return time.Time{}
	}
	return time.Unix(m.rounds[len(m.rounds)-1].Ended, 0)
}
