package coordinator

import (
	"time"

	"github.com/starling-fl/starling/coordinator/internal/fleet"
	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// nowReady takes a device's word that it can be assigned, and with it into a
// round that gathers.
func (c *Coordinator) nowReady(s *session) {
	d := s.device
	if !c.fleet.NowReady(d) {
		s.Useless()
		return
	}
	if r := c.running; r != nil && r.parts[d.N] != nil && r.m.Wants(d.N, round.Gathering) == round.Accepted {
		c.present(r, d)
		c.returned(r)
		if time.Since(c.published) > 100*time.Millisecond { // who is back is part of the status
			c.publish()
		}
		return
	}
	if c.running == nil {
		c.publish()
	}
}

// present counts a drawn device in where it is ready, and otherwise says until
// when the gathering waits for it.
func (c *Coordinator) present(r *running, d *fleet.Device) {
	r.away.End(d)
	now := time.Now()
	if d.There(now) {
		c.step(round.Received{Device: d.N, Turn: round.Gathering})
		return
	}
	if until := c.expected(d); now.Before(until) {
		r.away.Until(d, until)
		return
	}
	c.step(round.Lost{Device: d.N})
}

// expected is until when a drawn device that cannot be assigned now is worth
// waiting for.
func (c *Coordinator) expected(d *fleet.Device) time.Time {
	limits := c.t.Job.Deadlines
	patience := limits.Reconnect
	if c.pace > 0 {
		patience = c.patience(c.pace)
	}
	if !c.rnd.Secret() {
		patience = limits.Gather // a run that repeats must not depend on who is fast
	}
	switch {
	case d.Missed > 0:
		return time.Time{} // the next word is its own
	case d.Link != nil:
		return d.Joined.Add(patience)
	case !d.BackBy.IsZero():
		return d.BackBy
	case d.Was:
		return d.Gone.Add(patience)
	case d.Gone.IsZero():
		until := c.started.Add(limits.Gather)
		if by := c.returnedBy; !by.IsZero() && by.Before(until) {
			return by
		}
		return until
	}
	return time.Time{} // it came and went without ever being ready
}

// returned shortens the wait for devices that have not come since this process began,
// once deadlines.enough of the cohort are there: to deadlines.grace, as that of a round's
// last shards. Who was away when a coordinator was killed would hold its first round up
// for deadlines.gather, and with it all who are back.
func (c *Coordinator) returned(r *running) {
	limits, now := c.t.Job.Deadlines, time.Now()
	if !c.returnedBy.IsZero() || c.t.Sampled() || !c.rnd.Secret() || r.m.State() != round.Gathering ||
		float64(c.fleet.Available(now)) < limits.Enough*float64(len(r.parts)) {
		return
	}
	c.returnedBy = now.Add(limits.Grace)
	for d, until := range r.away.All() {
		if d.Link == nil && d.Gone.IsZero() && c.returnedBy.Before(until) {
			r.away.Until(d, c.returnedBy)
		}
	}
}

// patience is how long those who may come back are waited for where nobody else
// works: a tenth of the work that waits with them, within Reconnect. What the
// dropouts of a round cost it is bounded by that, however long Reconnect is.
func (c *Coordinator) patience(work time.Duration) time.Duration {
	most := c.t.Job.Deadlines.Reconnect
	return min(most, max(most/20, work/10))
}

// linger shortens the wait for devices whose connection broke, once they are all
// that a device's shard still waits for and it can do without them. Below its
// threshold the shard needs them: there the wait is Reconnect.
func (c *Coordinator) linger(r *running, n round.Device) {
	if r.away.Len() == 0 || r.m.State() == round.Gathering || c.t.Sampled() {
		return // of those that coins drew nobody's wait depends on who else is there
	}
	_, open, enough := r.m.Missing(n)
	if open == 0 || !enough {
		return
	}
	shard := r.m.Shard(n)
	var awaited []*fleet.Device
	for d := range r.away.All() {
		if r.m.Shard(d.N) != shard {
			continue
		}
		if holds, _, _ := r.m.Missing(d.N); holds {
			awaited = append(awaited, d)
		}
	}
	if len(awaited) < open {
		return // others work
	}
	now := time.Now()
	until := now.Add(c.patience(r.due.Lasted(shard, now)))
	for _, d := range awaited {
		if at, _ := r.away.Of(d); until.Before(at) {
			r.away.Until(d, until)
		}
	}
}

// hopeless closes a gathering that nobody will complete: too few are there, and
// too few of the others have been of late. Without it the deadline would decide,
// because of devices that were never ready.
func (c *Coordinator) hopeless(now time.Time) {
	r := c.running
	if r == nil || r.finish != nil || r.fatal != nil || r.m.State() != round.Gathering || r.away.Len() > 0 {
		return
	}
	limits, hope := c.t.Job.Deadlines, 0
	for n := range r.parts {
		d := c.fleet.At(n)
		switch recent := now.Add(-limits.Gather); {
		case d.Missed > 0 && !d.Ready:
		case d.There(now), d.Link == nil && d.Was && d.Gone.After(recent):
			hope++
		}
	}
	if hope < c.t.Job.Shard.Floor {
		c.step(round.Deadline{Shard: round.Whole, State: round.Gathering})
	}
}

// silent notes that a drawn device, where it is connected and was assigned, let a
// state of the round pass without a word.
func (c *Coordinator) silent(r *running, n round.Device, s round.State) {
	p, d := r.parts[n], c.fleet.At(n)
	if p.dropped || p.last == nil || d.Link == nil {
		return
	}
	if s != round.Gathering {
		r.answers[s].Silent++
	}
	r.silent = append(r.silent, d)
	c.fleet.Silent(d, r.limits[s] == ownLimit(c.t, s), c.pace, time.Now())
}

// dropped is what a silent device is told.
func dropped(r *running, reason string, retry time.Duration) *wire.Outcome {
	return &wire.Outcome{Round: r.ID(), Result: wire.OutcomeDropped, Reason: truncate(reason), RetryMillis: millis(retry)}
}
