package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
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
	session *yamux.Session // guarded by mu: to the owner; nil where there is none
	changed chan struct{}  // guarded by mu: closed when session is another

	// Of Follow's goroutine.
	owner string    // heard last
	heard time.Time // when
	past  []string  // owners that another one has replaced, the latest last
}

// mostPast bounds the owners that are remembered: they are replaced, and do not come back.
const mostPast = 64

// NewGateway is one of that name, of which there must be one alone.
func NewGateway(nc *nats.Conn, name string, log *slog.Logger) (*Gateway, error) {
	if !token.MatchString(name) {
		return nil, fmt.Errorf("relay: gateway %.80q: want up to 64 letters, digits, - and _", name)
	}
	return &Gateway{nc: nc, name: name, log: log, changed: make(chan struct{})}, nil
}

// Ready reports whether there is an owner to pass connections on to.
func (g *Gateway) Ready() bool {
	session, _ := g.current()
	return session != nil
}

// Connections counts those that are passed on now.
func (g *Gateway) Connections() int { return int(g.passed.Load()) }

func (g *Gateway) current() (*yamux.Session, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.session != nil && g.session.IsClosed() {
		return nil, g.changed
	}
	return g.session, g.changed
}

// use passes connections on by another session from now on; the last one's end.
func (g *Gateway) use(session *yamux.Session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.session != nil {
		shut(g.session)
	}
	g.session = session
	close(g.changed)
	g.changed = make(chan struct{})
}

// Follow links the gateway to whoever owns the jobs, until ctx is done.
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
			if session, _ := g.current(); session != nil && time.Since(g.heard) > mute {
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
	if session, _ := g.current(); session == nil {
		session, err := g.link(ctx)
		if err != nil {
			g.log.Warn("no link to the owner", "owner", id, "error", err)
			return
		}
		g.log.Info("linked to the owner", "owner", id)
		g.heard = time.Now()
		g.use(session)
	}
}

// link makes a link to the owner.
func (g *Gateway) link(ctx context.Context) (*yamux.Session, error) {
	link := nuid.Next()
	p, err := newPipe(g.nc, downPrefix+g.name+"."+link, upPrefix+g.name+"."+g.owner+"."+link)
	if err != nil {
		return nil, err
	}
	if err := g.nc.Publish(openPrefix+g.name+"."+g.owner, []byte(link)); err != nil {
		shut(p)
		return nil, fmt.Errorf("relay: %w", err)
	}
	late := time.NewTimer(mute / 2)
	defer late.Stop()
	select {
	case <-p.open:
	case <-late.C:
		shut(p)
		return nil, errors.New("relay: it does not answer")
	case <-ctx.Done():
		shut(p)
		return nil, ctx.Err()
	}
	session, err := yamux.Client(p, multiplexed(g.log))
	if err != nil {
		shut(p)
		return nil, fmt.Errorf("relay: %w", err)
	}
	return session, nil
}

// patience is how long a connection waits for an owner: one that is killed is replaced within.
const patience = 15 * time.Second

// stream opens one for a device's connection, as soon as there is an owner.
func (g *Gateway) stream(ctx context.Context, from net.Addr) (*yamux.Stream, error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		session, changed := g.current()
		if session != nil {
			stream, err := session.OpenStream()
			if err == nil {
				if _, err = stream.Write(appendAddress(nil, from)); err == nil {
					return stream, nil
				}
				shut(stream)
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

// Serve passes on what a listener accepts until ctx is done, and waits for its connections' ends.
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

// pass carries one device's bytes both ways.
func (g *Gateway) pass(ctx context.Context, device net.Conn) {
	defer shut(device)
	owner, err := g.stream(ctx, device.RemoteAddr())
	if err != nil {
		g.log.Debug("a connection is not passed on", "remote", device.RemoteAddr(), "error", err)
		return
	}
	g.passed.Add(1)
	defer g.passed.Add(-1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = carry(owner, device) // who hung up, or why, is the owner's to find
		shut(owner)              // what was sent arrives
	}()
	err = carry(device, owner)
	if half, ok := device.(interface{ CloseWrite() error }); ok && err == nil {
		// What it was told last would be lost where it still sends, and is not heard out.
		if half.CloseWrite() == nil {
			late := time.NewTimer(farewell)
			defer late.Stop()
			select {
			case <-done:
				return
			case <-late.C:
			}
		}
	}
	shut(device)
	<-done
}

// farewell bounds what a device takes to hang up.
const farewell = 5 * time.Second

// stalled is how long a peer may take nothing of what it is sent.
const stalled = 40 * time.Second

// Buffers: a small one of its own for each idle direction, a large one for as long as much comes.
const (
	idleBuffer = 512
	busyBuffer = 32 << 10
)

var busy = sync.Pool{New: func() any { b := make([]byte, busyBuffer); return &b }}

// carry copies until from ends, or to takes nothing.
func carry(to, from net.Conn) error {
	stream, _ := from.(*yamux.Stream)
	small := make([]byte, idleBuffer)
	var large *[]byte
	defer func() {
		if large != nil {
			busy.Put(large)
		}
	}()
	for {
		b := small
		if large != nil {
			b = *large
		}
		got, err := from.Read(b)
		if stream != nil && got < len(b) {
			stream.Shrink() // most are idle: its buffer is empty
		}
		if got > 0 {
			if err := to.SetWriteDeadline(time.Now().Add(stalled)); err != nil {
				return err
			}
			if _, err := to.Write(b[:got]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case got == len(b) && large == nil:
			large, _ = busy.Get().(*[]byte)
		case got < len(b) && large != nil: // more may be long in coming
			busy.Put(large)
			large = nil
		}
	}
}
