// Package socket makes a WebSocket a connection of the coordinator's. It is apart
// from package server so that the engine's own tests can use it.
package socket

import (
	"context"
	"fmt"
	"net/http"

	"github.com/coder/websocket"

	"github.com/starling-fl/starling/internal/wire"
)

// Socket is a WebSocket that carries one frame of the protocol in each binary
// message.
type Socket struct {
	conn *websocket.Conn
	text error // what a text message is
}

// Accept upgrades a request, and answers it where it cannot. text is what Read
// returns for a message that is not binary.
func Accept(w http.ResponseWriter, r *http.Request, text error) (*Socket, error) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, fmt.Errorf("websocket: %w", err)
	}
	conn.SetReadLimit(wire.MaxFrame)
	return &Socket{conn, text}, nil
}

// Read returns the next frame.
func (s *Socket) Read(ctx context.Context) ([]byte, error) {
	kind, b, err := s.conn.Read(ctx)
	if err == nil && kind != websocket.MessageBinary {
		return nil, s.text
	}
	return b, err
}

// Write sends a frame.
func (s *Socket) Write(ctx context.Context, frame []byte) error {
	return s.conn.Write(ctx, websocket.MessageBinary, frame)
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
