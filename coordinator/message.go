package coordinator

import (
	"errors"
	"fmt"
	"time"

	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/internal/wire"
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
		c.turn(s, m.Round, secagg.Turn(m.Number), func(r *running) error { return c.takeTurn(r, s.device, m) })
	case *wire.Update:
		c.turn(s, m.Round, secagg.TurnMask, func(r *running) error { return c.takeChunk(r, s.device, m) })
	case *wire.Refuse:
		if r := c.inRound(s, m.Round); r != nil {
			c.log.Info("device left the round", "device", short(s.id), "round", r.id, "code", m.Code, "reason", m.Reason)
			c.exclude(r, s.device, "")
		}
	case *wire.Error:
		c.log.Info("device ends the session", "device", short(s.id), "code", m.Code, "reason", m.Text)
		s.kill(errors.New("the device ended it"))
		c.left(s)
	case *wire.Ready:
		c.nowReady(s)
	default:
		c.fault(s, fmt.Sprintf("a %v message", m.Kind()))
	}
}

// inRound is the running round if the device is in it and means it.
func (c *Coordinator) inRound(s *session, id uint64) *running {
	r := c.running
	if r == nil || r.id != id || r.parts[s.device.n] == nil {
		// A message of the round before that crossed its end is no offence.
		if id >= c.nextRound || id == 0 {
			c.fault(s, fmt.Sprintf("a message of round %d", id))
		} else {
			c.useless(s)
		}
		return nil
	}
	return r
}

// errPartial says that a message was taken and the turn is not complete.
var errPartial = errors.New("more is to come")

// turn asks the machine before take hands anything to the aggregation.
func (c *Coordinator) turn(s *session, id uint64, turn secagg.Turn, take func(*running) error) {
	r := c.inRound(s, id)
	if r == nil {
		return
	}
	d, state := s.device, turnStates[turn]
	switch refusal := r.m.Wants(d.n, state); refusal {
	case round.Accepted:
	case round.Repeated:
		if turn == secagg.TurnMask {
			s.send(frame(&wire.UpdateAck{Round: r.id, Received: r.parts[d.n].updateSize}))
		}
		c.useless(s)
		return
	case round.Late, round.Out:
		if turn != secagg.TurnMask { // the rest of a long upload may be on its way
			c.useless(s)
		}
		return // it has been told, or will be with the outcome
	default:
		c.fault(s, fmt.Sprintf("turn %d of round %d: %v", turn, id, refusal))
		return
	}
	err := take(r)
	switch {
	case err == nil:
		r.parts[d.n].heldTurns |= 1 << (turn - 1)
		c.progress.Answered++
		s.faults = 0
		if turn == secagg.TurnMask {
			d.missed = 0 // it works
		}
		if time.Since(c.published) > 100*time.Millisecond {
			c.publish()
		}
		c.step(round.Received{Device: d.n, Turn: state})
	case errors.Is(err, errPartial), errors.Is(err, secagg.ErrRepeated), errors.Is(err, secagg.ErrLate):
	default:
		// What it sent is not in the sum; what it will send is not wanted.
		c.metrics.faults.Add(1)
		c.log.Warn("device is out of the round", "device", short(d.id), "round", r.id, "turn", int(turn), "reason", err)
		c.exclude(r, d, "its message was refused")
	}
}

// exclude puts a device out of the round for good.
func (c *Coordinator) exclude(r *running, d *device, reason string) {
	p := r.parts[d.n]
	p.bad = true
	if reason == "" {
		p.dropped, p.last = true, nil // it said so itself
		r.forget(p)
	} else {
		c.tellDropped(r, []round.Device{d.n}, reason)
	}
	delete(r.away, d)
	c.step(round.Lost{Device: d.n})
}

// takeTurn decodes turns 1, 2, 4 and 5 and hands them to the aggregation.
func (c *Coordinator) takeTurn(r *running, d *device, m *wire.Turn) error {
	if secagg.Turn(m.Number) == secagg.TurnAdvertise {
		var adv secagg.Advertise
		if err := adv.UnmarshalBinary(m.Payload); err != nil {
			return err
		}
		return r.keying.Add(d.id, &adv)
	}
	shard := r.m.Shard(d.n)
	if shard < 0 {
		return fmt.Errorf("turn %d without a shard", m.Number)
	}
	s := r.shards[shard]
	switch secagg.Turn(m.Number) {
	case secagg.TurnShare:
		var v secagg.Shares
		if err := v.UnmarshalBinary(m.Payload); err != nil {
			return err
		}
		return s.AddShares(d.id, &v)
	case secagg.TurnConfirm:
		var v secagg.Confirmation
		if err := v.UnmarshalBinary(m.Payload); err != nil {
			return err
		}
		return s.AddConfirmation(d.id, &v)
	case secagg.TurnReveal:
		var v secagg.Reveal
		if err := v.UnmarshalBinary(m.Payload); err != nil {
			return err
		}
		return s.AddReveal(d.id, &v)
	}
	return fmt.Errorf("turn %d does not travel as a turn message", m.Number)
}

// maxPending bounds the bytes of all updates that have come in part: beyond it a
// device that sends more is out of the round.
const maxPending = 1 << 30

// updateOverhead bounds what secagg adds to the packed symbols.
const updateOverhead = 256

// takeChunk gathers a masked update; the whole one is added to the shard's sum
// and forgotten.
func (c *Coordinator) takeChunk(r *running, d *device, m *wire.Update) error {
	p := r.parts[d.n]
	if p.assembly == nil {
		if m.Total < r.packed || m.Total > r.packed+updateOverhead {
			return fmt.Errorf("an update of %d bytes, %d to %d expected", m.Total, r.packed, r.packed+updateOverhead)
		}
		var err error
		if p.assembly, err = wire.NewAssembly(r.id, m.Total); err != nil {
			return err
		}
	}
	before := p.assembly.Received()
	if r.pending+uint64(len(m.Data)) > c.maxPending {
		return fmt.Errorf("updates of %d bytes are coming in, limit %d", r.pending, c.maxPending)
	}
	if err := p.assembly.Add(m); err != nil {
		return err
	}
	r.pending += p.assembly.Received() - before
	b, whole := p.assembly.Bytes()
	if !whole {
		return errPartial
	}
	p.updateSize = uint64(len(b))
	r.forget(p)
	var masked secagg.Masked
	if err := masked.UnmarshalBinary(b); err != nil {
		return err
	}
	if err := r.shards[r.m.Shard(d.n)].Add(d.id, &masked); err != nil {
		return err
	}
	d.sess.send(frame(&wire.UpdateAck{Round: r.id, Received: p.updateSize}))
	return nil
}
