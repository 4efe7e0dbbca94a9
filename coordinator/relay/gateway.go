package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
)

// errNobody is a connection that no owner was there for.
var errNobody = errors.New("relay: no owner is there")

// Gateway passes devices' connections on to the owner of their jobs.
type Gateway struct {
	nc     *nats.Conn
	name   string
	log    *slog.Logger
	passed atomic.Int64 // connections

	mu      sync.Mutex
	link    *link         // guarded by mu: to the owner; nil where there is none
	changed chan struct{} // guarded by mu: closed when link is another

	// Of Follow's goroutine.
	owner string    // heard last
	heard time.Time // when
	past  []string  // owners that another one has replaced, the latest last
}

// mostPast bounds the owners that are remembered: they are replaced, and do not come back.
const mostPast = 64

// NewGateway returns the gateway of that name. Only one gateway of a name may run.
func NewGateway(nc *nats.Conn, name string, log *slog.Logger) (*Gateway, error) {
	if !token.MatchString(name) {
		return nil, fmt.Errorf("relay: gateway %.80q: want up to 64 letters, digits, - and _", name)
	}
	return &Gateway{nc: nc, name: name, log: log, changed: make(chan struct{})}, nil
}

// Ready reports whether there is an owner to pass connections on to.
func (g *Gateway) Ready() bool {
	l, _ := g.current()
	return l != nil
}

// Connections counts those that are passed on now.
func (g *Gateway) Connections() int { return int(g.passed.Load()) }

func (g *Gateway) current() (*link, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.link != nil && g.link.ended() {
		return nil, g.changed
	}
	return g.link, g.changed
}

// use passes connections on by another link from now on; the last one's end.
func (g *Gateway) use(l *link) {
	g.mu.Lock()
	old := g.link
	g.link = l
	close(g.changed)
	g.changed = make(chan struct{})
	g.mu.Unlock()
	if old != nil {
		shut(old)
	}
}

// Follow links the gateway to the current owner of the jobs, until ctx is done.
func (g *Gateway) Follow(ctx context.Context) error {
	said := make(chan *nats.Msg, 16)
	sub, err := g.nc.ChanSubscribe(ownerSubject, said)
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	defer func() {
		_ = sub.Unsubscribe() // where there is no connection there is no subscription
		g.use(nil)
	}()
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case m := <-said:
			g.hear(ctx, m.Data)
		case <-tick.C:
			if l, _ := g.current(); l != nil && time.Since(g.heard) > mute {
				g.log.Warn("the owner is silent", "owner", g.owner)
				g.use(nil)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// hear minds what an owner says.
func (g *Gateway) hear(ctx context.Context, said []byte) {
	if len(said) < 1 || !token.Match(said[1:]) {
		return
	}
	id := string(said[1:])
	switch {
	case said[0] == '-' && id == g.owner:
		g.log.Info("the owner is leaving", "owner", id)
		g.use(nil)
		return
	case said[0] != '+' || slices.Contains(g.past, id):
		return
	case id != g.owner:
		if g.owner != "" {
			g.past = append(g.past, g.owner)
			g.past = g.past[max(0, len(g.past)-mostPast):]
		}
		g.owner = id
		g.use(nil)
	}
	g.heard = time.Now()
	if l, _ := g.current(); l == nil {
		l, err := g.dial(ctx)
		if err != nil {
			g.log.Warn("no link to the owner", "owner", id, "error", err)
			return
		}
		g.log.Info("linked to the owner", "owner", id)
		g.heard = time.Now()
		g.use(l)
	}
}

// dial makes a link to the owner.
func (g *Gateway) dial(ctx context.Context) (*link, error) {
	name := nuid.Next()
	l, err := newLink(g.nc, downPrefix+g.name+"."+name, upPrefix+g.name+"."+g.owner+"."+name, nil)
	if err != nil {
		return nil, err
	}
	if err := g.nc.Publish(openPrefix+g.name+"."+g.owner, []byte(name)); err != nil {
		shut(l)
		return nil, fmt.Errorf("relay: %w", err)
	}
	late := time.NewTimer(mute / 2)
	defer late.Stop()
	select {
	case <-l.open:
		return l, nil
	case <-late.C:
		err = errors.New("relay: it does not answer")
	case <-ctx.Done():
		err = ctx.Err()
	}
	shut(l)
	return nil, err
}

// patience is how long a connection waits for an owner: one that is killed is replaced within.
const patience = 15 * time.Second

// stream opens one for a device's connection, as soon as there is an owner.
func (g *Gateway) stream(ctx context.Context, from net.Addr) (*stream, error) {
	at, err := addressOf(from)
	if err != nil {
		return nil, err
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		l, changed := g.current()
		if l != nil {
			s, err := l.dial(at)
			if err == nil {
				return s, nil
			}
			g.log.Debug("no stream to the owner", "error", err)
		}
		select {
		case <-changed:
		case <-late.C:
			return nil, errNobody
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Serve forwards a listener's connections until ctx is done, and waits for them to end.
func (g *Gateway) Serve(ctx context.Context, l net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	var passing sync.WaitGroup
	defer passing.Wait()
	defer stop()
	defer context.AfterFunc(ctx, func() { shut(l) })()
	for {
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				shut(conn)
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("relay: %w", err)
		case err != nil: // too many files are open, or who dialled is gone
			g.log.Warn("a connection cannot be taken", "error", err)
			select {
			case <-time.After(beat / 10):
			case <-ctx.Done():
			}
			continue
		}
		passing.Go(func() {
			defer context.AfterFunc(ctx, func() { shut(conn) })()
			g.pass(ctx, conn)
		})
	}
}
