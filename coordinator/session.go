package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/starling-fl/starling/coordinator/internal/fleet"
	"github.com/starling-fl/starling/coordinator/internal/link"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// handshakeTimeout bounds what a device takes to say who it is.
const handshakeTimeout = 15 * time.Second

// session is a device on a connection. What it says of itself is set by the handshake,
// before the engine hears of it.
type session struct {
	*link.Link
	c       *Coordinator
	id      [32]byte
	browser bool // the device says that it is one
	peer    Peer
	device  *fleet.Device // owned by the engine
}

// begin hears who a connection's device is, and gives it a session; nil if it gets none.
// What waits for the device's messages later is done elsewhere: a session holds the
// less of a stack.
func (c *Coordinator) begin(conn Conn) (*session, func()) {
	s := &session{c: c, peer: conn.Peer()}
	carrier, stop := link.New(c.life, conn, link.Terms{
		Meter: c.traffic, Counted: s.peer.Counted, Offences: []error{ErrNotBinary, ErrTooLong}, Check: c.tooLong,
	})
	s.Link = carrier
	end := func() {
		// The engine may have taken the session in even where the handshake failed
		// after that: it always hears of the end.
		c.post(c.life, leftEvent{s})
		stop()
	}
	begun := false
	defer func() {
		if !begun {
			end()
		}
	}()
	if err := s.Within(handshakeTimeout, func(ctx context.Context) error { return c.greet(ctx, conn, s) }); err != nil {
		c.traffic.Refuse()
		c.sayRefused(s, err)
		s.Tell(err)
		return nil, nil
	}
	begun = true
	c.metrics.Sessions.Inc()
	return s, end
}

// sayRefused logs that a device got no session: each reason once a minute at Info, and otherwise at Debug, so that a
// fleet that is refused leaves room for other lines. A device that comes after the job's end was told so; nothing
// is wrong with it.
func (c *Coordinator) sayRefused(s *session, err error) {
	level, facts := slog.LevelDebug, []any{"remote", s.peer.Address, "request", s.peer.Request, "reason", err}
	if !errors.Is(err, link.ErrClosing) {
		if said, more := c.refusals.say(err.Error(), time.Now()); said {
			level = slog.LevelInfo
			if more > 0 {
				facts = append(facts, "more_of_the_last_minute", more)
			}
		}
	}
	c.log.Log(context.Background(), level, "session refused", facts...)
}

// onMessage passes a message on to the engine. It reports whether the engine took it.
func (s *session) onMessage(ctx context.Context, m wire.Message) bool {
	return s.c.post(ctx, messageEvent{s, m})
}

// onProtocolError tells the engine that the device sent what no honest one sends.
func (s *session) onProtocolError(ctx context.Context, msg *wire.Error) {
	s.c.post(ctx, brokenEvent{s, msg})
}

// over notes why a session ended.
func (c *Coordinator) over(s *session, cause error) {
	if errors.Is(cause, link.ErrSlow) || errors.Is(cause, link.ErrFaults) {
		c.metrics.Kicked.Inc()
	}
	c.log.Debug("session over", "device", short(s.id), "request", s.peer.Request, "reason", cause)
}

// short names a device in the log.
func short(id [32]byte) string { return fmt.Sprintf("%x", id[:4]) }
