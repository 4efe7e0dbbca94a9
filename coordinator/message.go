package coordinator

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/starling-fl/starling/coordinator/internal/fleet"
	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/secagg"
)

// turnStates maps secagg's turns to the states that wait for them.
var turnStates = map[secagg.Turn]round.State{
	secagg.TurnAdvertise: round.Keying, secagg.TurnShare: round.Sharing, secagg.TurnMask: round.Collecting,
	secagg.TurnConfirm: round.Confirming, secagg.TurnReveal: round.Unmasking,
}

// message takes one message of an enrolled device.
func (c *Coordinator) message(s *session, m wire.Message) {
	switch m := m.(type) {
	case *wire.Turn:
		c.turn(s, m.Round, secagg.Turn(m.Number), len(m.Payload), func(r *running) (judge, error) { return r.turnJudge(s.device, m) })
	case *wire.Update:
		c.turn(s, m.Round, secagg.TurnMask, int(m.Total), func(r *running) (judge, error) { return c.takeChunk(r, s.device, m) })
	case *wire.Refuse:
		if r := c.inRound(s, m.Round); r != nil {
			c.declined(r, s.device, m)
			c.exclude(r, s.device, "")
		}
	case *wire.Error:
		c.log.Info("device ends the session", "device", short(s.id), "code", m.Code, "reason", m.Text)
		if d := s.device; leaves(m.Code) {
			c.leaves(d, m.Code)
		}
		s.Kill(errors.New("the device ended it"))
		c.left(s)
	case *wire.Ready:
		c.nowReady(s)
	default:
		c.fault(s.device, fmt.Sprintf("a %v message", m.Kind()))
	}
}

// inRound is the running round if the device is in it and means it.
func (c *Coordinator) inRound(s *session, id uint64) *running {
	r := c.running
	if r == nil || r.ID() != id || r.parts[s.device.N] == nil {
		// A message of the round before that crossed its end is no offence.
		if id >= c.core.NextRound() || id == 0 {
			c.fault(s.device, fmt.Sprintf("a message of round %d", id))
		} else {
			s.Useless()
		}
		return nil
	}
	return r
}

// errPartial says that a message was taken and the turn is not complete.
var errPartial = errors.New("more is to come")

// turn asks the machine, and has the message, which takes so many bytes when it is
// whole, judged where it is wanted: the answer comes back in a judgedEvent.
func (c *Coordinator) turn(s *session, id uint64, turn secagg.Turn, bytes int, take func(*running) (judge, error)) {
	r := c.inRound(s, id)
	if r == nil {
		return
	}
	d, p := s.device, r.parts[s.device.N]
	switch refusal := r.m.Wants(d.N, turnStates[turn]); refusal {
	case round.Accepted:
	case round.Repeated:
		s.Useless()
		return
	case round.Late, round.Out:
		if turn != secagg.TurnMask { // the rest of a long upload may be on its way
			s.Useless()
		}
		return // it has been told, or will be with the outcome
	default:
		c.fault(s.device, fmt.Sprintf("turn %d of round %d: %v", turn, id, refusal))
		return
	}
	if p.judging { // one message of a device at a time: the first decides
		s.Useless()
		return
	}
	work, err := take(r)
	switch {
	case errors.Is(err, errPartial):
	case err != nil:
		c.refused(r, d, turn, err)
	default:
		p.judging = true
		c.judge(judgement{r: r, d: d, turn: turn, work: work}, bytes)
	}
}

// judged admits messages whose arithmetic is done.
func (c *Coordinator) judged(all judgedEvent) {
	for _, j := range all {
		c.admit(j)
	}
	c.add(all[0].r)
}

// admit admits a message, if the machine still wants it.
func (c *Coordinator) admit(ev judgement) {
	r, d := ev.r, ev.d
	p := r.parts[d.N]
	p.judging = false
	var update []byte
	if p.assembly != nil {
		update, _ = p.assembly.Bytes()
	}
	r.forget(p)
	if c.running != r || r.finish != nil || r.fatal != nil || r.m.Wants(d.N, turnStates[ev.turn]) != round.Accepted {
		return // its turn closed meanwhile
	}
	err := ev.err
	if err == nil && ev.turn == secagg.TurnAdvertise {
		err = r.keying.Admit(ev.msg)
	} else if err == nil {
		err = r.shards[r.m.Shard(d.N)].Admit(ev.msg)
	}
	switch {
	case err == nil:
	case errors.Is(err, secagg.ErrRepeated), errors.Is(err, secagg.ErrLate):
		return
	default:
		c.refused(r, d, ev.turn, err)
		return
	}
	if ev.turn == secagg.TurnMask {
		d.Works()
		r.admitted = append(r.admitted, addend{r.shards[r.m.Shard(d.N)], ev.msg, update})
	}
	if d.Link != nil {
		d.Link.Useful()
	}
	c.status.Answered++
	if time.Since(c.published) > 100*time.Millisecond {
		c.publish()
	}
	state := turnStates[ev.turn]
	r.answers[state].After = append(r.answers[state].After, r.due.Lasted(r.m.Shard(d.N), time.Now()))
	c.step(round.Received{Device: d.N, Turn: state})
	// Who is gone by now is not waited for longer than if its message had been
	// judged while it was here.
	if _, waited := r.away.Of(d); d.Link == nil && !waited && r.finish == nil && r.fatal == nil {
		c.step(round.Lost{Device: d.N})
	}
	c.linger(r, d.N)
}

