// Package socket makes a WebSocket a connection of the coordinator's. It is apart
// from package server so that the engine's own tests can use it.
//
// Ten thousand devices send and get a dozen messages a round each, so a message
// costs no timer, no context and no goroutine: the library beneath makes all three
// for a context that can end, and is therefore given one that cannot. Writes are
// bounded by a deadline of the connection's, reads by nothing but CloseNow. What is
// sent, frames and pings, does not pass the library either: a server's frame is its
// head and its bytes (RFC 6455 section 5.2). The handshakes, at the beginning and the
// end, answers to pings and all that is read are the library's.
package socket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/starling-fl/starling/internal/wire"
)

// Socket is a WebSocket that carries one frame of the protocol in each binary
// message.
type Socket struct {
	conn  *websocket.Conn
	out   *outbox
	in    *[]byte // of the last frame read
	room  hold
	holds bool // the last frame read has room of its own; the reader's
	terms Terms
	once  sync.Once

	answered atomic.Int64 // when the last answer to a ping came, in Unix nanoseconds
}

// Terms are what a connection may send.
type Terms struct {
	Most func(kind byte) int // bytes of a frame, by its first; at most wire.MaxFrame
	Room *Room               // shared by all connections
	// Text is what Read returns for a message that is not binary, Long for a frame of
	// more than Most.
	Text, Long error
}

// Accept upgrades a request, and answers it where it cannot.
func Accept(w http.ResponseWriter, r *http.Request, terms Terms) (*Socket, error) {
	s := &Socket{terms: terms, room: hold{gone: make(chan struct{})}}
	s.room.end = s.CloseNow
	var err error
	s.conn, err = websocket.Accept(upgrade{w, s}, r, &websocket.AcceptOptions{
		CompressionMode: websocket.CompressionDisabled,
		OnPongReceived:  func(context.Context, []byte) { s.answered.Store(time.Now().UnixNano()) },
	})
	if err != nil {
		return nil, fmt.Errorf("websocket: %w", err)
	}
	s.conn.SetReadLimit(wire.MaxFrame)
	return s, nil
}

// forever is the context of reads, which CloseNow ends.
var forever = context.Background()

// Read returns the next frame, whose bytes hold until the next Read. Only the
// connection's end ends it before there is one.
func (s *Socket) Read() ([]byte, error) {
	s.forget() // who waits for a frame holds no memory for it
	kind, r, err := s.conn.Reader(forever)
	if err != nil {
		return nil, fmt.Errorf("websocket: %w", err)
	}
	if kind != websocket.MessageBinary {
		return nil, s.terms.Text
	}
	if err = s.readAll(r); err != nil {
		s.forget()
		return nil, fmt.Errorf("websocket: %w", err)
	}
	return *s.in, nil
}

// forget gives the last frame's memory back.
func (s *Socket) forget() {
	if s.in != nil {
		release(s.in)
		s.in = nil
	}
	if s.holds {
		s.terms.Room.give(&s.room)
		s.holds = false
	}
}

// Write sends a frame, in one write of the connection below where it is not large,
// within MostWrite or the connection is of no more use.
func (s *Socket) Write(frame []byte) error {
	if err := s.out.frame(opBinary, frame); err != nil {
		return fmt.Errorf("websocket: %w", err)
	}
	return nil
}

// Ping asks for a sign of life, and waits no longer than Write.
func (s *Socket) Ping() error {
	if err := s.out.frame(opPing, nil); err != nil {
		return fmt.Errorf("websocket: ping: %w", err)
	}
	return nil
}

// Answered is when the peer last answered a ping, unasked ones too; in 1970 where it
// never has.
func (s *Socket) Answered() time.Time { return time.Unix(0, s.answered.Load()) }

// mostFarewell bounds what a peer takes to hang up.
const mostFarewell = 5 * time.Second

// Close ends the connection by the closing handshake.
func (s *Socket) Close(refused bool) {
	// The library reads the rest of a message that was too long, and waits for it without a bound.
	if s.out.conn.SetReadDeadline(time.Now().Add(mostFarewell)) != nil {
		return // it is gone
	}
	code, reason := websocket.StatusNormalClosure, ""
	if refused {
		code, reason = websocket.StatusPolicyViolation, "refused"
	}
	s.conn.Close(code, reason) // it may be gone already
}

// CloseNow ends it without.
func (s *Socket) CloseNow() {
	s.once.Do(func() {
		close(s.room.gone)
		s.terms.Room.give(&s.room) // its reader holds it for an instant more
	})
	s.conn.CloseNow()
}

// readAll reads a message into a pooled buffer. Whoever dribbles one holds at most
// four times what it has sent, or the smallest buffer, and no more than there is room
// for; no more is read than a frame of its kind may have.
func (s *Socket) readAll(r io.Reader) error {
	s.in = buffer(0)
	most := wire.MaxFrame
	for b := s.in; ; b = s.in {
		n, err := r.Read((*b)[len(*b):cap(*b)])
		if len(*b) == 0 && n > 0 {
			most = min(most, s.terms.Most((*b)[:1][0]))
		}
		*b = (*b)[:len(*b)+n]
		switch {
		case len(*b) > most, errors.Is(err, websocket.ErrMessageTooBig):
			return s.terms.Long
		case errors.Is(err, io.EOF):
			if s.holds {
				s.terms.Room.whole(&s.room)
			}
			return nil
		case err != nil:
			return err
		case len(*b) < cap(*b):
			continue
		}
		if cap(*b) >= freeRead && !s.holds {
			if err := s.terms.Room.take(&s.room, most); err != nil {
				return err
			}
			s.holds = true
		}
		larger := buffer(cap(*b) + 1)
		*larger = append(*larger, *b...)
		release(b)
		s.in = larger
	}
}
