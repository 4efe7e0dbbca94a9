package coordinator

import (
	"time"

	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/internal/wire"
)

// presence is what the engine remembers of a device beside its session: enough
// to tell, when the device is drawn and not there, whether it is worth waiting
// for. None of it enters the draw, or what a round costs.
type presence struct {
	ready  bool      // in this session: it can be assigned
	was    bool      // it was ready at some time in this process
	joined time.Time // when the session began
	gone   time.Time // when the last session ended; zero: it had none in this process
	backBy time.Time // when it was told to be back, where it was told to hang up; else zero
	missed int       // rounds in a row that it was connected in and silent
	// overdue are those of them in which the job's own deadline passed, not one that
	// follows the fleet.
	overdue int
	rests   time.Time // until when it is taken into no round because of that
}

// maxRests bounds the rest of a device that is silent in every round: it is taken
// into one of 64.
const maxRests = 6

// nowReady takes a device's word that it can be assigned, and with it into a
// round that gathers.
func (c *Coordinator) nowReady(s *session) {
	d := s.device
	if d.ready {
		s.Useless()
		return
	}
	d.ready, d.was = true, true
	c.ready++
	if r := c.running; r != nil && r.parts[d.n] != nil && r.m.Wants(d.n, round.Gathering) == round.Accepted {
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

// there tells whether a device could be assigned now.
func (d *device) there(now time.Time) bool { return d.ready && !now.Before(d.rests) }

// available is how many devices could be assigned now: those that are ready, but for
// those that rest.
func (c *Coordinator) available(now time.Time) int {
	n := c.ready
	for d := range c.resting {
		switch {
		case !now.Before(d.rests):
			delete(c.resting, d)
		case d.ready:
			n--
		}
	}
	return n
}

// present counts a drawn device in where it is ready, and otherwise says until
// when the gathering waits for it.
func (c *Coordinator) present(r *running, d *device) {
	r.away.end(d)
	now := time.Now()
	if d.there(now) {
		c.step(round.Received{Device: d.n, Turn: round.Gathering})
		return
	}
	if until := c.expected(d); now.Before(until) {
		r.away.until(d, until)
		return
	}
	c.step(round.Lost{Device: d.n})
}

// expected is until when a drawn device that cannot be assigned now is worth
// waiting for.
func (c *Coordinator) expected(d *device) time.Time {
	limits := c.t.job.Deadlines
	patience := limits.Reconnect
	if c.pace > 0 {
		patience = c.patience(c.pace)
	}
	if !c.rnd.secret() {
		patience = limits.Gather // a run that repeats must not depend on who is fast
	}
	switch {
	case d.missed > 0:
		return time.Time{} // the next word is its own
	case d.sess != nil:
		return d.joined.Add(patience)
	case !d.backBy.IsZero():
		return d.backBy
	case d.was:
		return d.gone.Add(patience)
	case d.gone.IsZero():
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
	limits, now := c.t.job.Deadlines, time.Now()
	if !c.returnedBy.IsZero() || c.t.sampled() || !c.rnd.secret() || r.m.State() != round.Gathering ||
		float64(c.available(now)) < limits.Enough*float64(len(r.parts)) {
		return
	}
	c.returnedBy = now.Add(limits.Grace)
	for d := range r.away.of {
		if d.sess == nil && d.gone.IsZero() && c.returnedBy.Before(d.away) {
			r.away.until(d, c.returnedBy)
		}
	}
}

// patience is how long those who may come back are waited for where nobody else
// works: a tenth of the work that waits with them, within Reconnect. What the
// dropouts of a round cost it is bounded by that, however long Reconnect is.
func (c *Coordinator) patience(work time.Duration) time.Duration {
	most := c.t.job.Deadlines.Reconnect
	return min(most, max(most/20, work/10))
}

// linger shortens the wait for devices whose connection broke, once they are all
// that a device's shard still waits for and it can do without them. Below its
// threshold the shard needs them: there the wait is Reconnect.
func (c *Coordinator) linger(r *running, n round.Device) {
	if len(r.away.of) == 0 || r.m.State() == round.Gathering || c.t.sampled() {
		return // of those that coins drew nobody's wait depends on who else is there
	}
	_, open, enough := r.m.Missing(n)
	if open == 0 || !enough {
		return
	}
	shard := r.m.Shard(n)
	var awaited []*device
	for d := range r.away.of {
		if r.m.Shard(d.n) != shard {
			continue
		}
		if holds, _, _ := r.m.Missing(d.n); holds {
			awaited = append(awaited, d)
		}
	}
	if len(awaited) < open {
		return // others work
	}
	now := time.Now()
	until := now.Add(c.patience(r.due.lasted(shard, now)))
	for _, d := range awaited {
		if until.Before(d.away) {
			r.away.until(d, until)
		}
	}
}

// hopeless closes a gathering that nobody will complete: too few are there, and
// too few of the others have been of late. Without it the deadline would decide,
// because of devices that were never ready.
func (c *Coordinator) hopeless(now time.Time) {
	r := c.running
	if r == nil || r.finish != nil || r.fatal != nil || r.m.State() != round.Gathering || len(r.away.of) > 0 {
		return
	}
	limits, hope := c.t.job.Deadlines, 0
	for n := range r.parts {
		d := c.order[n]
		switch recent := now.Add(-limits.Gather); {
		case d.missed > 0 && !d.ready:
		case d.there(now), d.sess == nil && d.was && d.gone.After(recent):
			hope++
		}
	}
	if hope < c.t.job.Shard.Floor {
		c.step(round.Deadline{Shard: round.Whole, State: round.Gathering})
	}
}

// silent notes that a drawn device, where it is connected and was assigned, let a
// state of the round pass without a word. It is absent until it says that it is
// ready, and rests the longer the oftener this happens in a row: it hangs, or is too
// slow for the job.
func (c *Coordinator) silent(r *running, n round.Device, s round.State) {
	p, d := r.parts[n], c.order[n]
	if p.dropped || p.last == nil || d.sess == nil {
		return
	}
	c.unready(d)
	if s != round.Gathering {
		r.answers[s].silent++
	}
	r.silent = append(r.silent, d)
	if r.limits[s] == c.t.ownLimit(s) {
		d.overdue++
	}
	if d.missed++; d.missed > 1 {
		d.rests = time.Now().Add(c.pace * time.Duration(1<<min(d.missed-1, maxRests)-1))
		c.resting[d] = struct{}{}
	}
}

// unready notes that a device cannot be assigned until it says that it can.
func (c *Coordinator) unready(d *device) {
	if d.ready {
		d.ready = false
		c.ready--
	}
}

// farewell notes that a device was told to hang up, and until when it is expected.
func (d *device) farewell(retry time.Duration) {
	d.backBy = time.Now().Add(retry)
}

// lost notes that a device's session has ended.
func (c *Coordinator) lost(d *device) {
	c.unready(d)
	d.gone = time.Now()
}

// dropped is what a silent device is told.
func dropped(r *running, reason string, retry time.Duration) *wire.Outcome {
	return &wire.Outcome{Round: r.id, Result: wire.OutcomeDropped, Reason: truncate(reason), RetryMillis: millis(retry)}
}
