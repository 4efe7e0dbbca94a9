package sim

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/starling-fl/starling/internal/leaf/pipes"
)

// line is one device's way to the network, which can be cut for a time.
type line struct {
	net  *pipes.Network
	rate int // bytes a second downwards; 0: at once

	mu   sync.Mutex
	down bool                  // by mu
	ends map[*farEnd]*pipeConn // by mu: open connections, the coordinator's end and the device's
}

var errLineDown = errors.New("network is unreachable")

func (l *line) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return nil, errLineDown
	}
	near, far := net.Pipe()
	end := &farEnd{Conn: far, closed: make(chan struct{}), rate: l.rate}
	device := &pipeConn{Conn: near, line: l, far: end}
	if l.ends == nil {
		l.ends = map[*farEnd]*pipeConn{}
	}
	l.ends[end] = device
	if err := l.net.Connect(ctx, end); err != nil {
		return nil, err
	}
	return device, nil
}

// cut ends every connection of the line as the device sees it, and takes what
// comes to nowhere as the coordinator sees it: it is not told. No new one is made
// for d.
func (l *line) cut(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return
	}
	l.down = true
	for far, near := range l.ends {
		far.lose()
		near.Conn.Close()
	}
	clear(l.ends)
	time.AfterFunc(d, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.down = false
	})
}

// pipeConn is a connection's end at the device.
type pipeConn struct {
	net.Conn
	line *line
	far  *farEnd
}

func (c *pipeConn) Close() error {
	c.line.mu.Lock()
	delete(c.line.ends, c.far)
	c.line.mu.Unlock()
	return c.Conn.Close()
}

// farEnd is a connection's end at the coordinator. Once it is lost, writes go to
// nowhere and reads wait, as those of a socket whose peer is gone without a word.
type farEnd struct {
	net.Conn
	rate   int
	once   sync.Once
	closed chan struct{}
	mu     sync.Mutex
	lost   bool // by mu
}

func (c *farEnd) lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = true
}

func (c *farEnd) isLost() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

func (c *farEnd) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && c.isLost() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *farEnd) Write(b []byte) (int, error) {
	for done := 0; c.rate > 0 && done < len(b); done += c.rate { // a second's bytes at a time
		select {
		case <-time.After(time.Second):
		case <-c.closed:
			return done, net.ErrClosed
		}
		if n, err := c.Conn.Write(b[done:min(len(b), done+c.rate)]); err != nil {
			return done + n, err
		}
	}
	if c.rate > 0 {
		return len(b), nil
	}
	n, err := c.Conn.Write(b)
	if errors.Is(err, io.ErrClosedPipe) && c.isLost() {
		return len(b), nil
	}
	return n, err
}

func (c *farEnd) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
