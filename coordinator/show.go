package coordinator

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/starling-fl/starling/coordinator/internal/fleet"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/dp/accounting"
)

// publish makes the status and the result visible; the cohort only where there is
// somebody who looks, since that walks it.
func (c *Coordinator) publish() {
	c.published = time.Now()
	p := &c.status
	p.Enrolled, p.Connected, p.ClipNorm = c.fleet.Active(), c.fleet.Connected(), c.core.ClipNorm()
	if p.State == monitor.StateFinished || p.State == monitor.StateStopped {
		p.Connected = 0 // all were sent away; nobody counts those that are slow to leave
	}
	if !c.started.IsZero() {
		p.Elapsed = time.Since(c.started)
	}
	t := &c.total
	if t.Adapter == nil || t.Rounds != int(c.core.Version()) {
		t.Adapter = c.core.Adapter()
	}
	t.Rounds, t.Checkpoint, t.ClipNorm = int(c.core.Version()), c.checkpointDir(), c.core.ClipNorm()
	t.LedgerHead = fmt.Sprintf("%x", c.head)
	view, r := monitor.Overview{Status: *p}, c.running
	if r != nil && c.monitor.Watched() {
		view.Cohort, view.Browsers = c.cohortMap(r)
		if next := r.due.Next(); !next.IsZero() {
			view.StateLeft = max(0, time.Until(next).Milliseconds())
		}
	}
	shown := c.monitor.Publish(view, *t, c.deviceRds, r == nil || r.finish != nil)
	if c.cfg.Progress != nil {
		c.cfg.Progress(shown)
	}
}

// cohortMap says where each drawn device stands, by device number.
func (c *Coordinator) cohortMap(r *running) (standing, browsers string) {
	numbers := make([]round.Device, 0, len(r.parts))
	for n := range r.parts {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	var s, b strings.Builder
	for _, n := range numbers {
		d := c.fleet.At(n)
		s.WriteByte(standingOf(r, d, r.parts[n]))
		if d.Browser {
			b.WriteByte('b')
		} else {
			b.WriteByte('n')
		}
	}
	return s.String(), b.String()
}

func standingOf(r *running, d *fleet.Device, p *participant) byte {
	answered := r.m.Answered(d.N)
	_, away := r.away.Of(d)
	switch {
	case p.dropped && !r.m.Joined(d.N):
		return monitor.StandingAbsent
	case p.dropped:
		return monitor.StandingDropped
	case answered >= round.Unmasking:
		return monitor.StandingRevealed
	case away:
		return monitor.StandingAway
	case answered >= round.Collecting:
		return monitor.StandingMasked
	case answered >= round.Keying:
		return monitor.StandingTraining
	case d.Link != nil:
		return monitor.StandingJoined
	}
	return monitor.StandingAbsent
}

// ended shows a round that is over.
func (c *Coordinator) ended(r *running, released, charged bool, reason string) {
	rec := monitor.RoundRecord{
		Ended:   time.Now().Unix(),
		RoundID: c.status.RoundID, Turnout: c.status.Turnout, Guarantees: c.status.Guarantees,
		Released: released, Reason: reason, Seconds: time.Since(r.began).Seconds(),
	}
	rec.ClipNorm = r.Norm()
	if released {
		rec.Fleet = r.Fleet()
	}
	moved := c.monitor.Ended(rec)
	outcome := monitor.OutcomeReleased
	if !released {
		if outcome = monitor.OutcomeAbandoned; charged {
			outcome = monitor.OutcomeCharged
		}
	}
	c.metrics.RoundOver(outcome, time.Since(r.began), len(r.parts), moved)
	c.metrics.State(r.reached, time.Since(r.entered))
	for s := round.Keying; s <= round.Unmasking; s++ {
		c.metrics.Answers(s, r.answers[s].After, r.answers[s].Silent)
	}
}

// recall shows the job as earlier processes left it.
func (c *Coordinator) recall() error {
	if err := c.monitor.Recall(c.store); err != nil {
		return err
	}
	for _, rec := range c.monitor.Rounds() {
		c.status.RoundID = rec.RoundID
		if c.monitor.Whole() {
			c.total.Dropped, c.total.Absent = c.total.Dropped+rec.Dropped, c.total.Absent+rec.Absent
			if c.deviceRds += rec.Cohort - rec.Absent; !rec.Released {
				c.total.Abandoned++
			}
		}
		if rec.Accuracy != nil {
			c.status.Measured = monitor.Measured{Validation: rec.Accuracy, ValidationVersion: rec.Version}
		}
	}
	return nil
}

// Status is the state of the job, for its operator.
func (c *Coordinator) Status() monitor.Status { return c.monitor.Status() }

// PublicStatus is the part of Status that anybody may see, as it was at the end of the last round.
func (c *Coordinator) PublicStatus() monitor.PublicStatus { return c.monitor.PublicStatus() }

// Result is what the job has achieved so far.
func (c *Coordinator) Result() monitor.Result { return c.monitor.Result() }

// Rounds lists the last 2000 finished rounds, including those of earlier processes.
func (c *Coordinator) Rounds() []monitor.RoundRecord { return c.monitor.Rounds() }

// Values is the number of values that a round of the given rank trains.
func (c *Coordinator) Values(rank int) int { return c.t.Layout.Size(rank) }

// Follow starts following the job for a dashboard; nil if too many do so already.
func (c *Coordinator) Follow() *monitor.Follower { return c.monitor.Follow() }

// Meter counts the bytes of sockets.
func (c *Coordinator) Meter() *monitor.Meter { return c.traffic }

// Metrics are the Prometheus collectors for the operator.
func (c *Coordinator) Metrics() []prometheus.Collector {
	var budget *accounting.Budget
	if c.private() {
		budget = &c.t.Budget
	}
	return c.monitor.Collectors(budget)
}

// Log is the logger for events outside of the engine; the dashboard shows them too.
func (c *Coordinator) Log() *slog.Logger { return c.log }
