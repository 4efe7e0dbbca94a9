package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/starling-fl/starling/coordinator/internal/fleet"
	"github.com/starling-fl/starling/coordinator/internal/link"
	"github.com/starling-fl/starling/internal/wire"
)

// handshakeTimeout bounds what a device takes to say who it is.
const handshakeTimeout = 15 * time.Second

// session is a device on a connection. What it says of itself is set by the handshake,
// before the engine hears of it.
type session struct {
	*link.Link
	id      [32]byte
	browser bool // the device says that it is one
	peer    Peer
	device  *fleet.Device // owned by the engine
}

// session carries one device's session on a connection.
func (c *Coordinator) session(conn Conn) {
	s := &session{peer: conn.Peer()}
	carrier, end := link.New(c.life, conn, link.Terms{
		Meter: c.traffic, Counted: s.peer.Counted, Offences: []error{ErrNotBinary, ErrTooLong}, Check: c.tooLong,
	})
	s.Link = carrier
	defer end()
	// The engine may have taken the session in even where the handshake failed
	// after that: it always hears of the end.
	defer func() { c.post(c.life, leftEvent{s}) }()
	if err := s.Within(handshakeTimeout, func(ctx context.Context) error { return c.greet(ctx, conn, s) }); err != nil {
		c.traffic.Refuse()
		c.log.Info("session refused", "remote", s.peer.Address, "request", s.peer.Request, "reason", err)
		s.Tell(err)
		return
	}
	c.metrics.Sessions.Inc()
	cause := s.Serve(
		func(ctx context.Context, m wire.Message) bool { return c.post(ctx, messageEvent{s, m}) },
		func(ctx context.Context, msg *wire.Error) { c.post(ctx, brokenEvent{s, msg}) })
	if errors.Is(cause, link.ErrSlow) || errors.Is(cause, link.ErrFaults) {
		c.metrics.Kicked.Inc()
	}
	c.log.Debug("session over", "device", short(s.id), "request", s.peer.Request, "reason", cause)
}

// short names a device in the log.
func short(id [32]byte) string { return fmt.Sprintf("%x", id[:4]) }
