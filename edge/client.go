package edge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// client is one device's participation. Unless said otherwise its fields
// belong to the goroutine that called Run.
type client struct {
	cfg     Config     // immutable
	token   wire.Token // immutable
	events  *events    // safe for concurrent use
	blobs   *fetcher   // safe for concurrent use
	trainer Trainer    // safe for concurrent use
	own     ownBase    // immutable; nil: the base is the coordinator's to send

	life context.Context // Run's: what is started under it ends with Run
	wg   sync.WaitGroup  // everything started under life

	conn     Conn // nil while not connected
	session  []byte
	resuming bool // between a reconnect into a round and the coordinator's Resume

	vetted    vetted
	previewed bool     // the job was announced, and fits, before the device enrolled
	asked     [32]byte // TaskID of the job that was announced
	job       *job
	prepared  bool
	prep      chan error // the preparation's result; nil when none is running
	round     *round
	kept      keptDual  // of the job that asks for one
	answered  uint64    // the highest round this device has answered
	heard     time.Time // when the coordinator last said something
	speed     speed     // safe for concurrent use
}

// Run joins the coordinator that the token names and takes part until the job is finished (it
// returns nil), ctx ends (its error), or an error occurs that a retry cannot fix (see the
// errors of this package). It reconnects by itself. Everything that it starts has ended when it
// returns.
func Run(ctx context.Context, cfg Config) (err error) {
	token, err := cfg.validate()
	if err != nil {
		return err
	}
	if cfg.Found == nil {
		cfg.widen(token)
	}
	c := &client{cfg: cfg, token: token, events: &events{to: cfg.Progress}, trainer: cfg.Trainer}
	client, done := newBlobClient(token, cfg.HTTP)
	defer done()
	c.blobs = &fetcher{client: client, token: token, dir: cfg.CacheDir, most: c.cfg.MaxBlob, down: &c.events.down}
	if cfg.Base != nil {
		if c.own, err = newOwnBase(cfg.Base); err != nil {
			return err
		}
	}
	if c.cfg.Dial == nil {
		c.cfg.Dial = func(ctx context.Context, token string) (Conn, error) { return DialSocket(ctx, token, nil) }
	}
	if c.trainer == nil {
		c.trainer = NewProgramTrainer(1)
		defer func() { err = errors.Join(err, c.trainer.Close()) }()
	}
	life, cancel := context.WithCancel(ctx)
	c.life = life
	defer c.wg.Wait()
	defer cancel()
	defer func() {
		if c.round != nil {
			c.end()
		}
	}()
	return c.run(life)
}

