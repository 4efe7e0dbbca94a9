package coordinator

import (
	"errors"
	"runtime/debug"
	"time"
)

// Conn carries a device's frames, over whatever they travel: package server's are
// WebSockets. One goroutine reads while another writes and pings; CloseNow is
// called from any, and ends what waits.
type Conn interface {
	// Read returns the next frame, of at most MostBytes of its first byte: one that is
	// longer is ErrTooLong, one that is not binary ErrNotBinary, and nothing can be read
	// after them. The frame's bytes hold until the next Read.
	Read() ([]byte, error)
	// Write returns when the frame is on its way, or, about half a minute after the
	// peer took nothing more, with an error.
	Write(frame []byte) error
	// Ping asks whether the peer lives. Its answer is read by who calls Read.
	Ping() error
	// Answered is when the last answer came; long ago where none has.
	Answered() time.Time
	// Close says goodbye, as to someone who was refused or not; CloseNow does not.
	Close(refused bool)
	CloseNow()
	// Peer is who is at the other end. It does not change.
	Peer() Peer
}

// Peer is what is known of the other end of a connection before it says anything.
type Peer struct {
	Address string // "host:port": of one host so many may enrol in an hour
	// Export derives keying material from the connection's TLS (RFC 5705, RFC 8446
	// section 7.5), to which a device's signature is bound; nil where there is no TLS,
	// or a proxy ends it.
	Export func(label string, context []byte, length int) ([]byte, error)
	// Counted says that the bytes of the connection are counted in Traffic as they
	// cross its socket; else its frames are.
	Counted bool
	// Request numbers what began the connection, for the log; may be empty.
	Request string
}

// Of connections.
var (
	// ErrNotBinary is what Conn.Read returns for a frame of text.
	ErrNotBinary = errors.New("text frames are not understood")
	// ErrTooLong is what it returns for a frame beyond MostBytes.
	ErrTooLong = errors.New("the frame is longer than any of its kind in this job")
	// ErrFull is what Attend returns without having made a connection.
	ErrFull = errors.New("the coordinator is closing or has too many connections")
)

// Attend begins one device's session on the connection that open makes, and does not wait
// for its end; where there is no room open is not called. What it returns besides ErrFull is
// open's error.
func (c *Coordinator) Attend(open func() (Conn, error)) error {
	if !c.slots.Enter() {
		return ErrFull
	}
	begun := false
	defer func() {
		if !begun {
			c.slots.Leave()
		}
	}()
	conn, err := open()
	if err != nil {
		c.traffic.Refuse()
		return err
	}
	begun = true
	// A session waits most of its life. Were it to wait in the goroutine that was asked for
	// it, that one's stack, which TLS and HTTP have grown, and the request would wait with it.
	go c.attend(conn)
	return nil
}

func (c *Coordinator) attend(conn Conn) {
	defer c.slots.Leave()
	defer conn.CloseNow()
	defer c.unbroken(conn)
	if s, end := c.begin(conn); s != nil {
		defer end()
		c.over(s, s.Serve(s.took, s.broke))
	}
}

// unbroken has what one device brings about end no other's session.
func (c *Coordinator) unbroken(conn Conn) {
	if p := recover(); p != nil {
		c.log.Error("a session broke", "remote", conn.Peer().Address, "panic", p, "stack", string(debug.Stack()))
	}
}

// LimitSessions sets how many sessions there may be at once, where a process can
// hold fewer than the job allows. Call it before the first.
func (c *Coordinator) LimitSessions(most int) { c.slots.Limit = min(c.slots.Limit, most) }
