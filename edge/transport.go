package edge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/coder/websocket"

	"github.com/starling-fl/starling/internal/wire"
)

// A Conn carries frames. Read and Write may be used by one goroutine each;
// Close may be called at any time and ends both.
type Conn interface {
	Read(ctx context.Context) ([]byte, error)
	Write(ctx context.Context, frame []byte) error
	Close() error
}

const (
	pingEvery   = 20 * time.Second // a peer that answers no ping within the next period is gone
	writeWithin = 2 * time.Minute  // for one frame
)

// errText is a text message where only binary ones are sent.
var errText = errors.New("edge: coordinator sent a text message")

// socket is a Conn over a WebSocket.
type socket struct {
	ws   *websocket.Conn
	stop context.CancelFunc // ends the pinging goroutine
	done chan struct{}      // closed when it has ended
}

func newSocket(ws *websocket.Conn) *socket {
	ws.SetReadLimit(wire.MaxFrame)
	ctx, stop := context.WithCancel(context.Background())
	s := &socket{ws: ws, stop: stop, done: make(chan struct{})}
	go s.ping(ctx)
	return s
}

// ping keeps the connection alive through middle boxes and notices a dead one.
// In a browser, which answers pings by itself, it does nothing.
func (s *socket) ping(ctx context.Context) {
	defer close(s.done)
	t := time.NewTicker(pingEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			ctx, cancel := context.WithTimeout(ctx, pingEvery)
			err := s.ws.Ping(ctx)
			cancel()
			if err != nil {
				s.ws.CloseNow()
				return
			}
		}
	}
}

func (s *socket) Read(ctx context.Context) ([]byte, error) {
	kind, frame, err := s.ws.Read(ctx)
	if err != nil {
		return nil, err
	}
	if kind != websocket.MessageBinary {
		return nil, errText
	}
	return frame, nil
}

func (s *socket) Write(ctx context.Context, frame []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	return s.ws.Write(ctx, websocket.MessageBinary, frame)
}

func (s *socket) Close() error {
	s.stop()
	err := s.ws.CloseNow()
	<-s.done
	return err
}

// DialSocket connects to the token's coordinator by WebSocket: what Config.Dial
// does by default. netDial opens the connection below it; nil means the
// system's. In a browser netDial is not used.
func DialSocket(ctx context.Context, t wire.Token, netDial NetDialer) (Conn, error) {
	ws, _, err := websocket.Dial(ctx, t.Endpoint(), dialOptions(t, netDial))
	if err != nil {
		return nil, fmt.Errorf("edge: dial %s: %w", t.URL, err)
	}
	return newSocket(ws), nil
}

// A NetDialer opens a transport connection, as net.Dialer.DialContext does.
type NetDialer func(ctx context.Context, network, address string) (net.Conn, error)
