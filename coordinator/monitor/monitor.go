// Package monitor is what a job shows of itself: where it stands, what has crossed its
// sockets, the rounds that are over, the lines of its log, and figures for Prometheus.
//
// A coordinator writes, its operator's pages, progress and metrics read. There is one type
// of a job's status, of a round that is over and of bytes by what they were for: a figure
// is added in one place and copied in none.
//
// What is shown is counts, states and what has been released, never an update or anything
// of one device. [PublicStatus] is the part that everybody may see.
package monitor

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Monitor shows one job. Its methods are safe from any goroutine; Recall, Publish, Ended
// and Measure are called by the one that runs the job.
type Monitor struct {
	meter    Meter
	metrics  *Metrics
	log      *slog.Logger
	lines    occurrences
	watchers atomic.Int32
	history  History // where records outlive the process; set by Recall

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

// New makes a monitor of a job that logs to a handler, or nowhere where that is nil.
func New(to slog.Handler) *Monitor {
	if to == nil {
		to = slog.DiscardHandler
	}
	m := &Monitor{metrics: newMetrics(), changed: make(chan struct{})}
	m.log = slog.New(tee{to: &m.lines, next: to})
	return m
}

// Log hands lines on to the handler that New was given, and keeps the last of them.
func (m *Monitor) Log() *slog.Logger { return m.log }

// Meter is where the bytes of sockets are counted.
func (m *Monitor) Meter() *Meter { return &m.meter }

// Metrics are what a coordinator counts.
func (m *Monitor) Metrics() *Metrics { return m.metrics }

// Publish makes a job's status and result visible, with the bytes so far, and returns the
// status. devices is how many answered the first turn of a round, over all rounds of this
// run. settled says that no round is under way; of the cohort see [Monitor.Watched].
func (m *Monitor) Publish(v Overview, r Result, devices int, settled bool) Status {
	run := m.meter.parts()
	m.tell(func() {
		v.Status.Parts = m.before.plus(run)
		v.Status.Traffic = v.Status.Parts.traffic()
		r.Validation, r.Guarantees = v.Status.Validation, v.Status.Guarantees
		r.moved(run, v.Status.Parts, devices)
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

// Status is where the job stands, for the operator.
func (m *Monitor) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.view.Status
}

// PublicStatus is what everybody may see of it: where the job stood when its last
// round was over. In a round it says only that there is one, and time comes in whole
// minutes: how long a turn takes shows a slow device.
func (m *Monitor) PublicStatus() PublicStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.public
}

// Result is what the job has come to so far.
func (m *Monitor) Result() Result {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.result
}

// Rounds are those that are over, the last 2000, those of earlier processes
// included.
func (m *Monitor) Rounds() []RoundRecord {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.rounds)
}

// LastEnded is when the last round was over; the zero time before the first.
func (m *Monitor) LastEnded() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.rounds) == 0 {
		return time.Time{}
	}
	return time.Unix(m.rounds[len(m.rounds)-1].Ended, 0)
}
