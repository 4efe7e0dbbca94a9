package edge

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/secagg"
	"github.com/starling-fl/starling/secagg/log"
)

// round is this device's part in one round. It outlives connections: sec keeps what
// was taken and sent, so that a reconnect sends the same bytes.
type round struct {
	plan      *wire.Plan
	planBytes []byte
	cfg       secagg.Config
	head      log.Head // of the log of enrolled keys, which the plan binds; empty: there is none
	found     *Peers   // what the log proves of the roster; nil: not known yet, or there is no log
	peers     *Peers   // the same, once the roster's signatures were checked
	sec       *secagg.Client
	stop      context.CancelFunc  // ends the work
	work      chan worked         // one result; nil once it was taken
	start     chan contract.Slice // the adapter's slice, as soon as the work has it
	symbols   []int32             // the work's result until it is masked
	upload    *wire.Upload        // turn 3

	over <-chan time.Time // fires when the coordinator has left the round open for too long
}

// event is the start of an event about the round.
func (r *round) event(s State) Event {
	return Event{State: s, Round: r.plan.Round, Version: r.plan.Version, Rank: int(r.plan.Rank), Shard: r.sec.ShardSize(), Peers: r.peers}
}

// assign takes an assignment: checks it, sends turn 1 and starts the work.
func (c *client) assign(ctx context.Context, a *wire.Assignment) error {
	plan, err := wire.ParsePlan(a.Plan)
	if err != nil {
		return &ProtocolError{err}
	}
	if r := c.round; r != nil && plan.Round == r.plan.Round {
		if bytes.Equal(a.Plan, r.planBytes) {
			return nil // said again after a reconnect
		}
		return c.leave(&RefusalError{Round: plan.Round, Cause: ErrPlan, Err: errors.New("two plans for one round")})
	}
	if !c.prepared {
		return c.refuse(ctx, &RefusalError{Round: plan.Round, Cause: ErrPlan, Err: errors.New("it came before this device was ready")})
	}
	if plan.Round <= c.answered {
		return c.refuse(ctx, &RefusalError{Round: plan.Round, Cause: ErrReplay, Err: fmt.Errorf("last was %d", c.answered)})
	}
	if c.round != nil {
		c.drop("the coordinator went on to another round")
	}
	head, err := c.planLog(plan, a.Growth)
	if err != nil {
		c.answered = plan.Round
		return errors.Join(c.refuse(ctx, &RefusalError{Round: plan.Round, Cause: ErrPlan, Err: err}), fatalLog(err))
	}
	if err := c.checkPlan(plan); err != nil {
		c.answered = plan.Round
		return c.refuse(ctx, &RefusalError{Round: plan.Round, Cause: ErrPlan, Err: err})
	}
	vector, err := c.job.terms.Planned(plan)
	var cfg secagg.Config
	if err == nil {
		cfg = c.job.terms.Masking(vector)
		err = cfg.Validate()
	}
	if err != nil {
		c.answered = plan.Round
		return c.refuse(ctx, &RefusalError{Round: plan.Round, Cause: ErrPlan, Err: err})
	}
	if err := c.cfg.Account.afford(c.job, c.cfg.Policy); err != nil {
		c.answered = plan.Round
		// It follows from how often coins have drawn this device, here and in other jobs.
		return errors.Join(c.refuse(ctx, &RefusalError{Round: plan.Round, Cause: ErrPlan, Err: err}), untold(err))
	}
	c.job.start, c.job.row = startOf(plan), plan.Version+1
	if err := c.cfg.Account.begin(c.job, plan.Round, c.cfg.Policy.RoundsADay, time.Now()); err != nil {
		c.answered = plan.Round
		if why := new(RefusalError); errors.As(err, &why) {
			return c.refuse(ctx, why)
		}
		return errors.Join(c.refuse(ctx, &RefusalError{Round: plan.Round, Cause: ErrPlan, Err: err}), err)
	}
	p := secagg.PlanHash(hex.EncodeToString(plan.Task[:]), plan.Round, cfg, a.Plan)
	sec, err := secagg.NewClient(cfg, p, c.cfg.Identity, random(c.cfg.Seed, forSecagg, plan.Round))
	if err != nil {
		return err
	}
	r := &round{plan: plan, planBytes: a.Plan, cfg: cfg, head: head, sec: sec}
	if err := r.drawLot(c.cfg.Identity); err != nil {
		return err
	}
	if _, err := sec.Advertise(); err != nil {
		return err
	}
	// One pair of key sets for one round, whatever comes: from here on the
	// round counts as answered.
	c.answered = plan.Round
	workCtx, stop := context.WithCancel(c.life)
	r.stop, r.work, r.start, r.over = stop, make(chan worked, 1), make(chan contract.Slice, 1), time.After(longest(c.job.Deadlines))
	c.round = r
	c.events.send(r.event(Keying))
	if err := c.startWork(workCtx, r, work{plan: plan, Vector: vector, dual: c.dual(c.job)}, a.Patches); err != nil {
		return err
	}
	return c.answerTurn(ctx, secagg.TurnAdvertise)
}

