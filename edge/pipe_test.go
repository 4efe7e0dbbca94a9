package edge

import (
	"bytes"
	"context"
	"io"
	"sync"
)

// pipe is one end of a connection in memory.
type pipe struct {
	in, out chan []byte
	closed  chan struct{} // shared by both ends
	once    *sync.Once
	sent    *[][]byte // what was written at this end, for comparing
	mu      sync.Mutex
}

func newPipe() (device, coordinator *pipe) {
	a, b, closed, once := make(chan []byte, 256), make(chan []byte, 256), make(chan struct{}), new(sync.Once)
	return &pipe{in: a, out: b, closed: closed, once: once, sent: new([][]byte)}, &pipe{in: b, out: a, closed: closed, once: once, sent: new([][]byte)}
}

func (p *pipe) Read(ctx context.Context) ([]byte, error) {
	select {
	case f := <-p.in:
		return f, nil
	case <-p.closed:
		select { // what was sent before the end is still read
		case f := <-p.in:
			return f, nil
		default:
			return nil, io.EOF
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipe) Write(ctx context.Context, frame []byte) error {
	select {
	case <-p.closed:
		return io.ErrClosedPipe
	default:
	}
	p.mu.Lock()
	*p.sent = append(*p.sent, bytes.Clone(frame))
	p.mu.Unlock()
	select {
	case p.out <- bytes.Clone(frame):
		return nil
	case <-p.closed:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *pipe) Close() error { p.once.Do(func() { close(p.closed) }); return nil }
