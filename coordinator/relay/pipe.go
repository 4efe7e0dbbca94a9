package relay

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Bounds of a link, in bytes.
const (
	window    = 4 << 20  // sent and not read at the other end
	chunk     = 64 << 10 // in a message, at most
	unsent    = 256 << 10
	headBytes = 9

	// MostMessage is the longest message of a link.
	MostMessage = headBytes + chunk
)

// gather is how long little that is to be sent waits for more. A message costs both ends and
// the server between much the same, whatever it holds, and no device's turn is that short.
const gather = 5 * time.Millisecond

// Kinds of messages.
const (
	kindData byte = 1 + iota // number: where in the link's bytes it stands
	kindRead                 // number: so many bytes were read
	kindEnd
)

// Why a link ends.
var (
	errLost  = errors.New("relay: a message of the link was lost")
	errFull  = errors.New("relay: more was sent than the window holds")
	errWrong = errors.New("relay: a message that no link has")
	errEnded = errors.New("relay: the other end is gone")
	errShut  = errors.New("relay: the link is closed")
)

// pipe is a link's bytes in order, both ways, over two subjects. What is written is gathered:
// thousands of devices' small frames are few messages.
type pipe struct {
	nc   *nats.Conn
	to   string // subject
	sub  *nats.Subscription
	open chan struct{} // closed by the first message

	mu          sync.Mutex
	change      *sync.Cond
	in          bytes.Buffer // guarded by mu: came and was not read
	came        uint64       // guarded by mu: bytes
	read, told  uint64       // guarded by mu: bytes that were read, and what the other end knows of that
	out         bytes.Buffer // guarded by mu: to be sent
	sent, taken uint64       // guarded by mu: bytes sent, and read at the other end
	opened      bool         // guarded by mu
	err         error        // guarded by mu: why it is over
}

// newPipe reads from one subject and writes to the other.
func newPipe(nc *nats.Conn, from, to string) (*pipe, error) {
	p := &pipe{nc: nc, to: to, open: make(chan struct{})}
	p.change = sync.NewCond(&p.mu)
	p.mu.Lock() // messages wait until sub is set
	defer p.mu.Unlock()
	var err error
	if p.sub, err = nc.Subscribe(from, func(m *nats.Msg) { p.take(m.Data) }); err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	// Beyond the window and what acknowledges as much, its sender lies.
	if err := p.sub.SetPendingLimits(-1, 2*window); err != nil {
		return nil, errors.Join(fmt.Errorf("relay: %w", err), p.sub.Unsubscribe())
	}
	go p.send()
	return p, nil
}

// take takes a message.
func (p *pipe) take(m []byte) {
	err := p.heard(m)
	if err != nil {
		p.end(err)
	}
}

func (p *pipe) heard(m []byte) error {
	if len(m) < headBytes {
		return errWrong
	}
	kind, number, payload := m[0], binary.BigEndian.Uint64(m[1:]), m[headBytes:]
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.opened {
		p.opened = true
		close(p.open)
	}
	switch {
	case kind == kindEnd:
		return errEnded
	case kind == kindRead && len(payload) == 0:
		if number < p.taken || number > p.sent {
			return errWrong
		}
		p.taken = number
	case kind == kindData && number != p.came:
		return errLost
	case kind == kindData && p.in.Len()+len(payload) > window:
		return errFull
	case kind == kindData:
		p.in.Write(payload)
		p.came += uint64(len(payload))
	default:
		return errWrong
	}
	p.change.Broadcast()
	return nil
}

// tell sends a message without a payload.
func (p *pipe) tell(kind byte, number uint64) error {
	if err := p.nc.Publish(p.to, binary.BigEndian.AppendUint64([]byte{kind}, number)); err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	return nil
}

func (p *pipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	for p.in.Len() == 0 && p.err == nil {
		p.change.Wait()
	}
	if p.err != nil {
		defer p.mu.Unlock()
		return 0, p.err
	}
	n := copy(b, p.in.Next(len(b)))
	if p.in.Len() == 0 && p.in.Cap() > unsent {
		p.in = bytes.Buffer{} // who is idle holds little memory
	}
	p.read += uint64(n)
	read, due := p.read, p.read-p.told >= window/4
	if due {
		p.told = read
	}
	p.mu.Unlock()
	if due {
		if err := p.tell(kindRead, read); err != nil {
			p.end(err)
		}
	}
	return n, nil
}

// Write returns when there is room for more.
func (p *pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.out.Len() >= unsent && p.err == nil {
		p.change.Wait()
	}
	if p.err != nil {
		return 0, p.err
	}
	p.out.Write(b)
	p.change.Broadcast()
	return len(b), nil
}

// send sends what is written until the link is over.
func (p *pipe) send() {
	most := min(chunk, int(p.nc.MaxPayload())-headBytes)
	gathered := false
	m := make([]byte, headBytes, headBytes+most)
	m[0] = kindData
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for (p.out.Len() == 0 || p.sent-p.taken >= window) && p.err == nil {
			p.change.Wait()
		}
		if p.err != nil {
			return
		}
		if p.out.Len() < most && !gathered {
			gathered = true
			p.mu.Unlock()
			time.Sleep(gather)
			p.mu.Lock()
			continue
		}
		gathered = false
		n := min(p.out.Len(), most, int(window-(p.sent-p.taken)))
		binary.BigEndian.PutUint64(m[1:], p.sent)
		m = append(m[:headBytes], p.out.Next(n)...)
		p.sent += uint64(n)
		p.change.Broadcast()
		p.mu.Unlock()
		err := p.nc.Publish(p.to, m)
		if err != nil {
			p.end(err)
		}
		p.mu.Lock()
	}
}

// Close ends the link.
func (p *pipe) Close() error {
	p.end(errShut)
	return nil
}

// end ends it, once, and says so to the other end.
func (p *pipe) end(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return
	}
	p.err, p.in, p.out = why, bytes.Buffer{}, bytes.Buffer{}
	_ = p.sub.Unsubscribe() // where there is no connection there is no subscription
	if !errors.Is(why, errEnded) {
		_ = p.tell(kindEnd, 0) // else the other end finds it silent
	}
	p.change.Broadcast()
}

// shut closes what is over: nothing of it is left to be lost.
func shut(c io.Closer) { _ = c.Close() }
