package bandwidth

import (
	"context"
	"net"
	"sync/atomic"
)

// socketBytes counts what one device sends and receives, at the socket: HTTP
// heads, WebSocket frames and all.
type socketBytes struct{ up, down atomic.Int64 }

// dial opens a TCP connection whose bytes are counted.
func (s *socketBytes) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &countedConn{Conn: c, bytes: s}, nil
}

type countedConn struct {
	net.Conn
	bytes *socketBytes
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.down.Add(int64(n))
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.bytes.up.Add(int64(n))
	return n, err
}
