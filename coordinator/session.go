package coordinator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/internal/wire"
)

// Bounds of one session.
const (
	handshakeTimeout = 15 * time.Second
	pingEvery        = 25 * time.Second // shorter than the devices' own, which then do not ask
	pingTimeout      = 60 * time.Second // long enough for a full chunk on a slow line
	pingTogether     = time.Second      // connections are looked after at whole ones of these
	queueFrames      = 64               // frames waiting for a slow reader before it is cut off
	maxFaults        = 32               // useless messages in a row before a device is cut off
)

var (
	errSlow     = errors.New("reads too slowly")
	errMute     = errors.New("answers no ping")
	errFaults   = errors.New("broke the protocol too often")
	errReplaced = errors.New("another connection took the session over")
	errClosing  = errors.New("the coordinator is closing")
)

// session is one connection. The engine holds it and only calls send, finish
// and kill; the rest belongs to the connection's two goroutines.
type session struct {
	id      [32]byte
	heard   atomic.Int64            // when the last frame came, in nanoseconds
	out     chan []byte             // to the writer; nil ends it. Written by the engine only.
	cancel  context.CancelCauseFunc // safe from any goroutine
	device  *device                 // owned by the engine
	faults  int                     // owned by the engine
	dead    bool                    // owned by the engine: killed or finished
	browser bool                    // the device says that it is one
	peer    Peer
}

// send queues a frame, and cuts the device off where its queue is full: a slow
// reader is never waited for.
func (s *session) send(frame []byte) {
	if s.dead {
		return
	}
	select {
	case s.out <- frame:
	default:
		s.kill(errSlow)
	}
}

// finish queues a last frame and closes the session once it is written.
func (s *session) finish(frame []byte) {
	s.send(frame)
	if s.dead {
		return
	}
	s.dead = true
	select {
	case s.out <- nil:
	default:
		s.cancel(errSlow)
	}
}

func (s *session) kill(cause error) {
	s.dead = true
	s.cancel(cause)
}

// frame encodes a message of ours; one that cannot be encoded is a bug.
func frame(m wire.Message) []byte {
	b, err := wire.Append(nil, m)
	if err != nil {
		panic(fmt.Sprintf("coordinator: own message: %v", err))
	}
	return b
}

// refusal is an error that the device is told.
type refusal struct{ msg *wire.Error }

func (r *refusal) Error() string { return r.msg.Text }

func refuse(code uint16, retry time.Duration, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	return &refusal{&wire.Error{Code: code, Text: text[:min(len(text), wire.MaxText)], RetryMillis: uint32(retry.Milliseconds())}}
}

// session carries one device's session on a connection.
func (c *Coordinator) session(conn Conn) {
	ctx, cancel := context.WithCancelCause(c.life)
	defer cancel(nil)
	defer closeWith(ctx, conn)()
	s := &session{out: make(chan []byte, queueFrames), cancel: cancel, peer: conn.Peer()}
	// The engine may have taken the session in even where the handshake failed
	// after that: it always hears of the end.
	defer func() { c.post(c.life, leftEvent{s}) }()
	if err := c.handshake(ctx, conn, s); err != nil {
		c.traffic.Refuse()
		c.log.Info("session refused", "remote", s.peer.Address, "reason", err)
		var told *refusal
		if errors.As(err, &told) {
			if conn.Write(frame(told.msg)) == nil {
				conn.Close(true)
			}
		}
		return
	}
	c.metrics.Sessions.Inc()
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.write(ctx, conn, s)
	}()
	err := c.read(ctx, conn, s)
	cancel(err)
	<-written
	if cause := context.Cause(ctx); errors.Is(cause, errSlow) || errors.Is(cause, errFaults) {
		c.metrics.Kicked.Inc()
	}
	c.log.Debug("session over", "device", short(s.id), "reason", context.Cause(ctx))
}

// closeWith has the end of ctx end what waits for the peer, until the returned
// function is called.
func closeWith(ctx context.Context, conn Conn) (stop func()) {
	closed := make(chan struct{})
	off := context.AfterFunc(ctx, func() {
		defer close(closed)
		conn.CloseNow()
	})
	return func() {
		if !off() {
			<-closed
		}
	}
}

