// Package socket makes a WebSocket a connection of the coordinator's. It is apart
// from package server so that the engine's own tests can use it.
//
// What comes from a stranger is read by the library (RFC 6455): the request that
// upgrades a connection, frames, and the closing handshake.
//
// Ten thousand devices send and get a dozen messages a round each, so a message costs
// no timer, no context, no goroutine and no memory but its pooled buffer: the library
// makes none for a context that cannot end. Writes are bounded by a deadline of the
// connection's, reads by nothing but CloseNow. A frame of ours is its head and its bytes
// in one write, a ping and its answer likewise: the library's hold a context and two
// timers each, and end the connection where a large frame before them takes 5 seconds.
package socket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// Socket is a WebSocket that carries one frame of the protocol in each binary
// message.
type Socket struct {
	conn  *websocket.Conn // reads frames, and closes the connection below
	out   *outbox
	ended error   // why nothing more can be read; the reader's
	last  *[]byte // frame that was read
	room  hold
	holds bool // the last frame read has room of its own; the reader's
	terms Terms
	once  sync.Once

	answered atomic.Int64 // when the last answer to a ping came, in Unix nanoseconds
}

// Terms limit what a connection may send.
type Terms struct {
	Most func(kind byte) int // bytes of a frame, by its first; at most wire.MaxFrame
	Room *Room               // shared by all connections
	// Origins lists other sites whose pages may connect, as "https://app.example.org".
	Origins []string
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
		OriginPatterns:  patterns(terms.Origins),
		OnPingReceived:  s.pinged,
		OnPongReceived:  func(context.Context, []byte) { s.answered.Store(time.Now().UnixNano()) },
	})
	if err != nil {
		return nil, fmt.Errorf("websocket: %w", err)
	}
	s.conn.SetReadLimit(wire.MaxFrame) // readAll stops before
	return s, nil
}

// patterns are origins as the library compares them: an IPv6 address is in brackets,
// which mean something else to it.
func patterns(origins []string) []string {
	out := make([]string, len(origins))
	for i, o := range origins {
		out[i] = strings.ReplaceAll(o, "[", `\[`)
	}
	return out
}

// pinged answers a ping, in place of the library, which would give up after 5 seconds.
func (s *Socket) pinged(_ context.Context, payload []byte) (answer bool) {
	_ = s.out.frame(opPong, payload) // where it cannot be sent the next read fails
	return false
}

// forever is the context of reads, which CloseNow ends.
var forever = context.Background()

// Read returns the next frame, whose bytes hold until the next Read. Only the
// connection's end ends it before there is one. After an error nothing can be read.
func (s *Socket) Read() ([]byte, error) {
	s.forget() // who waits for a frame holds no memory for it
	if s.ended == nil {
		s.ended = s.read()
	}
	if s.ended != nil {
		s.forget()
		return nil, s.ended
	}
	return *s.last, nil
}

func (s *Socket) read() error {
	kind, r, err := s.conn.Reader(forever)
	if err == nil && kind != websocket.MessageBinary {
		return s.terms.Text
	}
	if err == nil {
		err = s.readAll(r)
	}
	if err != nil {
		return fmt.Errorf("websocket: %w", err)
	}
	return nil
}

// forget gives the last frame's memory back.
func (s *Socket) forget() {
	if s.last != nil {
		release(s.last)
		s.last = nil
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
	defer s.CloseNow()
	if s.out.farewell(time.Now().Add(mostFarewell)) != nil {
		return // it is gone
	}
	code, reason := websocket.StatusNormalClosure, ""
	if refused {
		code, reason = websocket.StatusPolicyViolation, "refused"
	}
	// What is on its way is read: else the peer's system would lose what we said last.
	// The answer may be read by a Read that waits already.
	_ = s.conn.Close(code, reason) // it may be gone already
}

// CloseNow ends it without.
func (s *Socket) CloseNow() {
	s.once.Do(func() {
		close(s.room.gone)
		s.terms.Room.give(&s.room) // its reader holds it for an instant more
	})
	_ = s.conn.CloseNow()
}

// readAll reads a message into a pooled buffer. Anyone who sends one slowly holds at most
// four times what it has sent, or the smallest buffer, and no more than there is room
// for; no more is read than a frame of its kind may have.
func (s *Socket) readAll(r io.Reader) error {
	s.last = buffer(0)
	most := wire.MaxFrame
	for b := s.last; ; b = s.last {
		n, err := r.Read((*b)[len(*b):cap(*b)])
		if len(*b) == 0 && n > 0 {
			most = min(most, s.terms.Most((*b)[:1][0]))
		}
		*b = (*b)[:len(*b)+n]
		switch {
		case len(*b) > most:
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
		s.last = larger
	}
}
