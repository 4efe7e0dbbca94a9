package coordinator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/starling-fl/starling/coordinator/internal/link"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/secagg"
)

// runRound makes one round. released says whether a checkpoint was committed;
// an error ends Run.
func (c *Coordinator) runRound(ctx context.Context) (released bool, err error) {
	known := len(c.spent)
	r, err := c.draw()
	if err != nil {
		return false, err
	}
	c.running = r
	c.health.round(r.began, r.longest())
	r.life, r.over = context.WithCancel(c.life)
	defer func() {
		c.running = nil
		c.health.round(time.Time{}, 0)
		r.over()
		r.unjudged.take()
		r.unmasking.Wait()
		r.adding.Wait()
		for _, s := range r.shards {
			s.Close()
		}
		if r.noise != nil {
			r.noise.Close()
		}
		c.metrics.InRounds.Add(time.Since(r.began).Seconds())
		if e := c.endShared(r, known, released); e != nil {
			err = errors.Join(err, &fatalError{e})
		}
	}()
	c.status.RoundID = monitor.RoundID{Round: r.ID(), Version: int(c.core.Version()), Rank: r.Rank()}
	c.status.Turnout = monitor.Turnout{Cohort: len(r.parts)}
	c.status.State, c.status.Reason, c.status.Beginning = round.Gathering.String(), "", nil
	c.metrics.Round.Set(float64(r.ID()))
	c.metrics.Rank.Set(float64(r.Rank()))
	c.metrics.ClipNorm.Set(c.core.ClipNorm())
	c.metrics.Cohort.Set(float64(len(r.parts)))
	c.metrics.Drawn.Add(float64(len(r.parts)))
	if err := c.prepare(ctx, r); err != nil {
		// Nothing was said yet; what failed will fail again.
		end := func() error { return c.store.Abandon(r.ID(), "it could not be prepared") }
		if c.t.Sampled() {
			end = func() error { return c.charge(r, "it could not be prepared") }
		}
		return false, errors.Join(&fatalError{err}, end())
	}
	c.gather(r)
	c.hopeless(time.Now())
	for r.finish == nil && r.fatal == nil {
		if err := c.pump(ctx, time.Time{}); err != nil {
			if ctx.Err() != nil && r.fatal == nil {
				c.step(round.Abort{Reason: "the coordinator is stopping"})
			}
			return false, errors.Join(err, r.fatal)
		}
	}
	return r.finish != nil && r.finish.State == round.Done, r.fatal
}

// gather begins the round with those who are there, and in a round that is not sampled
// waits for others who are worth it.
func (c *Coordinator) gather(r *running) {
	c.step(round.Start{})
	for _, d := range c.fleet.All() {
		switch {
		case r.parts[d.N] == nil || r.m.State() != round.Gathering:
		case c.t.Job.Sampled() && c.rnd.Secret() && !r.parts[d.N].there:
			// It did not count when the quorum was taken, and its coin may not keep the
			// round open for others, nor fill groups that were made for those there.
			c.step(round.Expelled{Device: d.N})
		default:
			c.present(r, d)
		}
	}
	c.returned(r)
}

// step drives the machine with one event and everything that follows from it.
func (c *Coordinator) step(ev round.Event) {
	r := c.running
	for queue := []round.Event{ev}; len(queue) > 0; queue = queue[1:] {
		for _, e := range r.m.Take(queue[0]) {
			follow, err := c.do(r, e)
			if err != nil {
				r.fatal = &fatalError{err}
				return
			}
			if follow != nil {
				queue = append(queue, follow)
			}
		}
	}
}

