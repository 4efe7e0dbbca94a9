package link

import (
	"fmt"
	"sync"
	"time"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// outbox is what a link has to write. Most links are idle: they hold no goroutine and no
// queue for it, and a timer alone remembers when to ping.
type outbox struct {
	mu      sync.Mutex
	frames  [][]byte      // guarded by mu: in their order; nil ends the link
	look    bool          // guarded by mu: it is time to see whether the peer lives
	serving bool          // guarded by mu: between begin and end, when frames may leave
	writing bool          // guarded by mu: the writer is at work
	rest    chan struct{} // guarded by mu: closed when it is not any more; nil: nobody asked
	ping    *time.Timer
}

// queue has a frame written; false where too many wait.
func (l *Link) queue(frame []byte) bool {
	o := &l.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.frames) >= queueFrames {
		return false
	}
	o.frames = append(o.frames, frame)
	if o.serving && !o.writing {
		o.writing = true
		go l.write()
	}
	return true
}

// begin lets frames leave.
func (l *Link) begin() {
	o := &l.out
	o.mu.Lock()
	defer o.mu.Unlock()
	o.serving = true
	o.ping = time.AfterFunc(together(time.Now(), PingEvery), l.wake)
	if len(o.frames) > 0 {
		o.writing = true
		go l.write()
	}
}

// wake has the writer see whether the peer lives.
func (l *Link) wake() {
	o := &l.out
	o.mu.Lock()
	o.look = true
	mine := o.serving && !o.writing
	o.writing = o.writing || mine
	o.mu.Unlock()
	if mine {
		l.write()
	}
}

// end waits for the writer, once the link is over.
func (l *Link) end() {
	o := &l.out
	o.mu.Lock()
	o.serving = false
	rest := make(chan struct{})
	if !o.writing {
		close(rest)
	}
	o.rest = rest
	o.mu.Unlock()
	<-rest
	o.ping.Stop()
}

// next is what to write: look first, or a frame. If there is neither, or the link is over,
// the writer's work is.
func (o *outbox) next(over bool) (frame []byte, look, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case over || !o.look && len(o.frames) == 0:
		o.frames, o.writing = nil, false
		if o.rest != nil {
			close(o.rest)
		}
		return nil, false, false
	case o.look:
		o.look = false
		return nil, true, true
	}
	frame = o.frames[0]
	o.frames[0], o.frames = nil, o.frames[1:]
	return frame, false, true
}

// write sends what the engine queued, and looks after the peer when it is time, until there
// is nothing to do.
func (l *Link) write() {
	for {
		b, look, more := l.out.next(l.ctx.Err() != nil)
		switch {
		case !more:
			return
		case look:
			l.lookAfter(time.Now())
		case b == nil:
			// Close waits for the peer's answer, reading it in the reader.
			l.conn.Close(false)
			l.cancel(ErrClosing)
		default:
			if err := l.conn.Write(b); err != nil {
				l.cancel(fmt.Errorf("write: %w", err))
				continue
			}
			if !l.terms.Counted {
				l.terms.Meter.Down(len(b))
			}
			l.terms.Meter.For(partOf(wire.Kind(b[0])), 0, int64(len(b)))
		}
	}
}

// lookAfter pings who has not been heard for PingEvery: a peer that is gone without a word,
// or sends slowly, is found within that and PingTimeout. Who sends is not asked whether it lives:
// its answer would have to pass its own frames.
// All connections look at the same moments: ten thousand that each had their own would
// wake an idle process, and send it to sleep again, for each ping and for each answer.
func (l *Link) lookAfter(now time.Time) {
	lived := time.Unix(0, l.heard.Load())
	if at := l.conn.Answered(); at.After(lived) {
		lived = at
	}
	wait := PingEvery
	switch {
	case now.Sub(lived) < PingEvery:
		wait -= now.Sub(lived)
	case !lived.Before(l.asked): // it has answered what it was asked
		if err := l.conn.Ping(); err != nil {
			l.cancel(fmt.Errorf("ping: %w", err))
			return
		}
		l.asked = now
	case now.Sub(l.asked) < PingTimeout:
		wait = PingTimeout - now.Sub(l.asked)
	default:
		l.cancel(ErrMute)
		return
	}
	l.out.ping.Reset(together(now, wait))
}

// together is wait, and as much longer as ends it at a multiple of PingsTogether.
func together(now time.Time, wait time.Duration) time.Duration {
	if over := time.Duration(now.Add(wait).UnixNano()) % PingsTogether; over > 0 {
		return wait + PingsTogether - over
	}
	return wait
}
