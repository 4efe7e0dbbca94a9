package socket

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// How long a peer may take a frame: LeastWrite at least, MostWrite at most. The
// deadline is moved only when less than LeastWrite is left of it: moving it costs
// as much as a small write.
const (
	LeastWrite = 30 * time.Second
	MostWrite  = 40 * time.Second
)

// outbox is what the WebSocket library writes to. It writes a frame's head and body
// apart, through a small buffer: here they become one write again.
type outbox struct {
	conn net.Conn

	mu    sync.Mutex
	held  *[]byte   // what has been written of the present message; nil: write through
	until time.Time // the connection's deadline
}

// hold keeps what is written until flush.
func (o *outbox) hold() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held = buffer(1 << 14)
}

func (o *outbox) flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.held
	o.held = nil
	defer release(b)
	_, err := o.send(*b)
	return err
}

// Write is also called for answers to pings, beside a message that is held: they go
// with it.
func (o *outbox) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.held == nil {
		return o.send(p)
	}
	if b := *o.held; len(b)+len(p) > cap(b) {
		*o.held = b[:0]
		if _, err := o.send(b); err != nil {
			return 0, err
		}
		if len(p) > cap(b) { // a large frame's body is not copied
			return o.send(p)
		}
	}
	*o.held = append(*o.held, p...)
	return len(p), nil
}

func (o *outbox) send(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if now := time.Now(); o.until.Sub(now) < LeastWrite {
		o.until = now.Add(MostWrite)
		if err := o.conn.SetWriteDeadline(o.until); err != nil {
			return 0, fmt.Errorf("deadline: %w", err)
		}
	}
	return o.conn.Write(p)
}

// upgrade gives the library a connection whose writes go through the socket's outbox.
type upgrade struct {
	http.ResponseWriter
	s *Socket
}

// headRoom holds the largest control frame: 2 bytes and 125 (RFC 6455 section 5.5).
const headRoom = 128

func (u upgrade) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(u.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("taking the connection over: %w", err)
	}
	if err := rw.Writer.Flush(); err != nil { // the answer to the request
		conn.Close()
		return nil, nil, fmt.Errorf("answering the request: %w", err)
	}
	u.s.out = &outbox{conn: conn}
	return conn, bufio.NewReadWriter(rw.Reader, bufio.NewWriterSize(u.s.out, headRoom)), nil
}
