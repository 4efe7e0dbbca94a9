package edge

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/wasm"
)

// join opens a session: versions, challenge, enrolment, job.
func (c *client) join(ctx context.Context, in <-chan received) error {
	hello := &wire.Hello{MinVersion: wire.Version, MaxVersion: wire.Version, Agent: c.cfg.Agent}
	// The nonce is public; a run with a seed repeats all but this.
	if _, err := io.ReadFull(random(nil, forSession, 0), hello.Nonce[:]); err != nil {
		return err
	}
	if err := c.send(ctx, hello); err != nil {
		return err
	}
	welcome, err := expect[*wire.Welcome](ctx, in, c.cfg.Handshake)
	if err != nil {
		return err
	}
	if welcome.Version != wire.Version {
		return fmt.Errorf("%w: the coordinator speaks %d, this device %d", ErrVersion, welcome.Version, wire.Version)
	}
	if len(c.token.Task) != 0 && welcome.Task != [32]byte(c.token.Task) {
		return fmt.Errorf("%w: it runs another job than the join token was made for: ask its operator for a new one", ErrJobChanged)
	}
	channel, exporter, err := c.channel(welcome)
	if err != nil {
		return err
	}
	identity := [32]byte(c.cfg.Identity.Public().(ed25519.PublicKey))
	enrol := &wire.Enrol{
		Identity:  identity,
		Proof:     wire.DeviceProof(c.token.Secret, hello, welcome, identity),
		Signature: [64]byte(ed25519.Sign(c.cfg.Identity, wire.EnrolBytes(hello, welcome, identity, channel, exporter, c.session))),
		Channel:   channel,
		Session:   c.session,
		Fused:     wasm.Fuses(),
		Held:      c.cfg.Account.heldKeys(welcome.LogKey),
	}
	if c.job != nil {
		enrol.Task = c.job.task[:]
	}
	if err := c.send(ctx, enrol); err != nil {
		return err
	}
	enrolled, err := expect[*wire.Enrolled](ctx, in, c.cfg.Handshake)
	if err != nil {
		return err
	}
	return c.enrolled(hello, welcome, identity, enrolled)
}

// enrolled takes the session and, the first time, the job.
func (c *client) enrolled(hello *wire.Hello, welcome *wire.Welcome, identity [32]byte, m *wire.Enrolled) error {
	var task [32]byte
	switch {
	case len(m.Job) != 0:
		task = wire.TaskID(m.Job)
	case c.job != nil:
		task = c.job.task
	default:
		return &ProtocolError{errors.New("no job was announced")}
	}
	if !wire.EqualProof(m.Proof, wire.CoordinatorProof(c.token.Secret, hello, welcome, identity, task)) {
		return ErrSecret
	}
	if task != welcome.Task {
		return &ProtocolError{errors.New("it announced another job than it welcomed to")}
	}
	if c.job == nil {
		j, err := c.parseJob(m.Job)
		if err != nil {
			return err
		}
		c.job = j
	} else if task != c.job.task {
		return ErrJobChanged
	}
	if err := c.greetLog(welcome, m); err != nil {
		return err
	}
	c.session = m.Session
	c.resuming = c.round != nil && m.Resumed
	if c.round != nil && !m.Resumed {
		c.drop("the coordinator does not know the session any more")
	}
	return nil
}

// expect waits for a message of one kind, or for the coordinator's Error.
func expect[M wire.Message](ctx context.Context, in <-chan received, within time.Duration) (m M, err error) {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return m, ctx.Err()
	case <-t.C:
		return m, fmt.Errorf("edge: no %s within %v", m.Kind(), within)
	case r := <-in:
		if r.err != nil {
			return m, r.err
		}
		switch got := r.m.(type) {
		case M:
			return got, nil
		case *wire.Error:
			return m, refusedBy(got)
		}
		return m, &ProtocolError{fmt.Errorf("%s where %s was expected", r.m.Kind(), m.Kind())}
	}
}
