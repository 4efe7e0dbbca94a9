package coordinator

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/starling-fl/starling/coordinator/internal/link"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// greet proves versions, the enrolment secret and the identity, enrols the
// device, and hands the session to the engine.
func (c *Coordinator) greet(ctx context.Context, conn Conn, s *session) error {
	m, err := s.Next()
	if err != nil {
		return err
	}
	hello, ok := m.(*wire.Hello)
	if !ok {
		return link.Refuse(wire.CodeProtocol, 0, "the first message is %v, must be hello", m.Kind())
	}
	if hello.MinVersion > wire.Version || hello.MaxVersion < wire.Version {
		return link.Refuse(wire.CodeVersion, 0, "coordinator speaks protocol %d, device %d..%d", wire.Version, hello.MinVersion, hello.MaxVersion)
	}
	s.browser = strings.HasSuffix(hello.Agent, " v8")
	welcome := &wire.Welcome{Version: wire.Version, Task: c.task, TLS: s.peer.Export != nil, LogKey: c.t.Contract.Job.LogKey}
	rand.Read(welcome.Challenge[:]) // ends the program where the system has no randomness
	if err := conn.Write(link.Frame(welcome)); err != nil {
		return err
	}
	if m, err = s.Next(); err != nil {
		return err
	}
	enrol, ok := m.(*wire.Enrol)
	if !ok {
		return link.Refuse(wire.CodeProtocol, 0, "the second message is %v, must be enrol", m.Kind())
	}
	known, err := c.store.Knows(enrol.Identity)
	if err != nil {
		return err
	}
	if !known {
		if err := c.attempts.Allowed(s.peer.Address); err != nil {
			return err
		}
	}
	secret, invitation, err := c.admitted(enrol, hello, welcome)
	if err != nil {
		c.attempts.Made(s.peer.Address)
		return err
	}
	exporter, err := s.exporter(enrol.Channel)
	if err != nil {
		return err
	}
	if !ed25519.Verify(enrol.Identity[:], wire.EnrolBytes(hello, welcome, enrol.Identity, enrol.Channel, exporter, enrol.Session), enrol.Signature[:]) {
		return link.Refuse(wire.CodeIdentity, 0, "the signature is not over this challenge, job and connection")
	}
	// Before it enrols: it would be counted in the population and never train.
	if c.cfg.Job.Fused() && !enrol.Fused {
		return link.Refuse(wire.CodeArithmetic, 0, "this job trains with fused multiply-add (training.arithmetic), which this "+
			"device's processor or browser does not have: a job with exact arithmetic runs on any")
	}
	s.id = enrol.Identity
	added, err := c.enrol(enrol.Identity, invitation)
	if added {
		c.attempts.Made(s.peer.Address)
	}
	switch {
	case err == nil:
	case errors.Is(err, store.ErrFull):
		return link.Refuse(wire.CodeBusy, time.Hour, "no more devices may enrol")
	case errors.Is(err, store.ErrExcluded):
		return &link.Refusal{Msg: excluded(strings.TrimPrefix(err.Error(), store.ErrExcluded.Error()+": "))}
	case errors.Is(err, store.ErrPool):
		return link.Refuse(wire.CodeEnrolment, 0, "this device is enrolled for other jobs of this coordinator, which share no device with this one")
	case errors.Is(err, store.ErrInvitation):
		return link.Refuse(wire.CodeEnrolment, 0, "the invitation is spent, expired or revoked")
	default:
		c.log.Error("enrolment failed", "device", short(s.id), "error", err)
		return link.Refuse(wire.CodeInternal, time.Minute, "enrolment failed")
	}
	if err := c.deviceNotes().Agent(enrol.Identity, agentOf(hello)); err != nil { // nothing follows from it
		c.log.Error("cannot store the name of a device's program", "device", short(s.id), "error", err)
	}
	enrolled := &wire.Enrolled{Proof: wire.CoordinatorProof(secret, hello, welcome, enrol.Identity, c.task), Job: c.jobBytes}
	if string(enrol.Task) == string(c.task[:]) {
		enrolled.Job = nil
	}
	answer := make(chan error, 1)
	if !c.post(ctx, joinEvent{s, enrol.Session, int64(enrol.Held), enrolled, answer}) {
		return c.lateJoin(ctx, conn, enrolled)
	}
	select {
	case err := <-answer:
		return err
	case <-c.done:
		return c.lateJoin(ctx, conn, enrolled)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// agentOf returns what a device calls itself if that is a line of printable ASCII, and ""
// otherwise, since it is shown on the operator's page.
func agentOf(hello *wire.Hello) string {
	if strings.ContainsFunc(hello.Agent, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return hello.Agent
}

// enrol takes an identity into the fleet and into the job.
func (c *Coordinator) enrol(id [32]byte, invitation int64) (added bool, err error) {
	if h := c.cfg.Host; h != nil {
		if err := c.store.Room(id); err != nil { // before its invitation, which is the fleet's, is spent on it
			return false, err
		}
		if err := h.Enrol(id, invitation); err != nil {
			return false, err
		}
		invitation = 0 // it is the fleet's
	}
	return c.store.Enrol(id, invitation)
}

// exporter is what the device's signature must cover of the connection. One made
// for another connection is not taken: not what a device signed that was told
// there is no TLS.
func (s *session) exporter(channel uint8) ([]byte, error) {
	switch {
	case channel == wire.ChannelBrowser, channel == wire.ChannelPlain && s.peer.Export == nil:
		return nil, nil
	case channel == wire.ChannelTLS && s.peer.Export != nil:
		return s.peer.Export(wire.ExporterLabel, nil, 32)
	}
	return nil, link.Refuse(wire.CodeIdentity, 0, "the signature is not for this connection")
}

// lateJoin answers a device that comes after the job has ended.
func (c *Coordinator) lateJoin(ctx context.Context, conn Conn, enrolled *wire.Enrolled) error {
	select {
	case <-c.done:
	default:
		return context.Cause(ctx)
	}
	last := c.lastWord
	if _, finished := last.(*wire.Finished); finished {
		enrolled.Session = sessionToken()
		if err := conn.Write(link.Frame(enrolled)); err != nil {
			return err
		}
	}
	if err := conn.Write(link.Frame(last)); err != nil {
		return err
	}
	conn.Close(false)
	return link.ErrClosing
}
