package relay

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// Bounds of a stream, in bytes: what one end holds of it that is not read. Each end grants the
// other one room again as it is.
const (
	upWindow   = 64 << 10  // of what a device sent
	downWindow = 128 << 10 // of what it is sent
	// mostOut is what is written and not sent yet.
	mostOut = 64 << 10
	// leastTurn is room in a message for whatever a stream has beside data, and some of it.
	leastTurn = 5*frameHead + mostAddress + creditBytes + 1<<10
)

// stream is a device's connection in a link: at its owner a net.Conn, at its gateway what comes
// is fed on (see feed).
type stream struct {
	l    *link
	id   uint32
	from netip.AddrPort

	mu                 sync.Mutex
	readable, writable sync.Cond // of mu

	in      queue // guarded by mu: came and was not read
	room    int   // guarded by mu: what may still come
	owed    int   // guarded by mu: was read, and is not granted again
	inEnded bool  // guarded by mu: nothing more comes
	out     queue // guarded by mu: was written and not sent
	credit  int   // guarded by mu: what may still be sent
	most    int   // its bound
	err     error // guarded by mu: why it is over
	closed  bool  // guarded by mu: here; who is closed hears nothing more
	deaf    bool  // guarded by mu: the other end hears nothing more

	opening, ending, resetting bool      // guarded by mu: frames that are to be sent
	ended                      bool      // guarded by mu: its end was asked for
	ringed                     bool      // guarded by l.mu: it has a turn to come
	counted                    int       // guarded by l.mu: bytes of data that l.waiting has of it then
	after                      *stream   // guarded by l.mu: whose turn is next
	readBy, writeBy            time.Time // guarded by mu
	feeding                    bool      // guarded by mu: wake was called, and take did not say that there is nothing
	wake                       func()    // guarded by mu: see feed
}

// newStream holds at most room bytes that came, and sends at most credit bytes that are not read.
func newStream(l *link, id uint32, from netip.AddrPort, room, credit int) *stream {
	s := &stream{l: l, id: id, from: from, room: room, credit: credit, most: credit}
	s.readable.L, s.writable.L = &s.mu, &s.mu
	return s
}

// hear takes a frame.
func (s *stream) hear(f frame) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch f.kind {
	case frameData:
		if s.inEnded {
			return errWrong
		}
		if s.room -= len(f.payload); s.room < 0 {
			return errFull
		}
		if !s.closed && s.err == nil {
			s.in.add(f.payload)
		}
	case frameCredit:
		n := int64(binary.BigEndian.Uint32(f.payload))
		if int64(s.credit)+n > int64(s.most) {
			return errFull
		}
		s.credit += int(n)
		if s.out.len() > 0 {
			s.say()
		}
		s.writable.Broadcast()
		return nil
	case frameEnd:
		s.inEnded = true
	case frameReset:
		s.failed(errEnded)
		s.l.forget(s)
		return nil
	default:
		return errWrong
	}
	s.arrived()
	return nil
}

// arrived tells who reads; under mu.
func (s *stream) arrived() {
	s.readable.Broadcast()
	if s.wake != nil && !s.feeding {
		s.feeding = true
		go s.wake()
	}
}

// fail ends the stream for whoever uses it.
func (s *stream) fail(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed(why)
}

func (s *stream) failed(why error) {
	if s.err == nil {
		s.err = why
		s.in.drop()
		s.out.drop()
		s.writable.Broadcast()
		s.arrived()
	}
}

// say has the link send what there is, under mu.
func (s *stream) say() {
	data := min(s.out.len(), s.credit)
	// Who sends so much that either end waits for the other's credit has none wait for others.
	if s.owed >= s.least() && s.room < s.least()/4 || s.out.len() > s.credit {
		data += flushBytes
	}
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	switch {
	case s.l.err != nil:
	case s.ringed:
		s.l.more(data - s.counted)
		s.counted = data
	default:
		s.l.push(s, data)
	}
}

// speak adds what there is to a message of at most so many bytes.
func (s *stream) speak(m []byte, most int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opening {
		s.opening = false
		at := s.from.String()
		m = append(appendHead(m, frameOpen, s.id, len(at)), at...)
	}
	if s.resetting {
		s.resetting = false
		s.l.forget(s)
		return appendHead(m, frameReset, s.id, 0)
	}
	if s.err != nil {
		return m
	}
	if s.owed >= s.least() && !s.closed && !s.inEnded {
		m = binary.BigEndian.AppendUint32(appendHead(m, frameCredit, s.id, creditBytes), uint32(s.owed))
		s.room += s.owed
		s.owed = 0
	}
	if n := min(s.out.len(), s.credit, turn, most-len(m)-2*frameHead); n > 0 {
		m = append(appendHead(m, frameData, s.id, n), s.out.next(n)...)
		s.out.tidy()
		s.credit -= n
		s.writable.Broadcast()
	}
	switch {
	case s.out.len() > 0 && s.credit > 0:
		s.say()
	case s.out.len() == 0 && s.ending:
		s.ending = false
		m = appendHead(m, frameEnd, s.id, 0)
		if s.closed {
			s.err = net.ErrClosed
			s.l.forget(s)
		}
	}
	return m
}

