package relay

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
)

const (
	// mostGateways bounds the links of an owner: each may hold two windows of bytes.
	mostGateways = 64
	// unnamed bounds a link's streams that have not said yet where they are from.
	unnamed = 256
)

// Listener is where an owner hears devices that gateways pass on.
type Listener struct {
	nc    *nats.Conn
	id    string
	log   *slog.Logger
	opens *nats.Subscription

	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	work   sync.WaitGroup

	mu    sync.Mutex
	links map[string]*yamux.Session // guarded by mu: by gateway; nil after Close
}

// Listen says to all gateways that devices' connections are to come here, for as long as owns
// says so: who is not sure to hold the jobs' lease must not draw devices away from who does.
func Listen(nc *nats.Conn, owns func() bool, log *slog.Logger) (*Listener, error) {
	l := &Listener{nc: nc, id: nuid.Next(), log: log, conns: make(chan net.Conn), closed: make(chan struct{}), links: map[string]*yamux.Session{}}
	var err error
	if l.opens, err = nc.Subscribe(openPrefix+"*."+l.id, l.asked); err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	l.work.Go(func() { l.announce(owns) })
	return l, nil
}

// announce says once a beat that this is the owner, and at last that it is no more.
func (l *Listener) announce(owns func() bool) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		if owns() {
			_ = l.nc.Publish(ownerSubject, []byte("+"+l.id)) // said again
		}
		select {
		case <-tick.C:
		case <-l.closed:
			_ = l.nc.Publish(ownerSubject, []byte("-"+l.id)) // else it falls silent
			_ = l.nc.FlushTimeout(beat)
			return
		}
	}
}

// asked makes a link for a gateway, in place of the one that it had.
func (l *Listener) asked(m *nats.Msg) {
	gateway, _, _ := strings.Cut(strings.TrimPrefix(m.Subject, openPrefix), ".")
	link := string(m.Data)
	if !token.MatchString(gateway) || !token.MatchString(link) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	old, known := l.links[gateway]
	if l.links == nil || !known && len(l.links) >= mostGateways {
		l.log.Warn("a gateway gets no link", "gateway", gateway, "most", mostGateways)
		return
	}
	if known {
		shut(old)
	}
	p, err := newPipe(l.nc, upPrefix+gateway+"."+l.id+"."+link, downPrefix+gateway+"."+link)
	if err == nil {
		if err = p.tell(kindRead, 0); err != nil { // the gateway may send
			shut(p)
		}
	}
	if err != nil {
		l.log.Warn("a gateway gets no link", "gateway", gateway, "error", err)
		return
	}
	session, err := yamux.Server(p, multiplexed(l.log))
	if err != nil {
		l.log.Error("a gateway gets no link", "gateway", gateway, "error", err)
		shut(p)
		return
	}
	l.links[gateway] = session
	l.log.Info("a gateway is here", "gateway", gateway)
	l.work.Go(func() {
		l.serve(session)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.links[gateway] == session {
			delete(l.links, gateway)
			l.log.Info("a gateway is gone", "gateway", gateway)
		}
	})
}

// serve takes a link's streams until it is over.
func (l *Listener) serve(session *yamux.Session) {
	defer shut(session)
	places := make(chan struct{}, unnamed)
	for {
		places <- struct{}{} // each is given back within opening
		stream, err := session.AcceptStream()
		if err != nil {
			return
		}
		l.work.Go(func() {
			defer func() { <-places }()
			l.welcome(stream)
		})
	}
}

// welcome hears where a stream's device is, and hands it to who accepts.
func (l *Listener) welcome(stream *yamux.Stream) {
	from, err := readAddress(stream)
	if err != nil {
		l.log.Debug("a stream of a gateway is refused", "error", err)
		shut(stream)
		return
	}
	late := time.NewTimer(opening)
	defer late.Stop()
	select {
	case l.conns <- &conn{stream, net.TCPAddrFromAddrPort(from)}:
	case <-l.closed:
		shut(stream)
	case <-late.C:
		shut(stream)
	}
}

// Accept is the next device's connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends it, and all connections that it took.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	_ = l.opens.Unsubscribe() // where there is no connection there is no subscription
	l.mu.Lock()
	links := l.links
	l.links = nil
	l.mu.Unlock()
	for _, session := range links {
		shut(session)
	}
	l.work.Wait()
	return nil
}

// Addr names the listener.
func (l *Listener) Addr() net.Addr { return address(l.id) }

type address string

func (address) Network() string  { return "nats" }
func (a address) String() string { return "NATS as owner " + string(a) }

// conn is a device's connection.
type conn struct {
	*yamux.Stream
	from net.Addr
}

func (c *conn) RemoteAddr() net.Addr { return c.from }

// Read gives the stream's buffer back once nothing is left in it: most devices are idle.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Stream.Read(b)
	if n < len(b) {
		c.Stream.Shrink()
	}
	return n, late(err)
}

// Close ends reads, too, which a stream's own leaves to its other end.
func (c *conn) Close() error {
	return errors.Join(c.Stream.SetReadDeadline(time.Unix(1, 0)), c.Stream.Close())
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Stream.Write(b)
	return n, late(err)
}

// late makes of the library's error for a deadline the one that others know: TLS takes any
// other for the connection's end, and servers read beyond deadlines.
func late(err error) error {
	if errors.Is(err, yamux.ErrTimeout) {
		return os.ErrDeadlineExceeded
	}
	return err
}

// mostAddress is the longest address with its port: an IPv6 address in brackets.
const mostAddress = 64

// appendAddress is what a stream begins with.
func appendAddress(b []byte, a net.Addr) []byte {
	text := a.String()
	if p, err := netip.ParseAddrPort(text); err == nil {
		text = netip.AddrPortFrom(p.Addr().Unmap().WithZone(""), p.Port()).String()
	}
	text = text[:min(len(text), mostAddress)]
	return append(append(b, byte(len(text))), text...)
}

func readAddress(stream net.Conn) (netip.AddrPort, error) {
	if err := stream.SetReadDeadline(time.Now().Add(opening)); err != nil {
		return netip.AddrPort{}, err
	}
	var b [1 + mostAddress]byte
	if _, err := io.ReadFull(stream, b[:1]); err != nil {
		return netip.AddrPort{}, err
	}
	if b[0] > mostAddress {
		return netip.AddrPort{}, fmt.Errorf("relay: an address of %d bytes, limit %d", b[0], mostAddress)
	}
	text := b[1 : 1+b[0]]
	if _, err := io.ReadFull(stream, text); err != nil {
		return netip.AddrPort{}, err
	}
	from, err := netip.ParseAddrPort(string(text))
	if err != nil {
		return from, fmt.Errorf("relay: address: %w", err)
	}
	return from, stream.SetReadDeadline(time.Time{})
}
