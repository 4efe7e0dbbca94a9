package edge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall/js"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// A NetDialer has no meaning in a browser, which opens every connection itself.
type NetDialer func()

// maxUnread bounds the bytes of frames that nobody has read yet: a browser
// cannot be told to slow its peer down.
const maxUnread = 4 * wire.MaxFrame

var (
	errSocketClosed = errors.New("edge: the connection is closed")
	errOffline      = errors.New("edge: this device is offline")
	errUnread       = errors.New("edge: the coordinator sends faster than this device reads")
	errNotBinary    = errors.New("edge: coordinator sent a text message")
)

// socket is a Conn over the browser's WebSocket. A WebSocket library would bring
// net/http and with it a TLS stack that is never used.
type socket struct {
	ws       js.Value
	handlers []handler

	mu     sync.Mutex
	unread [][]byte      // by mu; oldest first
	size   int           // by mu; bytes in unread
	err    error         // by mu; why it ended, written before closed
	some   chan struct{} // one token: there may be something in unread
	closed chan struct{}
}

// handler is a listener on one of the browser's objects.
type handler struct {
	target js.Value
	event  string
	f      js.Func
}

// DialSocket connects to the token's coordinator by the browser's WebSocket.
// The browser checks certificates itself and lets no page pin one.
func DialSocket(ctx context.Context, token string, _ NetDialer) (Conn, error) {
	t, err := wire.ParseToken(token)
	if err != nil {
		return nil, fmt.Errorf("edge: token: %w", err)
	}
	s := &socket{some: make(chan struct{}, 1), closed: make(chan struct{})}
	if err := s.open(t.Endpoint()); err != nil {
		return nil, fmt.Errorf("edge: this page may not speak to the coordinator at %s: %w", t.URL, err)
	}
	opened := make(chan struct{})
	s.on(s.ws, "open", func(js.Value) { close(opened) })
	s.on(s.ws, "message", s.message)
	s.on(s.ws, "close", func(e js.Value) {
		why := fmt.Sprintf("code %d %s", e.Get("code").Int(), e.Get("reason").String())
		s.end(fmt.Errorf("%w: %s", errSocketClosed, strings.TrimSpace(why))) // most have no reason
	})
	// A browser tells a page of a dead network at once, its socket of it only
	// after minutes.
	s.on(js.Global(), "offline", func(js.Value) { s.end(errOffline) })
	select {
	case <-opened:
		return s, nil
	case <-s.closed:
		s.Close()
		return nil, fmt.Errorf("edge: the coordinator at %s does not answer: %w", t.URL, s.err)
	case <-ctx.Done():
		s.Close()
		return nil, fmt.Errorf("edge: the coordinator at %s does not answer: %w", t.URL, ctx.Err())
	}
}

// open makes the WebSocket; its constructor throws where the page may not open
// one, for example http from https.
func (s *socket) open(address string) (err error) {
	defer caught(&err)
	// Browsers before 2023 know no http: in a WebSocket's address.
	if rest, ok := strings.CutPrefix(address, "http"); ok {
		address = "ws" + rest
	}
	s.ws = js.Global().Get("WebSocket").New(address)
	s.ws.Set("binaryType", "arraybuffer")
	return nil
}

func (s *socket) on(target js.Value, event string, do func(js.Value)) {
	f := js.FuncOf(func(_ js.Value, args []js.Value) any { do(args[0]); return nil })
	target.Call("addEventListener", event, f)
	s.handlers = append(s.handlers, handler{target, event, f})
}

// message takes a frame in. It runs in the browser's event loop: it must not block.
func (s *socket) message(e js.Value) {
	data := e.Get("data")
	if data.Type() == js.TypeString {
		s.end(errNotBinary)
		return
	}
	view := js.Global().Get("Uint8Array").New(data)
	n := view.Length()
	if n > wire.MaxFrame {
		s.end(fmt.Errorf("edge: coordinator sent a frame of %d bytes, limit %d", n, wire.MaxFrame))
		return
	}
	frame := make([]byte, n)
	js.CopyBytesToGo(frame, view)
	s.mu.Lock()
	s.unread = append(s.unread, frame)
	s.size += n
	full := s.size > maxUnread
	s.mu.Unlock()
	if full {
		s.end(errUnread)
		return
	}
	s.wake()
}

func (s *socket) wake() {
	select {
	case s.some <- struct{}{}:
	default:
	}
}

// end notes why the connection is over, once. What had come before is still read.
func (s *socket) end(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = why
		close(s.closed)
	}
}

func (s *socket) next() ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unread) == 0 {
		return nil, false
	}
	frame := s.unread[0]
	s.unread = s.unread[1:]
	s.size -= len(frame)
	if len(s.unread) > 0 {
		s.wake()
	}
	return frame, true
}

// Read implements Conn.
func (s *socket) Read(ctx context.Context) ([]byte, error) {
	for {
		if frame, ok := s.next(); ok {
			return frame, nil
		}
		select {
		case <-s.some:
		case <-s.closed:
			if frame, ok := s.next(); ok {
				return frame, nil
			}
			return nil, s.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Write implements Conn. It hands the frame to the browser, which queues it.
func (s *socket) Write(ctx context.Context, frame []byte) (err error) {
	select {
	case <-s.closed:
		return s.err
	case <-ctx.Done():
		return ctx.Err()
	default:
	}
	defer caught(&err)
	view := js.Global().Get("Uint8Array").New(len(frame))
	js.CopyBytesToJS(view, frame)
	s.ws.Call("send", view)
	return nil
}

// Close implements Conn. It does not wait for the peer's answer: over a dead
// network that takes minutes.
func (s *socket) Close() (err error) {
	s.end(errSocketClosed)
	for _, h := range s.handlers {
		h.target.Call("removeEventListener", h.event, h.f)
		h.f.Release()
	}
	s.handlers = nil
	defer caught(&err)
	s.ws.Call("close")
	return nil
}

// caught turns what JavaScript threw into an error.
func caught(err *error) {
	switch r := recover().(type) {
	case nil:
	case js.Error:
		*err = r
	default:
		panic(r)
	}
}
