// Package link holds one device's open connection: frames that wait for a slow reader, pings
// for a silent one, and messages that are decoded within
// their bounds before anybody sees them. It also counts connections, and what an address
// may try in an hour.
//
// A peer is hostile: what reads too slowly, answers no ping, or sends what cannot be
// decoded is cut off, never waited for. Who a peer is and what its messages mean is the
// coordinator's.
package link

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// Bounds of one connection.
const (
	PingEvery     = 25 * time.Second // shorter than the devices' own, which then do not ask
	PingTimeout   = 60 * time.Second // long enough for a full chunk on a slow line
	PingsTogether = time.Second      // connections are looked after at whole ones of these
	queueFrames   = 64               // frames waiting for a slow reader before it is cut off
	MaxFaults     = 32               // useless messages in a row before a device is cut off
)

// Why a link ends before its peer ends it.
var (
	ErrSlow     = errors.New("reads too slowly")
	ErrMute     = errors.New("answers no ping")
	ErrFaults   = errors.New("broke the protocol too often")
	ErrReplaced = errors.New("another connection took the session over")
	ErrClosing  = errors.New("the coordinator is closing")
)

// Conn carries frames; coordinator.Conn says what is asked of each method.
type Conn interface {
	Read() ([]byte, error)
	Write(frame []byte) error
	Ping() error
	Answered() time.Time
	Close(refused bool)
	CloseNow()
}

// Terms apply to a link from its first frame on.
type Terms struct {
	Meter    *monitor.Meter
	Counted  bool                     // the connection's bytes are counted as they cross its socket; else its frames are
	Offences []error                  // of Conn.Read that the peer is told
	Check    func(wire.Message) error // refuses what no device of this job sends
}

// Link is one connection. One goroutine, the engine's, calls Send, Finish, Leave, Kill,
// Useless and Useful; the rest belongs to the one that made it, and to the writer, which is
// there only while something is to be written.
type Link struct {
	conn   Conn
	terms  Terms
	ctx    context.Context         // until it ends
	cancel context.CancelCauseFunc // safe from any goroutine
	heard  atomic.Int64            // when the last frame came, in nanoseconds
	out    outbox
	asked  time.Time // by the last ping; the writer's
	dead   bool      // owned by the engine: killed or finished
	faults int       // owned by the engine: since the peer's last message that changed something
}

// New begins to carry frames, until life or the link is over. The function that it returns
// ends it and waits for what closes the connection.
func New(life context.Context, conn Conn, terms Terms) (l *Link, end func()) {
	ctx, cancel := context.WithCancelCause(life)
	l = &Link{conn: conn, terms: terms, ctx: ctx, cancel: cancel}
	stop := closeWith(ctx, conn)
	return l, func() {
		stop()
		cancel(nil)
	}
}

// Dead reports whether the link was killed or finished.
func (l *Link) Dead() bool { return l.dead }

// Send queues a frame, and cuts the device off where its queue is full: a slow
// reader is never waited for.
func (l *Link) Send(frame []byte) {
	if l.dead {
		return
	}
	if !l.queue(frame) {
		l.Kill(ErrSlow)
	}
}

// Finish queues a last frame and closes the connection once it is written.
func (l *Link) Finish(frame []byte) {
	l.Send(frame)
	if l.dead {
		return
	}
	l.dead = true
	if !l.queue(nil) {
		l.cancel(ErrSlow)
	}
}

// Leave queues a last frame and lets the device hang up, within patience.
func (l *Link) Leave(frame []byte, patience time.Duration) {
	l.Send(frame)
	if l.dead {
		return
	}
	l.dead = true
	time.AfterFunc(patience, func() { l.cancel(ErrClosing) })
}

// Kill ends the link at once.
func (l *Link) Kill(cause error) {
	l.Abandon()
	l.cancel(cause)
}

// Abandon discards further frames for the device; the connection then ends.
func (l *Link) Abandon() { l.dead = true }

// Useless counts messages in a row that changed nothing; too many end the link. Useful, a message
// that changed something, resets the count.
func (l *Link) Useless() {
	if l.faults++; l.faults > MaxFaults {
		l.Finish(Frame(&wire.Error{Code: wire.CodeProtocol, Text: ErrFaults.Error()}))
	}
}

func (l *Link) Useful() { l.faults = 0 }

// Frame encodes a message of ours; one that cannot be encoded is a bug.
func Frame(m wire.Message) []byte {
	b, err := wire.Append(nil, m)
	if err != nil {
		panic(fmt.Sprintf("coordinator: own message: %v", err))
	}
	return b
}

// Refusal is an error to send to the device.
type Refusal struct{ Msg *wire.Error }

func (r *Refusal) Error() string { return r.Msg.Text }

// Refuse makes one; a device may try again after retry, where that is not zero.
func Refuse(code uint16, retry time.Duration, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	return &Refusal{&wire.Error{Code: code, Text: text[:min(len(text), wire.MaxText)], RetryMillis: uint32(retry.Milliseconds())}}
}
