package link

import (
	"context"
	"errors"
	"time"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/internal/protocol/wire"
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
	return l.decoded(l.conn.Read())
}

// decoded is the message in a frame that was read. It is apart so that who waits for one
// waits with a small stack.
func (l *Link) decoded(b []byte, err error) (wire.Message, error) {
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
	l.begin()
	l.cancel(l.read(take, broken))
	l.end()
	return context.Cause(l.ctx)
}

// read gives every message away until the connection ends. If the link is to end with a
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
