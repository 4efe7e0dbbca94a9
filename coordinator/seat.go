package coordinator

import (
	"crypto/subtle"
	"math/rand/v2"
	"time"

	"github.com/starling-fl/starling/coordinator/internal/fleet"
	"github.com/starling-fl/starling/coordinator/internal/link"
	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// join takes a proved identity in: one session an identity, the newer one only
// where it shows the older one's token.
func (c *Coordinator) join(ev joinEvent) error {
	d := c.fleet.Of(ev.s.id)
	if d != nil && d.Excluded {
		return &link.Refusal{Msg: excluded(d.Why)}
	}
	resumed := d != nil && d.Token != nil && subtle.ConstantTimeCompare(ev.token, d.Token) == 1
	if d != nil && d.Link != nil {
		if !resumed {
			return link.Refuse(wire.CodeDuplicate, 5*time.Second, "this identity is connected already")
		}
		d.Link.Kill(link.ErrReplaced)
		c.detach(d)
	}
	if c.fleet.Connected() >= 2*c.t.Job.Cohort.MaxConnected {
		return link.Refuse(wire.CodeBusy, c.retryAfter(), "too many devices are connected")
	}
	if err := c.showLog(ev.s.id, ev.held, ev.enrolled); err != nil {
		return err
	}
	token := sessionToken()
	if d == nil {
		d = c.addDevice(ev.s.id)
		c.log.Info("enrolled", "device", short(d.ID), "enrolled", c.fleet.Active())
	} else if d.Out {
		c.mustered = time.Time{} // it has come again
	}
	ev.s.device, d.Browser, d.Holds = d, ev.s.browser, c.keys.head.Size
	c.fleet.Connect(d, ev.s.Link, token, time.Now())
	c.metrics.Connected.Set(float64(c.fleet.Connected()))
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
func (c *Coordinator) seat(d *fleet.Device, resumed bool) {
	r := c.running
	if r == nil {
		// One that was away when its round ended may still believe in it.
		if resumed || c.fleet.Connected() > c.t.Job.Cohort.MaxConnected || !c.t.Job.Shard.Anonymous && !c.begins(c.fleet.Active()) {
			c.wait(d)
		}
		return
	}
	p := r.parts[d.N]
	if p == nil || p.dropped {
		c.wait(d)
		return
	}
	if r.m.Wants(d.N, round.Gathering) == round.Accepted {
		c.present(r, d)
		return
	}
	// It has a place. Without its session it has lost the round's keys: if any of
	// them is held here, or being judged, it is out, and must hear nothing more of a
	// round that it does not know.
	answered := r.m.Answered(d.N)
	if r.m.Wants(d.N, r.m.State()) == round.Out || !resumed && (answered != round.Gathering || p.judging) {
		c.exclude(r, d, "")
		c.wait(d)
		return
	}
	r.away.End(d)
	c.step(round.Back{Device: d.N})
	if answered == round.Gathering && p.last != nil {
		// The assignment, which may have been lost with the connection: a device that
		// has not seen it has nothing to resume.
		d.Link.Send(p.last)
	}
	if resumed && p.last != nil {
		var received uint64
		if p.assembly != nil {
			received = p.assembly.Received()
		}
		if answered >= round.Collecting {
			received = p.updateSize
		}
		d.Link.Send(link.Frame(&wire.Resume{Round: r.ID(), Held: heldTurns(answered), Received: received}))
	}
	if answered != round.Gathering && p.last != nil {
		d.Link.Send(p.last)
	}
}

// heldTurns is what a device is told of the turns that it has answered: bit i-1 is
// turn i.
func heldTurns(answered round.State) uint8 { return 1<<answered - 1 }

// wait is pace steering: when to come back, spread so that not all come at once.
func (c *Coordinator) wait(d *fleet.Device) {
	retry, full := c.retryAfter(), c.fleet.Connected() > c.t.Job.Cohort.MaxConnected
	if full {
		d.BackBy = time.Now().Add(retry + c.t.Job.Deadlines.Reconnect)
	}
	d.Told = c.fleet.Active()
	d.Link.Send(link.Frame(&wire.Wait{RetryMillis: millis(retry), Disconnect: full, Reason: truncate(c.waitsFor())}))
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
	if d == nil || d.Link != s.Link {
		return
	}
	c.detach(d)
	if r := c.running; r != nil && r.parts[d.N] != nil {
		r.away.Until(d, time.Now().Add(c.t.Job.Deadlines.Reconnect))
		c.linger(r, d.N)
	} else {
		c.publish()
	}
}

func (c *Coordinator) detach(d *fleet.Device) {
	c.fleet.Disconnect(d, time.Now())
	c.metrics.Connected.Set(float64(c.fleet.Connected()))
}

// fault notes a rejected message of a device that is connected.
func (c *Coordinator) fault(d *fleet.Device, what string) {
	c.metrics.Faults.Inc()
	c.log.Debug("rejected", "device", short(d.ID), "what", what)
	d.Link.Useless()
}
