// Package socket makes a WebSocket a connection of the coordinator's. It is apart
// from package server so that the engine's own tests can use it.
//
// Ten thousand devices send and get a dozen messages a round each, so a message
// costs no timer, no context and no goroutine: the library beneath makes all three
// for a context that can end, and is therefore given one that cannot. Writes are
// bounded by a deadline of the connection's, reads by nothing but CloseNow.
package socket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/coder/websocket"

	"github.com/starling-fl/starling/internal/wire"
)

// Socket is a WebSocket that carries one frame of the protocol in each binary
// message.
type Socket struct {
	conn *websocket.Conn
	out  *outbox
	in   *[]byte // of the last frame read
	text error   // what a text message is
}

// Accept upgrades a request, and answers it where it cannot. text is what Read
// returns for a message that is not binary.
func Accept(w http.ResponseWriter, r *http.Request, text error) (*Socket, error) {
	s := &Socket{text: text}
	var err error
	s.conn, err = websocket.Accept(upgrade{w, s}, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, fmt.Errorf("websocket: %w", err)
	}
	s.conn.SetReadLimit(wire.MaxFrame)
	return s, nil
}

// forever is the context of reads and writes that something else bounds.
var forever = context.Background()

// Read returns the next frame, whose bytes hold until the next Read. Only the
// connection's end ends it before there is one.
func (s *Socket) Read() ([]byte, error) {
	if s.in != nil { // who waits for a frame holds no memory for it
		release(s.in)
		s.in = nil
	}
	kind, r, err := s.conn.Reader(forever)
	if err != nil {
		return nil, fmt.Errorf("websocket: %w", err)
	}
	if kind != websocket.MessageBinary {
		return nil, s.text
	}
	if s.in, err = readAll(r); err != nil {
		return nil, fmt.Errorf("websocket: %w", err)
	}
	return *s.in, nil
}

// Write sends a frame, in one write of the connection below where it is not large,
// within MostWrite or the connection is of no more use.
func (s *Socket) Write(frame []byte) error {
	s.out.hold()
	err := s.conn.Write(forever, websocket.MessageBinary, frame)
	if sent := s.out.flush(); err == nil {
		err = sent
	}
	if err != nil {
		return fmt.Errorf("websocket: %w", err)
	}
	return nil
}

// Ping waits for the peer's answer.
func (s *Socket) Ping(ctx context.Context) error {
	if err := s.conn.Ping(ctx); err != nil {
		return fmt.Errorf("websocket: ping: %w", err)
	}
	return nil
}

// Close ends the connection by the closing handshake.
func (s *Socket) Close(refused bool) {
	code, reason := websocket.StatusNormalClosure, ""
	if refused {
		code, reason = websocket.StatusPolicyViolation, "refused"
	}
	s.conn.Close(code, reason) // it may be gone already
}

// CloseNow ends it without.
func (s *Socket) CloseNow() { s.conn.CloseNow() }

// readAll reads a message into a pooled buffer. Whoever dribbles one holds at most
// four times what it has sent, or the smallest buffer.
func readAll(r io.Reader) (*[]byte, error) {
	b := buffer(0)
	for {
		n, err := r.Read((*b)[len(*b):cap(*b)])
		*b = (*b)[:len(*b)+n]
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			release(b)
			return nil, err
		}
		if len(*b) == cap(*b) {
			larger := buffer(cap(*b) + 1)
			*larger = append(*larger, *b...)
			release(b)
			b = larger
		}
	}
}
