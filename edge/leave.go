package edge

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// A device that has enrolled and will not take part says so: it would be counted in the population,
// and waited for, until it was long absent. It tells a reason that follows from job, plan, base and
// its owner's limits. What follows from its data or its coins it tells nobody, and is absent.

// untoldError is what the coordinator is not told of.
type untoldError struct{ error }

func (e untoldError) Unwrap() error { return e.error }

func untold(err error) error {
	if err == nil {
		return nil
	}
	return untoldError{err}
}

// leaving is the code that a coordinator is told which loses this device by an error; false if it is
// told of none, or the device comes back.
func leaving(err error) (code uint16, leaves bool) {
	if of := (untoldError{}); err == nil || errors.As(err, &of) {
		return 0, false
	}
	for _, beyond := range PolicyErrors(err) {
		if beyond.Key == "bits" || beyond.Key == "example_bits" {
			return 0, false // what other jobs were told is in it
		}
	}
	switch beyond := new(PolicyError); {
	case errors.Is(err, ErrNotPrivate):
		return wire.CodePolicy, true
	case errors.Is(err, ErrPolicy):
		code = wire.CodePolicy
		if errors.As(err, &beyond) {
			code = beyond.code()
		}
		return code, true
	case errors.Is(err, ErrUnpromised):
		return wire.CodeProgram, true
	case errors.Is(err, ErrBase):
		return wire.CodeBlob, true
	case errors.Is(err, ErrJob):
		return wire.CodePlan, true
	}
	return 0, false
}

// code is what a coordinator is told of a limit.
func (e *PolicyError) code() uint16 {
	switch e.Key {
	case "memory":
		return wire.CodeMemory
	case "work":
		return wire.CodeWork
	}
	return wire.CodePolicy
}

// whyLeft is the text beside a code: fixed, so that it tells of nothing else.
func whyLeft(code uint16) string {
	if limit, is := wire.Limit(code); is {
		return "the job is beyond its owner's limits (" + limit + ")"
	}
	return "this device cannot take part in the job"
}

// sayGoodbye tells a coordinator that still listens what the device makes of a session's end: the
// coordinator broke the protocol, or the device leaves the population.
func (c *client) sayGoodbye(ctx context.Context, err error) error {
	var failed error
	if broken := new(ProtocolError); errors.As(err, &broken) {
		failed = c.say(ctx, &wire.Error{Code: wire.CodeProtocol, Text: "the coordinator broke the protocol"})
	} else if _, leaves := leaving(err); leaves {
		failed = c.part(ctx, err)
	}
	if failed != nil {
		c.cfg.Log.Debug("the coordinator no longer listens", "err", failed)
	}
	return err
}

// resign has a device leave the population of which it is by an earlier run, where the job is by
// now beyond what its owner allows. The error is err: that it cannot leave now changes nothing.
func (c *client) resign(ctx context.Context, err error) error {
	if _, leaves := leaving(err); !leaves || !c.cfg.Account.member(c.asked, c.identity()) {
		return err
	}
	failed := c.talk(ctx, func(ctx context.Context, in <-chan received) error {
		if _, err := c.enrol(ctx, in); err != nil {
			return err
		}
		return c.part(ctx, err)
	})
	if failed != nil {
		c.cfg.Log.Debug("the coordinator could not be told that this device leaves", "err", failed)
	}
	return err
}

// part tells the coordinator that this device leaves because of an error.
func (c *client) part(ctx context.Context, why error) error {
	code, _ := leaving(why)
	if err := c.say(ctx, &wire.Error{Code: code, Text: whyLeft(code)}); err != nil {
		return err
	}
	return c.cfg.Account.parted(c.asked)
}

// say sends a session's last message.
func (c *client) say(ctx context.Context, last *wire.Error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return c.send(ctx, last)
}

// talk dials, and runs a conversation until it ends.
func (c *client) talk(ctx context.Context, conversation func(context.Context, <-chan received) error) error {
	dialCtx, cancel := context.WithTimeout(ctx, c.cfg.Handshake)
	conn, err := c.cfg.Dial(dialCtx, c.cfg.Token)
	cancel()
	if err != nil {
		return err
	}
	ctx, cancel = context.WithCancel(ctx)
	in := make(chan received)
	var reader sync.WaitGroup
	c.conn = conn
	defer func() {
		c.conn, c.resuming = nil, false
		cancel()
		conn.Close()
		reader.Wait()
	}()
	reader.Go(func() { c.read(ctx, conn, in) })
	return conversation(ctx, in)
}

// member reports whether an identity has enrolled in a job and not left it.
func (a *Account) member(task, identity [32]byte) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.Members[hex.EncodeToString(task[:])] == hex.EncodeToString(identity[:])
}

// joined notes that an identity has enrolled in a job.
func (a *Account) joined(task, identity [32]byte) error {
	if a.member(task, identity) {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.enter(hex.EncodeToString(task[:]), hex.EncodeToString(identity[:]))
	return a.keep()
}

// enter notes a member; a.mu is held.
func (a *Account) enter(task, identity string) {
	if a.state.Members == nil {
		a.state.Members = map[string]string{}
	}
	a.state.Members[task] = identity
}

// parted notes that a job's coordinator was told that the device leaves.
func (a *Account) parted(task [32]byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := hex.EncodeToString(task[:])
	if _, is := a.state.Members[name]; !is {
		return nil
	}
	delete(a.state.Members, name)
	return a.keep()
}

// overLimits is the end of a participation by a refused round, where no round of the job asks for
// less; nil otherwise.
func (c *client) overLimits(why *RefusalError, rank uint16) error {
	least := c.job.RankMin
	if c.job.HeadOnly {
		least = 0
	}
	beyond := new(PolicyError)
	if rank > least || !errors.As(why.Err, &beyond) || beyond.Key != "memory" && beyond.Key != "work" {
		return nil
	}
	return fmt.Errorf("%w:\n%w", ErrPolicy, beyond)
}
