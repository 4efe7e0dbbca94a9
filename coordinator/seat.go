package coordinator

import (
	"crypto/subtle"
	"math/rand/v2"
	"time"

	"github.com/starling-fl/starling/coordinator/internal/link"
	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/internal/wire"
)

// join takes a proved identity in: one session an identity, the newer one only
// where it shows the older one's token.
func (c *Coordinator) join(ev joinEvent) error {
	d := c.devices[ev.s.id]
	if d != nil && d.excluded {
		return &link.Refusal{Msg: excluded(d.why)}
	}
	resumed := d != nil && d.token != nil && subtle.ConstantTimeCompare(ev.token, d.token) == 1
	if d != nil && d.sess != nil {
		if !resumed {
			return link.Refuse(wire.CodeDuplicate, 5*time.Second, "this identity is connected already")
		}
		d.sess.Kill(link.ErrReplaced)
		c.detach(d)
	}
	if c.connected >= 2*c.t.job.Cohort.MaxConnected {
		return link.Refuse(wire.CodeBusy, c.retryAfter(), "too many devices are connected")
	}
	if err := c.showLog(ev.s.id, ev.held, ev.enrolled); err != nil {
		return err
	}
	token := sessionToken()
	if d == nil {
		d = c.addDevice(ev.s.id)
		c.log.Info("enrolled", "device", short(d.id), "enrolled", len(c.order))
	}
	d.token, d.sess, ev.s.device, d.browser = token, ev.s, d, ev.s.browser
	d.holds = c.keys.head.Size
	d.joined, d.backBy = time.Now(), time.Time{}
	c.connected++
	c.metrics.Connected.Set(float64(c.connected))
	ev.enrolled.Session, ev.enrolled.Resumed = token, resumed
	ev.s.Send(link.Frame(ev.enrolled))
	c.seat(d, resumed)
	if c.running == nil {
		c.publish()
	}
	return nil
}

// seat gives a device that connected its place in the running round, or tells
// it to wait. Who was not drawn, came late, or lost its state is told the same.
func (c *Coordinator) seat(d *device, resumed bool) {
	r := c.running
	if r == nil {
		// One that was away when its round ended may still believe in it.
		if resumed || c.connected > c.t.job.Cohort.MaxConnected {
			c.wait(d)
		}
		return
	}
	p := r.parts[d.n]
	if p == nil || p.dropped {
		c.wait(d)
		return
	}
	if r.m.Wants(d.n, round.Gathering) == round.Accepted {
		c.present(r, d)
		return
	}
	// It has a place. Without its session it has lost the round's keys: if any of
	// them is held here, or being judged, it is out, and must hear nothing more of a
	// round that it does not know.
	answered := r.m.Answered(d.n)
	if r.m.Wants(d.n, r.m.State()) == round.Out || !resumed && (answered != round.Gathering || p.judging) {
		c.exclude(r, d, "")
		c.wait(d)
		return
	}
	r.away.end(d)
	c.step(round.Back{Device: d.n})
	if answered == round.Gathering && p.last != nil {
		// The assignment, which may have been lost with the connection: a device that
		// has not seen it has nothing to resume.
		d.sess.Send(p.last)
	}
	if resumed && p.last != nil {
		var received uint64
		if p.assembly != nil {
			received = p.assembly.Received()
		}
		if answered >= round.Collecting {
			received = p.updateSize
		}
		d.sess.Send(link.Frame(&wire.Resume{Round: r.id, Held: heldTurns(answered), Received: received}))
	}
	if answered != round.Gathering && p.last != nil {
		d.sess.Send(p.last)
	}
}

// heldTurns is what a device is told of the turns that it has answered: bit i-1 is
// turn i.
func heldTurns(answered round.State) uint8 { return 1<<answered - 1 }

// wait is pace steering: when to come back, spread so that not all come at once.
func (c *Coordinator) wait(d *device) {
	retry, full := c.retryAfter(), c.connected > c.t.job.Cohort.MaxConnected
	if full {
		d.farewell(retry + c.t.job.Deadlines.Reconnect)
	}
	d.sess.Send(link.Frame(&wire.Wait{RetryMillis: millis(retry), Disconnect: full, Reason: "not in this round"}))
}

// retryAfter estimates when the next round gathers, times a factor drawn from
// 1..1.5.
func (c *Coordinator) retryAfter() time.Duration {
	left := c.pace
	if r := c.running; r != nil {
		left = max(0, c.pace-time.Since(r.began))
	}
	left = max(left, 500*time.Millisecond)
	spread := time.Duration(rand.Int64N(int64(left)/2 + 1)) // protects nobody: it need not be secret
	return min(left+spread, 24*time.Hour)
}

// left notes that a session is over.
func (c *Coordinator) left(s *session) {
	d := s.device
	if d == nil || d.sess != s {
		return
	}
	c.detach(d)
	if r := c.running; r != nil && r.parts[d.n] != nil {
		r.away.until(d, time.Now().Add(c.t.job.Deadlines.Reconnect))
		c.linger(r, d.n)
	} else {
		c.publish()
	}
}

func (c *Coordinator) detach(d *device) {
	c.lost(d)
	d.sess.Abandon()
	d.sess.device = nil
	d.sess = nil
	c.connected--
	c.metrics.Connected.Set(float64(c.connected))
}

// fault notes a rejected message.
func (c *Coordinator) fault(s *session, what string) {
	c.metrics.Faults.Inc()
	c.log.Debug("rejected", "device", short(s.id), "what", what)
	s.Useless()
}
