package coordinator

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/starling-fl/starling/coordinator/internal/link"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// event is what connections tell the engine. The set is closed.
type event interface{ engineEvent() }

type (
	// joinEvent is a device that proved its identity; answer gets nil, or why not.
	joinEvent struct {
		s        *session
		token    []byte // of the session it wants to resume
		held     int64  // keys of the log whose head it holds
		enrolled *wire.Enrolled
		answer   chan<- error
	}
	messageEvent struct {
		s   *session
		msg wire.Message
	}
	// brokenEvent ends a session with an error that the device is told.
	brokenEvent struct {
		s   *session
		msg *wire.Error
	}
	leftEvent struct{ s *session }
)

func (joinEvent) engineEvent()    {}
func (messageEvent) engineEvent() {}
func (brokenEvent) engineEvent()  {}
func (leftEvent) engineEvent()    {}

// fatalError ends Run; everything else ends a round at most.
type fatalError struct{ err error }

func (e *fatalError) Error() string { return e.err.Error() }
func (e *fatalError) Unwrap() error { return e.err }

// post passes an event to the engine; false if ctx or the engine has ended.
func (c *Coordinator) post(ctx context.Context, ev event) bool {
	select {
	case <-c.done:
		return false
	default:
	}
	select {
	case c.events <- ev:
		return true
	case <-c.done:
		return false
	case <-ctx.Done():
		return false
	}
}

// Run makes rounds until the job is done (it returns nil), the budget is spent (ErrBudget), too
// many rounds in a row were abandoned (ErrAbandoned), ctx is done, or the store fails. It tells the
// devices before it returns. Call it once.
func (c *Coordinator) Run(ctx context.Context) error {
	c.started = time.Now()
	ctx, deposed := context.WithCancelCause(ctx)
	defer deposed(nil)
	c.beside.Go(func() {
		select {
		case <-c.store.Lost():
			deposed(store.ErrFenced)
		case <-ctx.Done():
		}
	})
	// What runs beside the engine ends with it.
	evalCtx, cancel := context.WithCancel(ctx)
	c.evalCtx = evalCtx
	err := c.rounds(ctx)
	if errors.Is(context.Cause(ctx), store.ErrFenced) {
		err = errors.Join(store.ErrFenced, err)
	}
	c.stop(err)
	cancel()
	deposed(nil)
	c.evaluations.Wait()
	c.beside.Wait()
	c.accounts.work.Wait()
	for {
		select {
		case ev := <-c.events: // it came after the end
			if u, ok := ev.(unmaskedEvent); ok {
				u.clear()
			}
		default:
			return err
		}
	}
}

func (c *Coordinator) rounds(ctx context.Context) error {
	job := c.t.Job
	if c.keys.head.Size > 0 { // devices come back before the next draw
		c.cosignLog(ctx)
	}
	for c.core.Version() < uint64(job.Rounds) {
		released := false
		err := c.gatherPopulation(ctx)
		if err == nil {
			released, err = c.runRound(ctx)
		}
		if errors.Is(err, ErrBudget) && c.core.Version() > 0 {
			return errors.Join(err, c.finalEvaluation(ctx)) // what there is, is the result
		}
		if err != nil {
			return err
		}
		if released {
			c.inARow = 0
			continue
		}
		patience := min(250*time.Millisecond<<min(c.inARow, 10), 30*time.Second)
		if c.inARow++; c.inARow >= job.Cohort.MaxAbandoned {
			if !c.cfg.Patient {
				return fmt.Errorf("%w: %d, the last because: %s", ErrAbandoned, c.inARow, c.status.Reason)
			}
			patience = min(time.Minute<<min(c.inARow-job.Cohort.MaxAbandoned, 10), time.Hour)
			c.status.State = monitor.StateWaiting
			c.status.Reason = fmt.Sprintf("%d rounds in a row were abandoned, the last because: %s; the next is tried in %v", c.inARow, c.status.Reason, patience)
			c.log.Error("rounds are abandoned one after another", "in_a_row", c.inARow, "next_in", patience)
			c.publish()
		}
		if err := c.pause(ctx, patience); err != nil {
			return err
		}
	}
	return c.finalEvaluation(ctx)
}

// gatherPopulation waits until the population is enrolled and enough of it is
// ready for a round to have a chance; not for a round that the budget does not hold.
func (c *Coordinator) gatherPopulation(ctx context.Context) error {
	c.mustered = time.Time{}
	asked := false
	for {
		fresh := false
		if time.Since(c.mustered) >= musterEvery {
			fresh = true
			if err := c.musterFleet(); err != nil {
				return err
			}
		}
		enough, reason := c.needed()
		if enough && !fresh { // an operator may have said something meanwhile
			c.mustered = time.Time{}
			continue
		}
		mine, why, err := c.mayDraw(enough)
		if err != nil {
			return &fatalError{err}
		}
		if mine {
			return nil
		}
		if why != "" {
			reason = why
		}
		if !asked {
			if err := c.askAnother(); err != nil {
				return err
			}
			asked = true
		}
		beginning := c.shownBeginning()
		if c.status.State != monitor.StateWaiting || c.status.Reason != reason || !reflect.DeepEqual(c.status.Beginning, beginning) {
			c.status.State, c.status.Reason, c.status.Beginning = monitor.StateWaiting, reason, beginning
			c.publish()
		}
		c.tellWaiting()
		// The operator's word comes by the store.
		if err := c.pump(ctx, time.Now().Add(musterEvery)); err != nil {
			return err
		}
	}
}

