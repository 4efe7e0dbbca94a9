package link

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

var errText = errors.New("text")

// line is a connection whose peer is the test: frames to read come from in, those that are
// written go to out; a write waits until the test takes it.
type line struct {
	in, out chan []byte
	closed  chan struct{}
	fault   error // of Read, once in is closed
	pings   int
	refused bool
}

func newLine() *line {
	return &line{in: make(chan []byte, 16), out: make(chan []byte), closed: make(chan struct{}), fault: io.EOF}
}

func (c *line) Read() ([]byte, error) {
	select {
	case b, ok := <-c.in:
		if !ok {
			return nil, c.fault
		}
		return b, nil
	case <-c.closed:
		return nil, io.ErrClosedPipe
	}
}

func (c *line) Write(b []byte) error {
	select {
	case c.out <- b:
		return nil
	case <-c.closed:
		return io.ErrClosedPipe
	}
}

func (c *line) Ping() error         { c.pings++; return nil }
func (c *line) Answered() time.Time { return time.Time{} }
func (c *line) Close(refused bool)  { c.refused = refused }
func (c *line) CloseNow()           { close(c.closed) }

func terms() Terms {
	return Terms{Meter: new(monitor.Meter), Offences: []error{errText}, Check: func(wire.Message) error { return nil }}
}

// served has a link served in a bubble of its own time, and returns why it ended and what
// its messages and offences were.
func served(t *testing.T, c *line, terms Terms, peer func(l *Link)) (took []wire.Kind, told []string, cause error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c.closed = make(chan struct{})
		c.in, c.out = make(chan []byte, 16), make(chan []byte)
		l, end := New(context.Background(), c, terms)
		done := make(chan struct{})
		go func() {
			defer close(done)
			cause = l.Serve(func(_ context.Context, m wire.Message) bool {
				took = append(took, m.Kind())
				return true
			}, func(_ context.Context, e *wire.Error) {
				told = append(told, e.Text)
				l.Finish(Frame(e))
			})
		}()
		peer(l)
		<-done
		end()
	})
	return took, told, cause
}

// TestServe: messages come decoded, what is sent arrives, and the peer's end is the link's.
func TestServe(t *testing.T) {
	c, m := newLine(), terms()
	took, told, cause := served(t, c, m, func(l *Link) {
		c.in <- Frame(&wire.Ready{})
		l.Send([]byte("to the device"))
		if got := string(<-c.out); got != "to the device" {
			t.Errorf("it reads %q", got)
		}
		synctest.Wait()
		close(c.in)
	})
	if !errors.Is(cause, io.EOF) || !slices.Equal(took, []wire.Kind{wire.KindReady}) || told != nil {
		t.Errorf("%v, took %v, told %v", cause, took, told)
	}
}

// TestOffences: what no device sends ends the link with a word about it.
func TestOffences(t *testing.T) {
	long := errors.New("too long for this job")
	for name, test := range map[string]struct {
		send func(c *line)
		want string
	}{
		"bytes":  {func(c *line) { c.in <- []byte{255, 1, 2} }, ""},
		"hello":  {func(c *line) { c.in <- Frame(&wire.Hello{MinVersion: 1, MaxVersion: 1}) }, "hello after enrolment"},
		"text":   {func(c *line) { c.fault = errText; close(c.in) }, "text"},
		"length": {func(c *line) { c.in <- Frame(&wire.Ready{}) }, "too long for this job"},
	} {
		t.Run(name, func(t *testing.T) {
			c, m := newLine(), terms()
			if name == "length" {
				m.Check = func(wire.Message) error { return Refuse(wire.CodeProtocol, 0, "%v", long) }
			}
			took, told, cause := served(t, c, m, func(l *Link) {
				test.send(c)
				e, err := wire.Decode(<-c.out, wire.FromCoordinator)
				if err != nil || e.Kind() != wire.KindError {
					t.Errorf("the peer is told %v, %v", e, err)
				}
			})
			if !errors.Is(cause, ErrClosing) || took != nil || len(told) != 1 || test.want != "" && told[0] != test.want {
				t.Errorf("%v, took %v, told %q", cause, took, told)
			}
		})
	}
}

// TestSlow: a peer that takes nothing is cut off when its queue is full, and nobody waited.
func TestSlow(t *testing.T) {
	c := newLine()
	_, _, cause := served(t, c, terms(), func(l *Link) {
		for range queueFrames + 2 {
			l.Send([]byte("frame"))
		}
		if !l.Dead() {
			t.Error("its queue has no end")
		}
	})
	if !errors.Is(cause, ErrSlow) {
		t.Error(cause)
	}
}

// TestMute: a peer that answers no ping is gone; one whose messages changed nothing is cut
// off when there were too many in a row.
func TestMute(t *testing.T) {
	c := newLine()
	_, _, cause := served(t, c, terms(), func(*Link) {})
	if !errors.Is(cause, ErrMute) || c.pings != 1 {
		t.Errorf("%v after %d pings", cause, c.pings)
	}
	c = newLine()
	_, _, cause = served(t, c, terms(), func(l *Link) {
		for range MaxFaults {
			l.Useless()
		}
		l.Useful()
		for range MaxFaults {
			l.Useless()
		}
		if l.Dead() {
			t.Error("what changed something did not count")
		}
		l.Useless()
		if !l.Dead() {
			t.Error("it may go on without end")
		}
		<-c.out
	})
	if !errors.Is(cause, ErrClosing) {
		t.Error(cause)
	}
}

// TestWithin: a conversation that takes too long ends with its connection, and a refusal is
// told.
func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newLine()
		l, end := New(t.Context(), c, terms())
		defer end()
		if err := l.Within(time.Second, func(context.Context) error { _, err := l.Next(); return err }); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
	c := newLine()
	c.out = make(chan []byte, 1)
	l, end := New(t.Context(), c, terms())
	defer end()
	l.Tell(errors.Join(errors.New("for the log"), Refuse(wire.CodeBusy, time.Second, "full")))
	m, err := wire.Decode(<-c.out, wire.FromCoordinator)
	if e, ok := m.(*wire.Error); err != nil || !ok || e.Text != "full" || e.RetryMillis != 1000 || !c.refused {
		t.Errorf("told %+v, %v", m, err)
	}
}