// do carries out one effect. What it returns follows all effects of the step;
// an error is fatal: the store or the program is broken.
func (c *Coordinator) do(r *running, e round.Effect) (round.Event, error) {
	switch e := e.(type) {
	case round.Await:
		r.due.Arm(e.Shard, e.State, time.Now().Add(e.Timeout))
		if e.Shard != round.Whole && (e.State <= r.reached || r.m.State() != e.State) {
			return nil, nil // not the last shard to get there
		}
		if now := time.Now(); e.State != r.reached {
			c.metrics.State(r.reached, now.Sub(r.entered))
			r.reached, r.entered = e.State, now
		}
		in, dropped, absent := r.m.Counts()
		c.status.State, c.status.Dropped, c.status.Absent, c.status.Answered = e.State.String(), dropped, absent, 0
		c.publish()
		return nil, c.store.Journal(r.ID(), e.State.String(), fmt.Sprintf("rank %d, %d devices, %d out, %d absent", r.Rank(), in, dropped, absent))
	case round.Assign:
		return nil, c.assign(r, e.Devices)
	case round.Cut:
		return c.cutShards(r)
	case round.SendRoster:
		s := r.shards[e.Shard]
		f, err := c.turnFrame(r, secagg.TurnAdvertise, s.Roster(), r.limits[round.Sharing])
		if err != nil {
			return nil, err
		}
		c.broadcast(r, c.deviceNumbers(s.Members()), f)
	case round.DeliverShares:
		s := r.shards[e.Shard]
		if err := s.CloseSharing(); err != nil {
			return shardFailed(e.Shard, err)
		}
		for _, n := range e.Members {
			f, err := c.turnFrame(r, secagg.TurnShare, s.Delivery(c.fleet.At(n).ID), r.limits[round.Collecting])
			if err != nil {
				return nil, err
			}
			c.broadcast(r, []round.Device{n}, f)
		}
	case round.PersistSurvivors:
		return nil, c.closeCollecting(r, e.Shard, e.Members)
	case round.AnnounceSurvivors:
		if f := r.survivors[e.Shard]; f != nil {
			c.broadcast(r, e.Members, f)
		}
	case round.PersistIntent:
		if c.t.Sampled() { // stored with the draw
			return round.Stored{Shard: round.Whole}, c.store.Journal(r.ID(), "unmasking", "intent of the draw")
		}
		if err := c.store.PersistIntent(r.Event()); err != nil {
			return nil, err
		}
		return round.Stored{Shard: round.Whole}, nil
	case round.SendSignatures:
		s := r.shards[e.Shard]
		signs, err := s.CloseConfirming()
		if err != nil {
			return shardFailed(e.Shard, err)
		}
		f, err := c.turnFrame(r, secagg.TurnConfirm, signs, r.limits[round.Unmasking])
		if err != nil {
			return nil, err
		}
		c.broadcast(r, e.Members, f)
	case round.FailShard:
		c.metrics.ShardsFailed.Inc()
		c.log.Warn("shard failed", "round", r.ID(), "shard", e.Shard, "reason", e.Reason)
		for _, n := range c.deviceNumbers(r.shards[e.Shard].Members()) {
			c.tellDropped(r, n, "its shard failed")
		}
		r.shards[e.Shard].Close()
	case round.Drop:
		for _, n := range e.Devices {
			c.silent(r, n, e.State)
			c.tellDropped(r, n, fmt.Sprintf("did not answer in %v", e.State))
		}
	case round.Reject:
		if d := c.fleet.At(e.Device); d.Link != nil {
			c.fault(d, fmt.Sprintf("%v: %v", e.Turn, e.Refusal))
		}
	case round.Release:
		return c.unmask(r, e)
	case round.Charge:
		return nil, c.charge(r, e.Reason)
	case round.Finish:
		return nil, c.finish(r, e)
	default:
		return nil, fmt.Errorf("coordinator: effect %T is unknown", e)
	}
	return nil, nil
}

// shardFailed turns secagg's verdict on a shard into an event; any other error
// is fatal.
func shardFailed(shard int, err error) (round.Event, error) {
	var bad *secagg.ShardError
	if errors.As(err, &bad) {
		return round.ShardFailed{Shard: shard, Reason: bad.Err.Error()}, nil
	}
	return nil, fmt.Errorf("coordinator: shard %d: %w", shard, err)
}

