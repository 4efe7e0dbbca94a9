package relay

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
)

const (
	// mostGateways bounds the links of an owner.
	mostGateways = 64
	// mostWaiting is how many connections wait for who accepts.
	mostWaiting = 256
	// alone is how long an owner may hear no gateway before it says so: each says something every pulse.
	alone = 2*pulse + time.Second
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
	links map[string]*link // guarded by mu: by gateway; nil after Close
	heard time.Time        // guarded by mu: when a gateway was heard last; at first when it began to listen
}

// Listen asks all gateways for devices' connections, while owns returns true. An owner that is not
// sure of its lease must not draw devices away from the one that holds it.
func Listen(nc *nats.Conn, owns func() bool, log *slog.Logger) (*Listener, error) {
	l := &Listener{nc: nc, id: nuid.Next(), log: log, conns: make(chan net.Conn, mostWaiting), closed: make(chan struct{}), links: map[string]*link{}, heard: time.Now()}
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
		l.note(time.Now())
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

// note notes whether a gateway is heard.
func (l *Listener) note(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.links {
		if at := time.Unix(0, k.heard.Load()); at.After(l.heard) && !at.After(now) {
			l.heard = at
		}
	}
}

// Check returns an error once no gateway has been heard for 11 seconds: no device can be served then.
func (l *Listener) Check(now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	silent := now.Sub(l.heard)
	if silent < alone {
		return nil
	}
	if !l.nc.IsConnected() {
		return fmt.Errorf("NATS has not been reached for %v: no device can come", silent.Round(time.Second))
	}
	return fmt.Errorf("no gateway has been heard for %v: no device can come", silent.Round(time.Second))
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
	k, err := newLink(l.nc, upPrefix+gateway+"."+l.id+"."+link, downPrefix+gateway+"."+link, l.welcome)
	if err == nil {
		if err = k.tell(kindRead, 0); err != nil { // the gateway may send
			shut(k)
		}
	}
	if err != nil {
		l.log.Warn("a gateway gets no link", "gateway", gateway, "error", err)
		return
	}
	l.links[gateway] = k
	l.log.Info("a gateway is here", "gateway", gateway)
	l.work.Go(func() {
		<-k.over
		shut(k)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.links[gateway] == k {
			delete(l.links, gateway)
			l.log.Info("a gateway is gone", "gateway", gateway)
		}
	})
}

// welcome hands a stream to who accepts.
func (l *Listener) welcome(s *stream) {
	select {
	case l.conns <- s:
	case <-s.l.over:
	case <-l.closed:
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
	for _, k := range links {
		shut(k)
	}
	l.work.Wait()
	return nil
}

// Addr names the listener.
func (l *Listener) Addr() net.Addr { return address(l.id) }

type address string

func (address) Network() string  { return "nats" }
func (a address) String() string { return "NATS as owner " + string(a) }

// mostAddress is the longest address with its port: an IPv6 address in brackets.
const mostAddress = 64

// addressOf is where a device is, as a link says it.
func addressOf(a net.Addr) (netip.AddrPort, error) {
	p, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return p, fmt.Errorf("relay: address: %w", err)
	}
	return netip.AddrPortFrom(p.Addr().Unmap().WithZone(""), p.Port()), nil
}