// run connects, and reconnects until the job ends.
func (c *client) run(ctx context.Context) error {
	wait := backoff{least: c.cfg.BackoffMin, most: c.cfg.BackoffMax}
	joinedOnce, refusals := false, 0
	for {
		joined, err := c.connect(ctx)
		if joined {
			wait.reset()
			joinedOnce, refusals = true, 0
		}
		if errors.Is(err, ErrDuplicate) && !joinedOnce {
			refusals++
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case fatal(err), !joinedOnce && errors.Is(err, ErrUnreachable), refusals > mostRefusals:
			return err
		}
		floor, limited := time.Duration(0), false
		if pace := new(paceError); errors.As(err, &pace) {
			floor, limited = pace.wait, pace.limited
		}
		pause := wait.next(floor)
		c.cfg.Log.Info("not connected", "err", err, "again_in", pause)
		c.events.send(Event{State: Backoff, Text: Explain(err), Total: pause.Milliseconds(), Limited: limited})
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// mostRefusals is how often a device that was never admitted tries again while its identity is
// connected. It covers the time for which a dead connection of the device's own may still count.
const mostRefusals = 24

// longestPause bounds what a coordinator can make a device wait.
const longestPause = 6 * time.Hour

// paceError ends a session after which the coordinator said when to come back, or the owner's limit does.
type paceError struct {
	wait    time.Duration
	why     string
	cause   error // may be nil
	limited bool  // by the owner
}

func (e *paceError) Error() string { return e.why }
func (e *paceError) Unwrap() error { return e.cause }

func pace(millis uint32, why string) error {
	return &paceError{wait: min(time.Duration(millis)*time.Millisecond, longestPause), why: why}
}

// fatal reports whether an error will be the same however often the device tries again.
func fatal(err error) bool {
	for _, cause := range []error{ErrVersion, ErrSecret, ErrJobChanged, ErrNotPrivate, ErrData, ErrBase, ErrJob, ErrPin, ErrConfig, ErrPolicy, ErrRelay, ErrUnpromised, ErrAccount, ErrPromise, ErrLog} {
		if errors.Is(err, cause) {
			return true
		}
	}
	refused, broken := new(RefusedError), new(ProtocolError)
	return errors.As(err, &refused) || errors.As(err, &broken)
}

// connect runs one connection. It returns nil when the job is finished; joined reports whether the
// coordinator admitted this device.
func (c *client) connect(ctx context.Context) (joined bool, err error) {
	c.events.send(Event{State: Connecting})
	if err := c.preview(ctx); err != nil {
		return false, c.resign(ctx, err)
	}
	err = c.talk(ctx, func(ctx context.Context, in <-chan received) error {
		if err := c.join(ctx, in); err != nil {
			return c.sayGoodbye(ctx, err)
		}
		joined = true
		return c.sayGoodbye(ctx, c.serve(ctx, in))
	})
	return joined, err
}

// received is a message or the end of the connection.
type received struct {
	m   wire.Message
	err error
}

// read passes on messages until the connection ends.
func (c *client) read(ctx context.Context, conn Conn, in chan<- received) {
	for {
		var r received
		frame, err := conn.Read(ctx)
		c.events.down.Add(int64(len(frame)))
		if err != nil {
			r.err = err
		} else if r.m, err = wire.Decode(frame, wire.FromCoordinator); err != nil {
			r.err = &ProtocolError{err}
		}
		select {
		case in <- r:
		case <-ctx.Done():
			return
		}
		if r.err != nil {
			return
		}
	}
}

// send writes a message if there is a connection. Between a reconnect and the coordinator's Resume
// it sends nothing of the round: the coordinator will ask for what it lacks.
func (c *client) send(ctx context.Context, m wire.Message) error {
	if c.conn == nil {
		return nil
	}
	switch m.Kind() {
	case wire.KindTurn, wire.KindUpdate:
		if c.resuming {
			return nil
		}
	}
	frame, err := wire.Append(nil, m)
	if err != nil {
		return err
	}
	c.events.up.Add(int64(len(frame)))
	return c.conn.Write(ctx, frame)
}

// serve handles messages until the connection ends or the job is finished.
func (c *client) serve(ctx context.Context, in <-chan received) error {
	c.startPrepare()
	if c.prepared {
		if err := c.send(ctx, &wire.Ready{}); err != nil {
			return err
		}
		if c.round == nil {
			c.events.send(Event{State: Waiting})
		}
	}
	for {
		var done <-chan worked
		var over <-chan time.Time
		if c.round != nil {
			done, over = c.round.work, c.round.over
		}
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err = <-c.prep:
			err = c.finishPrepare(ctx, err)
		case w := <-done:
			err = c.finishWork(ctx, w)
		case <-over:
			c.drop("the coordinator did not end the round")
		case r := <-in:
			if r.err != nil {
				return r.err
			}
			c.heard = time.Now()
			var finished bool
			if finished, err = c.handle(ctx, r.m); finished {
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
}

// handle acts on one message. finished reports that the job has ended.
func (c *client) handle(ctx context.Context, m wire.Message) (finished bool, err error) {
	switch m := m.(type) {
	case *wire.Wait:
		if c.round != nil {
			c.drop("the round went on without this device")
		}
		if m.Disconnect {
			return false, pace(m.RetryMillis, m.Reason)
		}
		c.events.send(Event{State: Waiting, Text: m.Reason, Total: int64(m.RetryMillis)})
	case *wire.Assignment:
		return false, c.assign(ctx, m)
	case *wire.Turn:
		return false, c.turn(ctx, m)
	case *wire.Resume:
		return false, c.resume(ctx, m)
	case *wire.Outcome:
		c.outcome(m)
		if m.Result == wire.OutcomeDropped && c.prepared {
			return false, c.send(ctx, &wire.Ready{})
		}
	case *wire.Finished:
		if c.round != nil {
			c.drop("the job is finished")
		}
		if c.cfg.Trained != nil && m.Model.Offered() {
			if t, err := c.take(ctx, m); err != nil {
				c.cfg.Log.Warn("the job is over and its model could not be fetched", "err", err)
			} else {
				c.cfg.Trained(t)
			}
		}
		c.events.send(Event{State: Finished, Version: m.Version, Text: m.Reason})
		return true, nil
	case *wire.Error:
		return false, refusedBy(m)
	default:
		return false, &ProtocolError{fmt.Errorf("%s in mid-session", m.Kind())}
	}
	return false, nil
}

// refusedBy turns the coordinator's Error into what Run does about it.
func refusedBy(m *wire.Error) error {
	switch {
	case m.Code == wire.CodeVersion:
		return fmt.Errorf("%w: %s", ErrVersion, Escape(m.Text, false))
	case m.RetryMillis == 0:
		return &RefusedError{Code: m.Code, Text: m.Text}
	case m.Code == wire.CodeDuplicate:
		return &paceError{wait: min(time.Duration(m.RetryMillis)*time.Millisecond, longestPause), why: ErrDuplicate.Error(), cause: ErrDuplicate}
	}
	return pace(m.RetryMillis, m.Text)
}

// startPrepare starts preparing the job, unless that is done or running.
func (c *client) startPrepare() {
	if c.prepared || c.prep != nil {
		return
	}
	done, j := make(chan error, 1), c.job
	c.prep = done
	c.wg.Go(func() { done <- c.prepare(c.life, j) })
}

func (c *client) finishPrepare(ctx context.Context, err error) error {
	c.prep = nil
	if err != nil {
		return err // the next connection tries again, unless it is fatal
	}
	c.prepared = true
	if err := c.send(ctx, &wire.Ready{}); err != nil {
		return err
	}
	c.events.send(Event{State: Waiting})
	return nil
}