// musterEvery is how often a job that waits looks who may be drawn.
const musterEvery = 10 * time.Second

func (c *Coordinator) pause(ctx context.Context, d time.Duration) error {
	for until := time.Now().Add(d); time.Now().Before(until); {
		if err := c.pump(ctx, until); err != nil {
			return err
		}
	}
	return nil
}

// pump handles one event, or what is due, and returns at the latest at until.
func (c *Coordinator) pump(ctx context.Context, until time.Time) error {
	wake := until
	sooner := func(t time.Time) {
		if !t.IsZero() && (wake.IsZero() || t.Before(wake)) {
			wake = t
		}
	}
	if c.exporting.due {
		sooner(c.exporting.again)
	}
	var ripe <-chan time.Time
	if r := c.running; r != nil {
		sooner(r.due.Next())
		sooner(r.away.Next())
		ripe = r.unjudged.ripe()
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case ev := <-c.events:
		c.handle(ev)
	case <-c.woken:
		c.mustered = time.Time{}
	case <-ripe:
		c.judgeAll(c.running.unjudged.take())
	case <-c.alarm.At(wake):
		c.alarm.Rang()
		// What has come in by now came in time, however long the engine was busy.
		for range cap(c.events) {
			select {
			case ev := <-c.events:
				c.handle(ev)
				continue
			default:
			}
			break
		}
		c.expire(time.Now())
	}
	if c.exporting.due && !time.Now().Before(c.exporting.again) {
		c.exportDue()
	}
	if r := c.running; r != nil {
		// One transaction for all sets that were fixed by what has come in already.
		if len(r.unsaved) > 0 && (len(c.events) == 0 || len(r.unsaved) >= maxUnsaved) {
			c.saveSurvivors(r)
		}
		if r.fatal != nil {
			return r.fatal
		}
	}
	return c.broken
}

// expire acts on what is due.
func (c *Coordinator) expire(now time.Time) {
	r := c.running
	if r == nil || r.finish != nil || r.fatal != nil {
		return
	}
	for d := range r.away.Expired(now) {
		c.step(round.Lost{Device: d.N})
		c.linger(r, d.N)
	}
	c.hopeless(now)
	for _, ev := range r.due.Expired(now) {
		c.step(ev)
	}
}

func (c *Coordinator) handle(ev event) {
	switch ev := ev.(type) {
	case joinEvent:
		ev.answer <- c.join(ev)
	case messageEvent:
		if ev.s.device != nil && ev.s.device.Link == ev.s.Link && !ev.s.Dead() {
			c.message(ev.s, ev.msg)
		}
	case brokenEvent:
		c.metrics.Faults.Inc()
		ev.s.Finish(link.Frame(ev.msg))
		c.left(ev.s) // its round waits for no farewell
	case aliveEvent:
		ev.answer <- struct{}{}
	case leftEvent:
		c.left(ev.s)
	case unmaskedEvent:
		c.unmasked(ev)
	case judgedEvent:
		c.judged(ev)
	case evaluatedEvent:
		c.evaluated(ev)
	}
}

// stop tells all devices how the job ended and admits no more.
func (c *Coordinator) stop(err error) {
	var last wire.Message
	reason := "the job is done"
	over := true
	switch {
	case err == nil:
	case errors.Is(err, ErrBudget):
		reason = "the privacy budget is spent"
	case errors.Is(err, ErrAbandoned):
		reason = "too many rounds were abandoned"
	case errors.Is(err, ErrStopped):
		reason = "the job was stopped by its operator"
	default:
		reason, over = "the coordinator is stopping", false
		last = &wire.Error{Code: wire.CodeShutdown, Text: reason, RetryMillis: uint32((5 * time.Second).Milliseconds())}
	}
	offered := false
	if over {
		finished := &wire.Finished{Version: c.core.Version(), Reason: reason, Model: c.offer()}
		last, offered = finished, finished.Model.Offered()
	}
	f := link.Frame(last)
	c.lastWord = last
	close(c.done)
	for _, d := range c.fleet.All() {
		switch {
		case d.Link == nil:
		case offered && d.Browser:
			d.Link.Leave(f, offerPatience)
		default:
			d.Link.Finish(f)
		}
	}
	if err != nil {
		c.log.Warn("stopped", "reason", reason, "error", err)
		reason = err.Error()
	}
	c.status.State, c.status.Reason, c.status.Beginning = monitor.StateFinished, reason, nil
	if !over {
		c.status.State = monitor.StateStopped
	}
	c.publish()
}
