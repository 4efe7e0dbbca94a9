package link

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/internal/wire"
)

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

// Within has a conversation on a connection that is not served yet, and ends it with the
// connection where it takes longer.
func (l *Link) Within(limit time.Duration, talk func(ctx context.Context) error) error {
	ctx, stop := context.WithTimeout(l.ctx, limit)
	defer stop()
	defer closeWith(ctx, l.conn)() // before stop
	err := talk(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Next is the peer's next message.
func (l *Link) Next() (wire.Message, error) {
	b, err := l.conn.Read()
	for _, offence := range l.terms.Offences {
		if errors.Is(err, offence) {
			return nil, Refuse(wire.CodeProtocol, 0, "%v", offence)
		}
	}
	if err != nil {
		return nil, err
	}
	l.heard.Store(time.Now().UnixNano())
	if !l.terms.Counted {
		l.terms.Meter.Up(len(b))
	}
	m, err := wire.Decode(b, wire.FromDevice)
	if err != nil {
		return nil, Refuse(wire.CodeProtocol, 0, "%v", err)
	}
	l.terms.Meter.For(partOf(m.Kind()), int64(len(b)), 0)
	return m, l.terms.Check(m)
}

// Tell ends a link that is not served with the refusal in an error, if there is one.
func (l *Link) Tell(err error) {
	var told *Refusal
	if errors.As(err, &told) && l.conn.Write(Frame(told.Msg)) == nil {
		l.conn.Close(true)
	}
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

// Serve carries frames both ways until the link ends, and returns why it did. Each message
// is given to take, which says whether it was taken; broken is told of one that no device
// sends, and sees to the link's end. Both are called from this goroutine.
func (l *Link) Serve(take func(context.Context, wire.Message) bool, broken func(context.Context, *wire.Error)) error {
	written := make(chan struct{})
	go func() {
		defer close(written)
		l.write()
	}()
	l.cancel(l.read(take, broken))
	<-written
	return context.Cause(l.ctx)
}

// read gives every message away until the connection ends. Where the link is to end with a
// last word it waits for the writer to have sent that.
func (l *Link) read(take func(context.Context, wire.Message) bool, broken func(context.Context, *wire.Error)) error {
	for {
		m, err := l.Next()
		var told *Refusal
		if err == nil {
			switch m.(type) {
			case *wire.Hello, *wire.Enrol:
				err = Refuse(wire.CodeProtocol, 0, "%v after enrolment", m.Kind())
			}
		}
		switch {
		case errors.As(err, &told):
			broken(l.ctx, told.Msg)
			<-l.ctx.Done()
			return err
		case err != nil:
			return err
		case !take(l.ctx, m):
			<-l.ctx.Done() // the engine has queued its last word
			return ErrClosing
		}
	}
}

// write sends what the engine queued, and pings who has not been heard for PingEvery:
// a peer that is gone without a word, or dribbles, is found within that and PingTimeout.
// Who sends is not asked whether it lives: its answer would have to pass its own frames.
// All connections look at the same moments: ten thousand that each had their own would
// wake an idle process, and send it to sleep again, for each ping and for each answer.
func (l *Link) write() {
	ping := time.NewTimer(together(time.Now(), PingEvery))
	defer ping.Stop()
	var asked time.Time // by the last ping
	for {
		select {
		case b := <-l.out:
			if b == nil {
				// Close waits for the peer's answer, reading it in the reader.
				l.conn.Close(false)
				l.cancel(ErrClosing)
				return
			}
			if err := l.conn.Write(b); err != nil {
				l.cancel(fmt.Errorf("write: %w", err))
				return
			}
			if !l.terms.Counted {
				l.terms.Meter.Down(len(b))
			}
			l.terms.Meter.For(partOf(wire.Kind(b[0])), 0, int64(len(b)))
		case <-ping.C:
			now, lived := time.Now(), time.Unix(0, l.heard.Load())
			if at := l.conn.Answered(); at.After(lived) {
				lived = at
			}
			switch {
			case now.Sub(lived) < PingEvery:
				ping.Reset(together(now, PingEvery-now.Sub(lived)))
			case !lived.Before(asked): // it has answered what it was asked
				if err := l.conn.Ping(); err != nil {
					l.cancel(fmt.Errorf("ping: %w", err))
					return
				}
				asked = now
				ping.Reset(together(now, PingEvery))
			case now.Sub(asked) < PingTimeout:
				ping.Reset(together(now, PingTimeout-now.Sub(asked)))
			default:
				l.cancel(ErrMute)
				return
			}
		case <-l.ctx.Done():
			return
		}
	}
}

// together is wait, and as much longer as ends it at a multiple of PingsTogether.
func together(now time.Time, wait time.Duration) time.Duration {
	if over := time.Duration(now.Add(wait).UnixNano()) % PingsTogether; over > 0 {
		return wait + PingsTogether - over
	}
	return wait
}