// cutShards closes turn 1 and cuts or deals the shards.
func (c *Coordinator) cutShards(r *running) (round.Event, error) {
	rnd := c.rnd.Stream("shards", r.ID())
	var shards []*secagg.Server
	var left []secagg.ID
	var err error
	if c.t.Job.Grouped() {
		shards, left, err = r.keying.Deal(rnd, r.groups)
	} else {
		shards, err = r.keying.CutTo(rnd, c.shardLimit())
	}
	if errors.Is(err, secagg.ErrBelowFloor) {
		return round.Abort{Reason: err.Error()}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("coordinator: cutting shards: %w", err)
	}
	if trim := c.t.Job.Shard.Trim; len(shards) <= 2*trim { // nobody has been told a shard yet
		for _, s := range shards {
			s.Close()
		}
		return round.Abort{Reason: fmt.Sprintf("%d devices make %d shards, shard.trim = %d needs %d", r.keying.Len(), len(shards), trim, 2*trim+1)}, nil
	}
	if c.keys.signer != nil {
		for _, s := range shards {
			if err := c.proveShard(s); err != nil {
				return nil, err
			}
		}
	}
	r.shards = shards
	r.survivors = make([][]byte, len(shards))
	ev := round.Sharded{Left: c.deviceNumbers(left)}
	for _, n := range ev.Left {
		r.parts[n].noRoom = true
		c.tellDropped(r, n, "no shard has room for it")
	}
	for _, s := range shards {
		members := c.deviceNumbers(s.Members())
		c.metrics.Shards.Observe(float64(len(members)))
		c.deviceRds += len(members)
		ev.Shards = append(ev.Shards, round.Shard{Members: members, Threshold: s.Threshold()})
	}
	return ev, nil
}

// closeCollecting closes turn 3 of a shard. Its set is announced once it is on the
// disk, byte for byte.
//
// Whose vector is in a sum is secagg's to say, when a turn closes the machine's: here
// the two meet.
func (c *Coordinator) closeCollecting(r *running, shard int, members []round.Device) error {
	sv, err := r.shards[shard].CloseCollecting()
	if err != nil {
		return fmt.Errorf("coordinator: shard %d: %w", shard, err)
	}
	if n := r.shards[shard].Survivors(); n != len(members) {
		return fmt.Errorf("coordinator: shard %d: %d vectors are in the sum, of %d devices", shard, n, len(members))
	}
	set, err := sv.AppendBinary(nil)
	if err != nil {
		return fmt.Errorf("coordinator: shard %d: %w", shard, err)
	}
	if r.survivors[shard], err = c.turnFrame(r, secagg.TurnMask, sv, r.limits[round.Confirming]); err != nil {
		return err
	}
	if r.unsaved == nil {
		r.unsaved = map[int][]byte{}
	}
	r.unsaved[shard] = set
	return nil
}

// maxUnsaved is how many shards wait at most for others to share a transaction.
const maxUnsaved = 16

// saveSurvivors stores the survivor sets that were fixed and lets their shards go
// on.
func (c *Coordinator) saveSurvivors(r *running) {
	sets := r.unsaved
	r.unsaved = nil
	if r.finish != nil || r.fatal != nil {
		return
	}
	if err := c.store.PersistSurvivors(r.ID(), sets); err != nil {
		r.fatal = &fatalError{err}
		return
	}
	for _, shard := range slices.Sorted(maps.Keys(sets)) {
		c.step(round.Stored{Shard: shard})
	}
}