// longest is when a device stops believing in a round: twice the sum of the
// states' deadlines and a minute.
func longest(d wire.Deadlines) time.Duration {
	sum := uint64(d.Gather) + uint64(d.Key) + uint64(d.Share) + uint64(d.Collect) + uint64(d.Confirm) + uint64(d.Unmask)
	return 2*time.Duration(sum)*time.Millisecond + time.Minute
}

func (c *client) startWork(ctx context.Context, r *round, w work, patches []wire.Patch) error {
	j := c.job
	var err error
	if w.patch, w.held, err = j.against(patches, int(r.plan.Rank)); err != nil {
		return err
	}
	w.start = r.start
	out := r.work
	c.wg.Go(func() { out <- c.do(ctx, j, w) })
	return nil
}

// finishWork takes the work's result.
func (c *client) finishWork(ctx context.Context, w worked) error {
	r := c.round
	r.work = nil
	r.stop()
	if w.err != nil {
		if refusal := new(RefusalError); errors.As(w.err, &refusal) {
			rank := r.plan.Rank
			return errors.Join(c.leave(refusal), c.overLimits(refusal, rank))
		}
		return w.err
	}
	r.symbols = w.symbols
	return c.maskAndSend(ctx)
}

// turn handles one of the coordinator's turns.
func (c *client) turn(ctx context.Context, m *wire.Turn) error {
	r := c.round
	if r == nil || m.Round != r.plan.Round {
		if m.Round <= c.answered {
			return nil // of a round this device has left
		}
		// Of a round that another process of this device took part in, before a
		// restart: this one holds nothing of it.
		return c.refuse(ctx, &RefusalError{Round: m.Round, Cause: ErrReplay, Err: errors.New("this device has no state of that round")})
	}
	err := c.answer(ctx, r, m)
	if errors.Is(err, secagg.ErrRepeated) {
		return nil // said again after a reconnect; a different message is a conflict
	}
	if asked := new(RefusalError); errors.As(err, &asked) {
		return c.leave(asked)
	}
	return err
}

// answer computes and sends what follows from a turn. Errors of the
// aggregation protocol come back as a *RefusalError.
func (c *client) answer(ctx context.Context, r *round, m *wire.Turn) error {
	refuse := func(cause, err error) error { return &RefusalError{Round: m.Round, Cause: cause, Err: err} }
	switch secagg.Turn(m.Number) {
	case secagg.TurnAdvertise:
		var roster secagg.Roster
		if err := roster.UnmarshalBinary(m.Payload); err != nil {
			return refuse(ErrSecagg, err)
		}
		if err := c.checkRoster(r, &roster, [32]byte(c.cfg.Identity.Public().(ed25519.PublicKey))); err != nil {
			return err
		}
		if _, err := r.sec.Share(&roster); err != nil {
			return refuse(ErrSecagg, err)
		}
		c.tellPeers(r)
		c.prove(r, m.Payload)
		return c.answerTurn(ctx, secagg.TurnShare)
	case secagg.TurnShare:
		var delivery secagg.Delivery
		if err := delivery.UnmarshalBinary(m.Payload); err != nil {
			return refuse(ErrSecagg, err)
		}
		if err := r.sec.Deliver(&delivery); err != nil {
			return refuse(ErrSecagg, err)
		}
		if err := c.hold(ctx); err != nil {
			return err
		}
		return c.maskAndSend(ctx)
	case secagg.TurnMask:
		var survivors secagg.Survivors
		if err := survivors.UnmarshalBinary(m.Payload); err != nil {
			return refuse(ErrSecagg, err)
		}
		if _, err := r.sec.Confirm(&survivors); err != nil {
			return refuse(ErrSecagg, err)
		}
		return c.answerTurn(ctx, secagg.TurnConfirm)
	case secagg.TurnConfirm:
		var confirmations secagg.Confirmations
		if err := confirmations.UnmarshalBinary(m.Payload); err != nil {
			return refuse(ErrSecagg, err)
		}
		if _, err := r.sec.Reveal(&confirmations); err != nil {
			return refuse(ErrSecagg, err)
		}
		c.events.send(r.event(Revealing))
		return c.answerTurn(ctx, secagg.TurnReveal)
	}
	return refuse(ErrSecagg, fmt.Errorf("turn %d is not the coordinator's", m.Number))
}