// least is what is worth granting by itself.
func (s *stream) least() int {
	if s.l.accept != nil {
		return upWindow / 2
	}
	return downWindow / 2
}

// grant notes that so much was read; under mu.
func (s *stream) grant(n int) {
	if s.owed += n; s.owed >= s.least() {
		s.say()
	}
}

// Read reads bytes that the device sent.
func (s *stream) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.closed:
			return 0, net.ErrClosed
		case s.err != nil:
			return 0, s.err
		case expired(s.readBy):
			return 0, os.ErrDeadlineExceeded
		case s.in.len() > 0:
			n := copy(b, s.in.next(min(len(b), s.in.len())))
			s.in.tidy()
			s.grant(n)
			return n, nil
		case s.inEnded:
			return 0, io.EOF
		case len(b) == 0:
			return 0, nil
		}
		s.wait(&s.readable, s.readBy)
	}
}

// Write returns when there is room for what is left of b. What the other end hears no more is
// written nowhere.
func (s *stream) Write(b []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.deaf:
			return n + len(b), nil
		case s.closed, s.ended:
			return n, net.ErrClosed
		case s.err != nil:
			return n, s.err
		case expired(s.writeBy):
			return n, os.ErrDeadlineExceeded
		}
		if some := min(len(b), mostOut-s.out.len()); some > 0 {
			s.out.add(b[:some])
			b = b[some:]
			n += some
			if s.credit > 0 {
				s.say()
			}
		}
		if len(b) == 0 {
			return n, nil
		}
		s.wait(&s.writable, s.writeBy)
	}
}

// sent returns when nothing of what was written is left to be sent, or the stream is over. An owner
// who reads no more ends it: it asks devices for signs of life, which do not come through.
func (s *stream) sent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.out.len() > 0 && s.err == nil && !s.deaf {
		s.writable.Wait()
	}
}

func expired(by time.Time) bool { return !by.IsZero() && !time.Now().Before(by) }

// wait waits for a change, or a deadline; under mu.
func (s *stream) wait(change *sync.Cond, by time.Time) {
	if !by.IsZero() {
		defer time.AfterFunc(time.Until(by), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			change.Broadcast()
		}).Stop()
	}
	change.Wait()
}

// CloseWrite ends the writing half; what was written before still arrives.
func (s *stream) CloseWrite() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended && s.err == nil {
		s.ended, s.ending = true, true
		s.say()
	}
	return nil
}

// Close ends reads, and the stream once what was written has arrived, or cannot in time.
func (s *stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.in.drop()
	s.readable.Broadcast()
	s.writable.Broadcast()
	if s.err != nil {
		return nil
	}
	if s.out.len() > 0 {
		time.AfterFunc(opening, s.Reset)
	}
	s.ended, s.ending = true, true
	s.say()
	return nil
}

// Reset ends both halves and discards unsent bytes.
func (s *stream) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.resetting = true
		s.say()
		s.failed(net.ErrClosed)
	}
}

func (s *stream) LocalAddr() net.Addr  { return address(s.l.to) }
func (s *stream) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(s.from) }

func (s *stream) SetDeadline(t time.Time) error {
	_ = s.SetReadDeadline(t) // never fails
	return s.SetWriteDeadline(t)
}

func (s *stream) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readBy = t
	s.readable.Broadcast()
	return nil
}

func (s *stream) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeBy = t
	s.writable.Broadcast()
	return nil
}

// feed has wake called, in a goroutine of its own, when there is something to take and nobody
// takes.
func (s *stream) feed(wake func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake = wake
	if s.in.len() > 0 || s.inEnded || s.err != nil {
		s.arrived()
	}
}

// take is what came, to be given back by took; io.EOF at the end, or why the stream is over, and
// nothing any more after that. Nothing: wake is called when there is something.
func (s *stream) take() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return nil, s.err
	case s.in.len() > 0:
		b := s.in.b[s.in.at:]
		s.in = queue{}
		return b, nil
	case s.inEnded: // who sent it hears nothing more
		s.deaf = true
		s.out.drop()
		s.err = io.EOF
		s.writable.Broadcast()
		s.l.forget(s)
		return nil, io.EOF
	}
	s.feeding = false
	return nil, nil
}

// took gives back what take gave, which has been passed on.
func (s *stream) took(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.grant(len(b))
	}
	release(b)
}