// finish settles the round in the store, where release or charge has not
// done it, and tells the devices that are still in it.
func (c *Coordinator) finish(r *running, e round.Finish) error {
	r.finish = &e
	r.due.Stop()
	c.silence(r, e.State == round.Done && len(r.shards) > 0)
	if err := errors.Join(c.countDropouts(r), c.traceUnread(r)); err != nil {
		return err
	}
	c.keepDeclined(r)
	c.learnPace(r)
	out := &wire.Outcome{Round: r.ID(), Result: wire.OutcomeCommitted}
	if e.State == round.Abandoned {
		out.Result, out.Reason = wire.OutcomeAbandoned, truncate(e.Reason)
		c.total.Abandoned++
		c.status.State, c.status.Reason = monitor.StateAbandoned, e.Reason
		c.log.Warn("round abandoned", "round", r.ID(), "charged", e.Charged, "reason", e.Reason)
		if !e.Charged {
			c.metrics.Abandoned.Inc()
			if err := c.store.Abandon(r.ID(), e.Reason); err != nil {
				return err
			}
		}
	}
	_, dropped, absent := r.m.Counts()
	c.status.Dropped, c.status.Absent, c.status.Departures = dropped, absent, r.departures()
	c.total.Dropped += dropped
	c.total.Absent += absent
	c.metrics.Dropped.Add(float64(dropped))
	c.metrics.Absent.Add(float64(absent))
	c.ended(r, e.State == round.Done, e.Charged, e.Reason)
	took := time.Since(r.began)
	if c.pace == 0 {
		c.pace = took
	}
	c.pace = (3*c.pace + took) / 4
	out.RetryMillis = uint32(min(c.pace.Milliseconds()/4, 1<<31))
	f := link.Frame(out)
	for n, p := range r.parts {
		if d := c.fleet.At(n); d.Link != nil && !p.dropped && r.m.Answered(n) != round.Gathering {
			d.Link.Send(f)
		}
	}
	c.publish()
	return nil
}

// tellDropped tells a device that the round goes on without it. One that was
// assigned says that it is ready once more.
func (c *Coordinator) tellDropped(r *running, n round.Device, reason string) {
	p, d := r.parts[n], c.fleet.At(n)
	if p == nil || p.dropped {
		return
	}
	assigned := p.last != nil
	p.dropped, p.last = true, nil
	r.forget(p)
	switch {
	case d.Link == nil:
	case assigned:
		c.fleet.Unready(d)
		d.Link.Send(link.Frame(dropped(r, reason, c.retryAfter())))
	default:
		c.wait(d)
	}
}

// broadcast sends one frame to devices and keeps it to repeat on a reconnect; who
// was told that the round goes on without it is left out.
func (c *Coordinator) broadcast(r *running, devices []round.Device, f []byte) {
	for _, n := range devices {
		p := r.parts[n]
		if p.dropped {
			continue
		}
		p.last = f
		if d := c.fleet.At(n); d.Link != nil {
			d.Link.Send(f)
		}
	}
}

// turnFrame frames one of secagg's messages to devices.
func (c *Coordinator) turnFrame(r *running, turn secagg.Turn, m interface {
	AppendBinary([]byte) ([]byte, error)
}, limit time.Duration) ([]byte, error) {
	var err error
	if r.payload, err = m.AppendBinary(r.payload[:0]); err != nil {
		return nil, fmt.Errorf("coordinator: turn %v: %w", turn, err)
	}
	b, err := wire.Append(nil, &wire.Turn{Round: r.ID(), Number: uint8(turn), Payload: r.payload, Millis: millis(limit)})
	if err != nil {
		return nil, fmt.Errorf("coordinator: turn %v: %w", turn, err)
	}
	return b, nil
}

func (c *Coordinator) deviceNumbers(ids []secagg.ID) []round.Device {
	ns := make([]round.Device, len(ids))
	for i, id := range ids {
		ns[i] = c.fleet.Of(id).N
	}
	return ns
}

func millis(d time.Duration) uint32 { return uint32(min(d.Milliseconds(), 1<<32-1)) }

// truncate shortens a text to what a message holds.
func truncate(s string) string { return s[:min(len(s), wire.MaxText)] }
