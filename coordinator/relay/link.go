package relay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// Bounds of a link, in bytes.
const (
	window    = 4 << 20   // of frames, sent and not yet acknowledged
	chunk     = 256 << 10 // a message's longest body
	turn      = 32 << 10  // of one stream's data before the next stream's turn
	headBytes = 9

	// MostMessage is the longest message of a link.
	MostMessage = headBytes + chunk
	// mostStreams bounds those of one link.
	mostStreams = 1 << 17
	// maxPending bounds the messages of a link that wait for its handler.
	maxPending = 1 << 14
)

const (
	// gather is how long fewer than flushBytes wait for more, gatherMany the same on a link with many
	// streams. A message costs both ends and the server about the same at any length, and every
	// device's turn takes longer than this.
	gather     = 10 * time.Millisecond
	gatherMany = 50 * time.Millisecond
	many       = 256
	// flushBytes are sent at once; fewer wait for more.
	flushBytes = 64 << 10
	// A link ends after this long without a message; each end sends one each pulse.
	pulse    = 5 * time.Second
	deadLink = 20 * time.Second
)

// Kinds of messages.
const (
	kindData byte = 4 + iota // frames; number: their offset in the link's bytes
	kindRead                 // number: bytes received
	kindEnd
)

// Why a link ends.
var (
	errLost   = errors.New("relay: a message of the link was lost")
	errFull   = errors.New("relay: more was sent than a window holds")
	errStream = errors.New("relay: a stream that cannot be")
	errEnded  = errors.New("relay: the other end is gone")
	errMute   = errors.New("relay: the other end is silent")
	errShut   = errors.New("relay: the link is closed")
)

// link is what one gateway and the owner say to each other: streams' frames in order, both ways,
// over two subjects. What is sent is gathered: thousands of devices' small frames are few messages.
type link struct {
	nc     *nats.Conn
	to     string // subject
	sub    *nats.Subscription
	accept func(*stream)  // of streams that the other end opens; nil: it opens none
	open   chan struct{}  // closed by the first message
	over   chan struct{}  // closed at the end
	heard  atomic.Int64   // when the last message came, in nanoseconds
	work   sync.WaitGroup // its goroutines

	mu          sync.Mutex
	change      *sync.Cond         // for send
	streams     map[uint32]*stream // guarded by mu
	last        uint32             // guarded by mu: the stream opened last
	first, tail *stream            // guarded by mu: those that have something to send, in turn
	begun       time.Time          // guarded by mu: since when somebody has
	waiting     int                // guarded by mu: bytes of data that they have
	came, told  uint64             // guarded by mu: bytes, and what the other end knows of that
	sent, taken uint64             // guarded by mu: bytes sent, and heard at the other end
	due         bool               // guarded by mu: where it stands is to be said
	opened      bool               // guarded by mu
	err         error              // guarded by mu: why it is over
}

// newLink hears one subject and speaks to the other.
func newLink(nc *nats.Conn, from, to string, accept func(*stream)) (*link, error) {
	l := unlinked(accept)
	l.nc, l.to = nc, to
	l.mu.Lock() // messages wait until sub is set
	defer l.mu.Unlock()
	var err error
	if l.sub, err = nc.Subscribe(from, func(m *nats.Msg) { l.take(m.Data) }); err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	// Beyond the window and what acknowledges as much, its sender lies. An honest one says a
	// hundred messages a second, and full ones.
	if err := l.sub.SetPendingLimits(maxPending, 2*window); err != nil {
		return nil, errors.Join(fmt.Errorf("relay: %w", err), l.sub.Unsubscribe())
	}
	l.work.Go(l.send)
	l.work.Go(l.beat)
	return l, nil
}

// unlinked is a link to nobody.
func unlinked(accept func(*stream)) *link {
	l := &link{accept: accept, open: make(chan struct{}), over: make(chan struct{}), streams: map[uint32]*stream{}}
	l.change = sync.NewCond(&l.mu)
	l.heard.Store(time.Now().UnixNano())
	return l
}

// take takes a message.
func (l *link) take(m []byte) {
	l.heard.Store(time.Now().UnixNano())
	if err := l.hear(m); err != nil {
		l.end(err)
	}
}

func (l *link) hear(m []byte) error {
	if len(m) < headBytes {
		return errWrong
	}
	kind, number, frames := m[0], binary.BigEndian.Uint64(m[1:]), m[headBytes:]
	l.mu.Lock()
	if !l.opened {
		l.opened = true
		close(l.open)
	}
	var err error
	switch {
	case kind == kindEnd:
		err = errEnded
	case kind == kindRead && len(frames) == 0:
		if number > l.sent {
			err = errWrong
		} else if l.taken < number { // a smaller one was overtaken: two of its sender's goroutines say it
			l.taken = number
			l.change.Broadcast()
		}
	case kind == kindData && number == l.came:
		l.came += uint64(len(frames))
	case kind == kindData:
		err = errLost
	default:
		err = errWrong
	}
	due := l.came-l.told >= window/4
	if due {
		l.told = l.came
	}
	came := l.came
	l.mu.Unlock()
	if err != nil || kind != kindData {
		return err
	}
	for len(frames) > 0 {
		var f frame
		if f, frames, err = nextFrame(frames); err != nil {
			return err
		}
		if err := l.frame(f); err != nil {
			return err
		}
	}
	if due {
		return l.tell(kindRead, came)
	}
	return nil
}

