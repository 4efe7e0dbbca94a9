package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// passage is a device's connection on its way through a gateway. One goroutine waits for what
// the device sends; for what it is sent there is one only while there is something.
type passage struct {
	device net.Conn
	owner  *stream
	over   chan struct{} // closed when nothing more comes for the device
	late   *time.Timer   // set before over is closed: the device is to hang up; nil: it need not
}

// pass carries one device's bytes both ways.
func (g *Gateway) pass(ctx context.Context, device net.Conn) {
	defer shut(device)
	s, err := g.stream(ctx, device.RemoteAddr())
	if err != nil {
		g.log.Debug("a connection is not passed on", "remote", device.RemoteAddr(), "error", err)
		return
	}
	g.passed.Add(1)
	defer g.passed.Add(-1)
	p := &passage{device: device, owner: s, over: make(chan struct{})}
	s.feed(p.down)
	if p.up() == nil {
		_ = s.CloseWrite() // what was sent arrives
	} else {
		s.Reset()
	}
	<-p.over
	if p.late != nil {
		p.late.Stop()
	}
}

const (
	// farewell bounds what a device takes to hang up.
	farewell = 5 * time.Second
	// stalled is how long a peer may take nothing of what it is sent.
	stalled = 40 * time.Second
)

// Buffers: a small one of its own for each idle device, a large one for as long as much comes.
const (
	idleBuffer = 512
	busyBuffer = 32 << 10
)

var busy = sync.Pool{New: func() any { b := make([]byte, busyBuffer); return &b }}

// up passes on what the device sends, until it hangs up or the owner takes nothing.
func (p *passage) up() error {
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
		got, err := p.device.Read(b)
		if got > 0 {
			_ = p.owner.SetWriteDeadline(time.Now().Add(stalled)) // never fails
			if _, err := p.owner.Write(b[:got]); err != nil {
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
		case got < len(b): // more may be long in coming
			if large != nil {
				busy.Put(large)
				large = nil
			}
			p.owner.sent()
		}
	}
}

// down passes on what has come for the device.
func (p *passage) down() {
	for {
		b, err := p.owner.take()
		switch {
		case errors.Is(err, io.EOF):
			// What it was told last would be lost where it still sends, and is not heard out.
			half, ok := p.device.(interface{ CloseWrite() error })
			if ok && half.CloseWrite() == nil {
				p.late = time.AfterFunc(farewell, func() { shut(p.device) })
			} else {
				shut(p.device)
			}
			close(p.over)
			return
		case err != nil:
			shut(p.device)
			close(p.over)
			return
		case b == nil:
			return
		}
		err = p.device.SetWriteDeadline(time.Now().Add(stalled))
		if err == nil {
			_, err = p.device.Write(b)
		}
		p.owner.took(b)
		if err != nil {
			p.owner.Reset()
		}
	}
}