func (c *Coordinator) next(conn Conn, s *session) (wire.Message, error) {
	b, err := conn.Read()
	for _, broken := range []error{ErrNotBinary, ErrTooLong} {
		if errors.Is(err, broken) {
			return nil, refuse(wire.CodeProtocol, 0, "%v", broken)
		}
	}
	if err != nil {
		return nil, err
	}
	s.heard.Store(time.Now().UnixNano())
	if !s.peer.Counted {
		c.traffic.Up(len(b))
	}
	m, err := wire.Decode(b, wire.FromDevice)
	if err != nil {
		return nil, refuse(wire.CodeProtocol, 0, "%v", err)
	}
	c.traffic.For(partOf(m.Kind()), int64(len(b)), 0)
	if t, ok := m.(*wire.Turn); ok {
		return m, c.tooLong(t)
	}
	return m, nil
}

// partOf is what a frame's bytes are for.
func partOf(k wire.Kind) monitor.Part {
	switch k {
	case wire.KindAssignment, wire.KindTurn:
		return monitor.PartTurns
	case wire.KindUpdate:
		return monitor.PartUpdates
	}
	return monitor.PartNone
}

// read hands every message to the engine until the connection ends.
func (c *Coordinator) read(ctx context.Context, conn Conn, s *session) error {
	for {
		m, err := c.next(conn, s)
		if err != nil {
			var told *refusal
			if errors.As(err, &told) {
				c.sayLast(ctx, s, told.msg)
			}
			return err
		}
		switch m.(type) {
		case *wire.Hello, *wire.Enrol:
			err := &wire.Error{Code: wire.CodeProtocol, Text: fmt.Sprintf("%v after enrolment", m.Kind())}
			c.sayLast(ctx, s, err)
			return err
		}
		if !c.post(ctx, messageEvent{s, m}) {
			<-ctx.Done() // the engine has queued its last word
			return errClosing
		}
	}
}

// sayLast lets the engine end the session with an error and waits for the
// writer to have sent it.
func (c *Coordinator) sayLast(ctx context.Context, s *session, msg *wire.Error) {
	c.post(ctx, brokenEvent{s, msg})
	<-ctx.Done()
}

// write sends what the engine queued, and pings who has not been heard for pingEvery:
// a peer that is gone without a word, or dribbles, is found within that and pingTimeout.
// Who sends is not asked whether it lives: its answer would have to pass its own frames.
// All connections look at the same moments: ten thousand that each had their own would
// wake an idle process, and send it to sleep again, for each ping and for each answer.
func (c *Coordinator) write(ctx context.Context, conn Conn, s *session) {
	ping := time.NewTimer(together(time.Now(), pingEvery))
	defer ping.Stop()
	var asked time.Time // by the last ping
	for {
		select {
		case b := <-s.out:
			if b == nil {
				// Close waits for the peer's answer, reading it in the reader.
				conn.Close(false)
				s.cancel(errClosing)
				return
			}
			if err := conn.Write(b); err != nil {
				s.cancel(fmt.Errorf("write: %w", err))
				return
			}
			if !s.peer.Counted {
				c.traffic.Down(len(b))
			}
			c.traffic.For(partOf(wire.Kind(b[0])), 0, int64(len(b)))
		case <-ping.C:
			now, lived := time.Now(), time.Unix(0, s.heard.Load())
			if at := conn.Answered(); at.After(lived) {
				lived = at
			}
			switch {
			case now.Sub(lived) < pingEvery:
				ping.Reset(together(now, pingEvery-now.Sub(lived)))
			case !lived.Before(asked): // it has answered what it was asked
				if err := conn.Ping(); err != nil {
					s.cancel(fmt.Errorf("ping: %w", err))
					return
				}
				asked = now
				ping.Reset(together(now, pingEvery))
			case now.Sub(asked) < pingTimeout:
				ping.Reset(together(now, pingTimeout-now.Sub(asked)))
			default:
				s.cancel(errMute)
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// together is wait, and as much longer as ends it at a multiple of pingTogether.
func together(now time.Time, wait time.Duration) time.Duration {
	if over := time.Duration(now.Add(wait).UnixNano()) % pingTogether; over > 0 {
		return wait + pingTogether - over
	}
	return wait
}

// short names a device in the log.
func short(id [32]byte) string { return fmt.Sprintf("%x", id[:4]) }