// maskAndSend masks the update once both its symbols and U2 are there.
func (c *client) maskAndSend(ctx context.Context) error {
	r := c.round
	if r.symbols == nil || !r.sec.Delivered() {
		return nil
	}
	if err := c.cfg.Account.contribute(c.job, c.cfg.Policy, c.events.traffic()); errors.Is(err, errTooSoon) {
		return c.leave(&RefusalError{Round: r.plan.Round, Cause: ErrPlan, Err: err})
	} else if err != nil {
		return errors.Join(c.leave(&RefusalError{Round: r.plan.Round, Cause: ErrPlan, Err: err}), untold(err))
	}
	masked, err := r.sec.Mask(r.symbols)
	clear(r.symbols)
	r.symbols = nil
	if err != nil {
		return c.leave(&RefusalError{Round: r.plan.Round, Cause: ErrSecagg, Err: err})
	}
	if r.upload, err = wire.NewUpload(r.plan.Round, masked); err != nil {
		return err
	}
	return c.sendUpload(ctx, 0)
}

// sendUpload sends the masked update from offset on.
func (c *client) sendUpload(ctx context.Context, offset uint64) error {
	r := c.round
	if r.upload == nil {
		return nil
	}
	at := r.event(Uploading)
	at.Total = int64(r.upload.Size())
	for {
		at.Done = int64(offset)
		c.events.send(at)
		chunk, next := r.upload.Chunk(offset)
		if chunk == nil {
			c.events.send(r.event(Collecting))
			return nil
		}
		if err := c.send(ctx, chunk); err != nil {
			return err
		}
		offset = next
	}
}

// answerTurn sends a turn when it may leave.
func (c *client) answerTurn(ctx context.Context, t secagg.Turn) error {
	if err := c.hold(ctx); err != nil {
		return err
	}
	return c.sendTurn(ctx, t)
}

// sendTurn sends a turn as it was first encoded.
func (c *client) sendTurn(ctx context.Context, t secagg.Turn) error {
	r := c.round
	return c.send(ctx, &wire.Turn{Round: r.plan.Round, Number: uint8(t), Payload: r.sec.Resend(t)})
}

// resume sends again, byte for byte, what the coordinator does not hold. A
// device that holds nothing of the round says so and waits for another.
func (c *client) resume(ctx context.Context, m *wire.Resume) error {
	r := c.round
	if r == nil || m.Round != r.plan.Round {
		c.resuming = false
		if r != nil {
			c.drop("the coordinator went on to another round")
		}
		// This device has left that round, lost it with its memory, or never saw
		// its assignment: it takes no part in it.
		return c.refuse(ctx, &RefusalError{Round: m.Round, Cause: ErrReplay, Err: errors.New("this device has no state of that round")})
	}
	if !c.resuming {
		return nil // the round began on this connection: all of it was sent
	}
	c.resuming = false
	held := func(t secagg.Turn) bool { return m.Held&(1<<(t-1)) != 0 }
	for t := secagg.TurnAdvertise; t <= secagg.TurnReveal; t++ {
		switch {
		case held(t):
		case t == secagg.TurnMask:
			if err := c.sendUpload(ctx, m.Received); err != nil {
				return err
			}
		case r.sec.Resend(t) != nil:
			if err := c.sendTurn(ctx, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// outcome ends the round.
func (c *client) outcome(m *wire.Outcome) {
	r := c.round
	if r == nil || m.Round != r.plan.Round {
		return
	}
	state := map[uint8]State{wire.OutcomeCommitted: Committed, wire.OutcomeAbandoned: Abandoned, wire.OutcomeDropped: Dropped}[m.Result]
	v := r.event(state)
	v.Text = m.Reason
	c.end()
	var err error
	switch state {
	case Committed:
		err = c.cfg.Account.committed(c.job, c.events.traffic())
	case Abandoned:
		err = c.cfg.Account.abandoned(c.job)
	}
	if err != nil {
		c.cfg.Log.Warn("the account is behind", "err", err) // the contribution is in it
	}
	c.events.send(v)
}

// end forgets the round and its secrets, and keeps the slice that it began
// with: the next round may come as a difference to it, whether this one's work
// came to its end or was cut short.
func (c *client) end() {
	c.round.stop()
	select {
	case s := <-c.round.start:
		c.job.held.Remember(s)
	default: // it was not there yet
	}
	c.round.sec.Abort()
	clear(c.round.symbols)
	c.round, c.resuming = nil, false
}

// drop ends the round without a word from the coordinator.
func (c *client) drop(why string) {
	v := c.round.event(Dropped)
	v.Text = why
	c.end()
	c.events.send(v)
}

// leave ends the round by this device's own decision.
func (c *client) leave(why *RefusalError) error {
	c.end()
	return c.refuse(c.life, why)
}

// refuse tells the coordinator that this device is not part of a round.
func (c *client) refuse(ctx context.Context, why *RefusalError) error {
	c.cfg.Log.Warn("round refused", "round", why.Round, "cause", why.Cause, "err", why.Err)
	c.events.send(Event{State: Refused, Round: why.Round, Text: Explain(why), Limits: PolicyErrors(why)})
	if err := c.hold(ctx); err != nil {
		return err
	}
	return c.send(ctx, why.message())
}
