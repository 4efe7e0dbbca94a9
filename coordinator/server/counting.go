package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/starling-fl/starling/coordinator/monitor"
)

// countingListener counts its connections and their bytes as they cross the
// socket, TLS and HTTP included.
type countingListener struct {
	net.Listener
	meter   atomic.Pointer[monitor.Meter]
	sockets atomic.Pointer[sockets]
}

func (l *countingListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		out := &countingConn{Conn: conn, l: l, leave: func() {}}
		if s := l.sockets.Load(); s != nil {
			if out.leave = s.enter(conn.RemoteAddr()); out.leave == nil {
				if m := l.meter.Load(); m != nil {
					m.Refuse()
				}
				if tcp, ok := conn.(*net.TCPConn); ok {
					_ = tcp.SetLinger(0) // nothing stays behind here, either
				}
				conn.Close()
				continue
			}
		}
		return out, nil
	}
}

// countingConn is a connection whose bytes are counted, also those of its present
// request.
type countingConn struct {
	net.Conn
	l        *countingListener
	up, down atomic.Int64 // since the last begin, and the last settle
	request  atomic.Int64 // what of up the present request is
	upgraded atomic.Bool  // it is a device's session, which bounds its writes itself
	part     atomic.Int32 // what the present request is for, a monitor.Part
	leave    func()       // counts the connection out
	left     sync.Once
}

func (c *countingConn) Close() error {
	c.left.Do(c.leave)
	return c.Conn.Close()
}

// CloseWrite says that nothing more comes, where that can be said.
func (c *countingConn) CloseWrite() error {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		return tcp.CloseWrite()
	}
	return errors.ErrUnsupported
}

// counting is the counting connection below a server's, nil if there is none.
func counting(conn net.Conn) *countingConn {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	c, _ := conn.(*countingConn)
	return c
}

// begin notes what a request took that has come in whole, headers and TLS
// included: while it is answered the server reads ahead, so what comes from here on
// is of the next.
func (c *countingConn) begin() { c.request.Store(c.up.Swap(0)) }

// meant says what a request is for.
func meant(r *http.Request, p monitor.Part) {
	if c, ok := r.Context().Value(countedKey{}).(*countingConn); ok {
		c.part.Store(int32(p))
	}
}

// settle accounts for a request that has been answered.
func (c *countingConn) settle() {
	if c == nil {
		return
	}
	up, down := c.request.Swap(0), c.down.Swap(0)
	if m, p := c.l.meter.Load(), monitor.Part(c.part.Swap(0)); m != nil && p != monitor.PartNone {
		m.For(p, up, down)
	}
}

func (c *countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if m := c.l.meter.Load(); m != nil {
		m.Up(n)
	}
	c.up.Add(int64(n))
	return n, err
}

// Write ends the connection if the peer takes longer than writeTimeout for p.
func (c *countingConn) Write(p []byte) (int, error) {
	if !c.upgraded.Load() {
		_ = c.Conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // a closed connection's Write says so
	}
	n, err := c.Conn.Write(p)
	if m := c.l.meter.Load(); m != nil {
		m.Down(n)
	}
	c.down.Add(int64(n))
	return n, err
}

type countedKey struct{}

// isCounted reports whether a request came over a listener that counts bytes.
func isCounted(ctx context.Context) bool { return ctx.Value(countedKey{}) != nil }
