package coordinator

import (
	"errors"
	"runtime/debug"
	"time"
)

// Conn carries a device's frames over any transport: package server's are WebSockets. One goroutine
// reads while another writes and pings; CloseNow may be called from any, and ends both.
type Conn interface {
	// Read returns the next frame, of at most MaxFrame(first byte) bytes. A longer one is
	// ErrTooLong, one that is not binary ErrNotBinary; after either nothing can be read any more.
	// The frame's bytes are valid until the next Read.
	Read() ([]byte, error)
	// Write returns when the frame is on its way, or with an error about half a minute after the
	// peer stopped reading.
	Write(frame []byte) error
	// Ping asks whether the peer is alive. The answer is read by anyone who calls Read.
	Ping() error
	// Answered is the time of the last answer to a Ping; long ago if there was none.
	Answered() time.Time
	// Close ends the connection with a closing handshake; refused says whether the device was
	// turned away. CloseNow just closes it.
	Close(refused bool)
	CloseNow()
	// Peer describes the other end. It does not change.
	Peer() Peer
}

// Peer is what is known about the other end of a connection before it sends anything.
type Peer struct {
	Address string // "host:port": of one host so many may enrol in an hour
	// Export derives keying material from the connection's TLS (RFC 5705, RFC 8446
	// section 7.5), to which a device's signature is bound; nil if there is no TLS,
	// or a proxy ends it.
	Export func(label string, context []byte, length int) ([]byte, error)
	// Counted says that the bytes of the connection are counted in Traffic as they
	// cross its socket; else its frames are.
	Counted bool
	// Request numbers what began the connection, for the log; may be empty.
	Request string
}

// Errors of connections.
var (
	// ErrNotBinary: Conn.Read got a frame of text.
	ErrNotBinary = errors.New("text frames are not understood")
	// ErrTooLong: Conn.Read got a frame beyond MaxFrame.
	ErrTooLong = errors.New("the frame is longer than any of its kind in this job")
	// ErrFull: Attend takes no more connections.
	ErrFull = errors.New("the coordinator is closing or has too many connections")
)

// Attend starts one device's session on the connection that open makes, and does not wait for its
// end. It returns ErrFull without calling open if there is no room, and otherwise open's error.
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
	defer c.recoverSession(conn)
	if s, end := c.begin(conn); s != nil {
		defer end()
		c.over(s, s.Serve(s.onMessage, s.onProtocolError))
	}
}

// recoverSession logs a panic of one session, so that it ends no other.
func (c *Coordinator) recoverSession(conn Conn) {
	if p := recover(); p != nil {
		c.log.Error("a session broke", "remote", conn.Peer().Address, "panic", p, "stack", string(debug.Stack()))
	}
}

// LimitSessions bounds the number of concurrent sessions, for a process that can hold fewer than
// the job allows. Call it before the first session.
func (c *Coordinator) LimitSessions(most int) { c.slots.Limit = min(c.slots.Limit, most) }