// frame passes a frame to its stream. It drops frames of an ended stream: the other end sent them
// before it heard of the end.
func (l *link) frame(f frame) error {
	l.mu.Lock()
	s, last := l.streams[f.stream], l.last
	n := len(l.streams)
	l.mu.Unlock()
	switch {
	case f.kind == frameOpen:
		if l.accept == nil || f.stream <= last || n >= mostStreams {
			return errStream
		}
		from, err := netip.ParseAddrPort(string(f.payload))
		if err != nil {
			return fmt.Errorf("relay: address: %w", err)
		}
		s := newStream(l, f.stream, from, upWindow, downWindow)
		l.mu.Lock()
		l.last = f.stream
		l.streams[f.stream] = s
		err = l.err
		l.mu.Unlock()
		if err == nil {
			l.accept(s)
		}
		return err
	case s == nil && f.stream > last:
		return errStream
	case s == nil:
		return nil
	}
	return s.hear(f)
}

// dial opens a stream for a device that has connected.
func (l *link) dial(from netip.AddrPort) (*stream, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return nil, l.err
	}
	if l.last == 1<<32-1 || len(l.streams) >= mostStreams {
		return nil, errStream
	}
	l.last++
	s := newStream(l, l.last, from, downWindow, upWindow)
	s.opening = true
	l.streams[s.id] = s
	l.push(s, 0)
	return s, nil
}

// push queues a stream that may send data bytes now. The caller holds mu.
func (l *link) push(s *stream, data int) {
	begins := l.first == nil
	if begins {
		l.first, l.begun = s, time.Now()
	} else {
		l.tail.after = s
	}
	l.tail, s.after, s.ringed, s.counted = s, nil, true, data
	l.more(data)
	if begins {
		l.change.Signal()
	}
}

// more counts data bytes that a queued stream may send in addition. The caller holds mu.
func (l *link) more(data int) {
	if l.waiting += data; l.waiting >= flushBytes && l.waiting-data < flushBytes {
		l.change.Signal()
	}
}

// forget removes an ended stream.
func (l *link) forget(s *stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.streams, s.id)
}

// tell sends a message without frames.
func (l *link) tell(kind byte, number uint64) error {
	if err := l.nc.Publish(l.to, binary.BigEndian.AppendUint64([]byte{kind}, number)); err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	return nil
}

// send sends the streams' frames until the link ends.
func (l *link) send() {
	most := min(chunk, int(l.nc.MaxPayload())-headBytes)
	m := make([]byte, headBytes, headBytes+most)
	m[0] = kindData
	late := time.AfterFunc(time.Hour, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.change.Signal()
	})
	defer late.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.err == nil {
		wait := gather - time.Since(l.begun)
		if len(l.streams) >= many {
			wait += gatherMany - gather
		}
		switch {
		case l.due: // else one that was lost last would not be missed
			l.due = false
		case l.first == nil || l.sent-l.taken > window-leastTurn:
			l.change.Wait()
			continue
		case l.waiting < flushBytes && wait > 0:
			late.Reset(wait)
			l.change.Wait()
			continue
		}
		binary.BigEndian.PutUint64(m[1:], l.sent)
		m = l.fill(m[:headBytes], headBytes+min(most, int(window-(l.sent-l.taken))))
		l.sent += uint64(len(m) - headBytes)
		l.mu.Unlock()
		if err := l.nc.Publish(l.to, m); err != nil {
			l.end(fmt.Errorf("relay: %w", err))
		}
		l.mu.Lock()
	}
}

// fill lets the queued streams append frames to a message of at most most bytes, in turn. The
// caller holds mu, which fill releases while a stream writes.
func (l *link) fill(m []byte, most int) []byte {
	for l.first != nil && most-len(m) >= leastTurn {
		s := l.first
		if l.first = s.after; l.first == nil {
			l.tail = nil
		}
		l.waiting -= s.counted
		s.ringed = false
		l.mu.Unlock()
		m = s.speak(m, most)
		l.mu.Lock()
	}
	return m
}

// beat sends a sign of life each pulse, and ends the link when the other end is silent.
func (l *link) beat() {
	tick := time.NewTicker(pulse)
	defer tick.Stop()
	for {
		select {
		case <-l.over:
			return
		case <-tick.C:
			l.mu.Lock()
			l.told, l.due = l.came, true
			l.change.Signal()
			came := l.came
			l.mu.Unlock()
			if time.Since(time.Unix(0, l.heard.Load())) > deadLink {
				l.end(errMute)
			} else if err := l.tell(kindRead, came); err != nil {
				l.end(err)
			}
		}
	}
}

// ended reports whether the link has ended.
func (l *link) ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err != nil
}

// Close ends the link and waits for its goroutines.
func (l *link) Close() error {
	l.end(errShut)
	l.work.Wait()
	return nil
}

// end ends the link and all its streams, once, and tells the other end.
func (l *link) end(why error) {
	l.mu.Lock()
	if l.err != nil {
		l.mu.Unlock()
		return
	}
	l.err = why
	streams := l.streams
	l.streams, l.first, l.tail = map[uint32]*stream{}, nil, nil
	close(l.over)
	l.change.Broadcast()
	sub := l.sub
	l.mu.Unlock()
	if sub != nil {
		_ = sub.Unsubscribe() // where there is no connection there is no subscription
		if !errors.Is(why, errEnded) {
			_ = l.tell(kindEnd, 0) // else the other end finds it silent
		}
	}
	for _, s := range streams {
		s.fail(why)
	}
}

// shut closes c. Nothing is unwritten then, so its error loses nothing.
func shut(c io.Closer) { _ = c.Close() }
