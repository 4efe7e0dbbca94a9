package socket

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// How long a peer may take a frame: LeastWrite at least, MostWrite at most. The
// deadline is moved only when less than LeastWrite is left of it: moving it costs
// as much as a small write.
const (
	LeastWrite = 30 * time.Second
	MostWrite  = 40 * time.Second
)

// outbox is what leaves by a connection: frames, none in another's midst.
type outbox struct {
	conn    net.Conn
	leaving atomic.Bool // the deadline is the last

	mu    sync.Mutex
	until time.Time // guarded by mu: the connection's deadline
}

// farewell ends all that is read and written at a time.
func (o *outbox) farewell(at time.Time) error {
	o.leaving.Store(true)
	if err := o.conn.SetDeadline(at); err != nil {
		return fmt.Errorf("deadline: %w", err)
	}
	return nil
}

// The opcodes of frames of ours (RFC 6455 section 5.2).
const (
	opBinary = 0x2
	opPing   = 0x9
)

// frame sends a whole message or a control frame.
func (o *outbox) frame(opcode byte, payload []byte) error {
	b := buffer(1 << 14)
	defer release(b)
	*b = appendHead(*b, opcode, len(payload))
	n := min(len(payload), cap(*b)-len(*b)) // what comes behind it is not copied
	*b = append(*b, payload[:n]...)
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := o.send(*b); err != nil {
		return err
	}
	_, err := o.send(payload[n:])
	return err
}

// appendHead appends the head of a frame that is the last of its message and, as all
// of a server's, not masked.
func appendHead(b []byte, opcode byte, n int) []byte {
	b = append(b, 1<<7|opcode)
	switch {
	case n < 126:
		return append(b, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
}

func (o *outbox) send(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if now := time.Now(); o.until.Sub(now) < LeastWrite && !o.leaving.Load() {
		o.until = now.Add(MostWrite)
		if err := o.conn.SetWriteDeadline(o.until); err != nil {
			return 0, fmt.Errorf("deadline: %w", err)
		}
	}
	return o.conn.Write(p)
}

// upgrade lets the library check and answer a request, and takes the connection over.
type upgrade struct {
	http.ResponseWriter
	s      *Socket
	prompt bool // nothing came before the answer
}

func (u *upgrade) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(u.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("taking the connection over: %w", err)
	}
	if err := rw.Writer.Flush(); err != nil { // the answer to the request
		conn.Close()
		return nil, nil, fmt.Errorf("answering the request: %w", err)
	}
	u.s.out, u.prompt = &outbox{conn: conn}, rw.Reader.Buffered() == 0
	u.s.in.r = rw.Reader // the library has it read what has come already, and then the connection
	// It writes nothing more: a buffer for that would be a tenth of a connection's memory.
	return conn, bufio.NewReadWriter(rw.Reader, bufio.NewWriterSize(conn, 1)), nil
}