// refused puts the sender of a bad message out of the round: what it sent is not
// in the sum; what it will send is not wanted.
func (c *Coordinator) refused(r *running, d *fleet.Device, turn secagg.Turn, err error) {
	c.metrics.Faults.Inc()
	c.log.Warn("device is out of the round", "device", short(d.ID), "round", r.ID(), "turn", int(turn), "reason", err)
	r.parts[d.N].why = departedRefused
	c.exclude(r, d, "its message was refused")
	if blames(err) {
		c.strike(d, r.ID(), fmt.Sprintf("turn %d was refused: %v", int(turn), err), convicts(turn, err))
	}
}

// exclude puts a device out of the round for good.
func (c *Coordinator) exclude(r *running, d *fleet.Device, reason string) {
	if p := r.parts[d.N]; reason == "" {
		p.dropped, p.last = true, nil // it said so itself, or knows nothing of it
		r.forget(p)
	} else {
		c.tellDropped(r, d.N, reason)
	}
	r.away.End(d)
	c.step(round.Expelled{Device: d.N})
}

// turnJudge decodes and judges turns 1, 2, 4 and 5.
func (r *running) turnJudge(d *fleet.Device, m *wire.Turn) (judge, error) {
	if secagg.Turn(m.Number) == secagg.TurnAdvertise {
		return judging(d.ID, m.Payload, r.keying.Examine), nil
	}
	shard := r.m.Shard(d.N)
	if shard < 0 {
		return nil, fmt.Errorf("turn %d without a shard", m.Number)
	}
	s := r.shards[shard]
	switch secagg.Turn(m.Number) {
	case secagg.TurnShare:
		return examining[secagg.Shares](s, d.ID, m.Payload), nil
	case secagg.TurnConfirm:
		return examining[secagg.Confirmation](s, d.ID, m.Payload), nil
	case secagg.TurnReveal:
		return examining[secagg.Reveal](s, d.ID, m.Payload), nil
	}
	return nil, fmt.Errorf("turn %d does not travel as a turn message", m.Number)
}

// maxPending bounds what all updates that have come in part may take, whole: beyond
// it the one that was begun first and is still not there is out of the round. Who
// begins and sends slowly keeps nobody out but others that do.
const maxPending = 1 << 30

// updateOverhead bounds what secagg adds to the packed symbols.
const updateOverhead = 256

// takeChunk gathers a masked update; the whole one is judged, added to the shard's
// sum and forgotten.
func (c *Coordinator) takeChunk(r *running, d *fleet.Device, m *wire.Update) (judge, error) {
	p := r.parts[d.N]
	if p.assembly == nil {
		if m.Total < r.packed || m.Total > r.packed+updateOverhead {
			return nil, fmt.Errorf("an update of %d bytes, %d to %d expected", m.Total, r.packed, r.packed+updateOverhead)
		}
		var err error
		if err := c.makeRoom(r, m.Total); err != nil {
			return nil, err
		}
		if p.assembly, err = wire.NewAssembly(r.ID(), m.Total); err != nil {
			return nil, err
		}
		p.room = m.Total
		r.pending += p.room
		r.uploads = append(r.uploads, d)
	}
	if err := p.assembly.Add(m); err != nil {
		return nil, err
	}
	b, whole := p.assembly.Bytes()
	if !whole {
		return nil, errPartial
	}
	p.updateSize = uint64(len(b))
	return examining[secagg.Masked](r.shards[r.m.Shard(d.N)], d.ID, b), nil
}

// errNoRoom is no fault of the device.
var errNoRoom = errors.New("too many updates are coming in")

// makeRoom lets updates go, the oldest first, until one of so many bytes has room.
// One that is whole stays: it is being judged, and soon gone.
func (c *Coordinator) makeRoom(r *running, size uint64) error {
	for r.pending+size > c.maxPending {
		i := slices.IndexFunc(r.uploads, func(d *fleet.Device) bool { return !r.parts[d.N].judging })
		if i < 0 {
			return fmt.Errorf("%w: updates of %d bytes, limit %d", errNoRoom, r.pending, c.maxPending)
		}
		oldest := r.uploads[i]
		c.metrics.Faults.Inc()
		c.log.Warn("device is out of the round", "device", short(oldest.ID), "round", r.ID(),
			"reason", "its update was begun first of those that fill the room for them, and is not there")
		r.parts[oldest.N].why = departedRefused
		c.exclude(r, oldest, "its update came too slowly")
	}
	return nil
}
