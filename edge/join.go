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

// identity is this device's.
func (c *client) identity() [32]byte {
	return [32]byte(c.cfg.Identity.Public().(ed25519.PublicKey))
}

// join opens a session: versions, challenge, enrolment, job.
func (c *client) join(ctx context.Context, in <-chan received) error {
	said, err := c.enrol(ctx, in)
	if err != nil {
		return err
	}
	return c.enrolled(said)
}

// enrolment is what both sides said of it.
type enrolment struct {
	hello   *wire.Hello
	welcome *wire.Welcome
	answer  *wire.Enrolled
}

// enrol shows the coordinator who this device is.
func (c *client) enrol(ctx context.Context, in <-chan received) (said enrolment, err error) {
	hello := &wire.Hello{MinVersion: wire.Version, MaxVersion: wire.Version, Agent: c.cfg.Agent}
	// The nonce is public; a run with a seed repeats all but this.
	if _, err := io.ReadFull(random(nil, forSession, 0), hello.Nonce[:]); err != nil {
		return said, err
	}
	if err := c.send(ctx, hello); err != nil {
		return said, err
	}
	welcome, err := expect[*wire.Welcome](ctx, in, c.cfg.Handshake)
	if err != nil {
		return said, err
	}
	if welcome.Version != wire.Version {
		return said, fmt.Errorf("%w: the coordinator speaks %d, this device %d", ErrVersion, welcome.Version, wire.Version)
	}
	if len(c.token.Task) != 0 && welcome.Task != [32]byte(c.token.Task) {
		return said, fmt.Errorf("%w: it runs another job than the join token was made for: ask its operator for a new one", ErrJobChanged)
	}
	channel, exporter, err := c.channel(welcome)
	if err != nil {
		return said, err
	}
	identity := c.identity()
	enrol := &wire.Enrol{
		Identity:  identity,
		Proof:     wire.DeviceProof(c.token.Secret, hello, welcome, identity),
		Signature: [64]byte(ed25519.Sign(c.cfg.Identity, wire.EnrolBytes(hello, welcome, identity, channel, exporter, c.session))),
		Channel:   channel,
		Session:   c.session,
		Fused:     wasm.Fuses(),
		Held:      c.cfg.Account.heldKeys(welcome.LogKey),
	}
	switch {
	case c.job != nil:
		enrol.Task = c.job.task[:]
	case c.asked != [32]byte{}:
		enrol.Task = c.asked[:]
	}
	if err := c.send(ctx, enrol); err != nil {
		return said, err
	}
	said = enrolment{hello: hello, welcome: welcome}
	said.answer, err = expect[*wire.Enrolled](ctx, in, c.cfg.Handshake)
	return said, err
}

// enrolled takes the session and, the first time, the job.
func (c *client) enrolled(said enrolment) error {
	m, welcome, identity := said.answer, said.welcome, c.identity()
	var task [32]byte
	switch {
	case len(m.Job) != 0:
		task = wire.TaskID(m.Job)
	case c.job != nil:
		task = c.job.task
	default:
		return &ProtocolError{errors.New("no job was announced")}
	}
	if !wire.EqualProof(m.Proof, wire.CoordinatorProof(c.token.Secret, said.hello, welcome, identity, task)) {
		return ErrSecret
	}
	if task != welcome.Task {
		return &ProtocolError{errors.New("it announced another job than it welcomed to")}
	}
	c.asked = task
	if err := c.cfg.Account.joined(task, identity); err != nil {
		return err
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
