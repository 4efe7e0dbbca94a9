// Package pipes simulates a network without system calls, for tests in a synctest bubble:
// its clock moves as soon as everybody waits. Cut breaks a response off.
package pipes

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// Network is a listener and its dialers over net.Pipe, which has no buffer: a write waits for its
// read.
type Network struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// New makes a network; Close ends it.
func New() *Network { return &Network{conns: make(chan net.Conn), done: make(chan struct{})} }

// Accept returns the next connection's far end.
func (n *Network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (n *Network) Close() error { n.once.Do(func() { close(n.done) }); return nil }

// Addr is a loopback address: some of what is served is for this machine only.
func (n *Network) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// Connect hands the far end of a connection to Accept.
func (n *Network) Connect(ctx context.Context, far net.Conn) error {
	select {
	case n.conns <- far:
		return nil
	case <-n.done:
		return net.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Dial makes a connection, whatever the address.
func (n *Network) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	if err := n.Connect(ctx, far); err != nil {
		return nil, err
	}
	return near, nil
}

// Client asks over the network, and keeps no connection.
func (n *Network) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: n.Dial}}
}
