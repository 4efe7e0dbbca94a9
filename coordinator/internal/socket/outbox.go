package socket

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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

// outbox is the connection below: what leaves by it are frames, none in another's
// midst. Of the library's, which are close frames, each comes in one Write.
type outbox struct {
	net.Conn
	leaving atomic.Bool // the deadline is the last

	turn  chan struct{} // holds one while somebody writes; a channel, so that a bubble's time goes on
	until time.Time     // guarded by turn: the connection's deadline
}

// farewell ends all that is read and written at a time.
func (o *outbox) farewell(at time.Time) error {
	o.leaving.Store(true)
	if err := o.SetDeadline(at); err != nil {
		return fmt.Errorf("deadline: %w", err)
	}
	return nil
}

// Read tells the connection's end from a message's: the library takes io.EOF for either.
func (o *outbox) Read(p []byte) (int, error) {
	n, err := o.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Write is the library's.
func (o *outbox) Write(p []byte) (int, error) {
	o.turn <- struct{}{}
	defer func() { <-o.turn }()
	return o.send(p)
}

// The opcodes of frames of ours (RFC 6455 section 5.2).
const (
	opBinary = 0x2
	opPing   = 0x9
	opPong   = 0xa
)

// frame sends a whole message or a control frame.
func (o *outbox) frame(opcode byte, payload []byte) error {
	b := buffer(1 << 14)
	defer release(b)
	*b = appendHead(*b, opcode, len(payload))
	n := min(len(payload), cap(*b)-len(*b)) // what comes behind it is not copied
	*b = append(*b, payload[:n]...)
	o.turn <- struct{}{}
	defer func() { <-o.turn }()
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
		if err := o.SetWriteDeadline(o.until); err != nil {
			return 0, fmt.Errorf("deadline: %w", err)
		}
	}
	return o.Conn.Write(p)
}

// upgrade gives the library a connection that is the socket's outbox.
type upgrade struct {
	http.ResponseWriter
	s *Socket
}

const (
	// headRoom holds the largest control frame, a head of 2 bytes and 125 more (RFC 6455
	// section 5.5): the library's buffer passes it on whole.
	headRoom = 128
	// readAhead is what each connection holds for what comes, all its life: frames' heads, and
	// small frames. Longer ones are read past it.
	readAhead = 512
)

func (u upgrade) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(u.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("taking the connection over: %w", err)
	}
	if err := rw.Writer.Flush(); err != nil { // the answer to the request
		conn.Close()
		return nil, nil, fmt.Errorf("answering the request: %w", err)
	}
	early, _ := rw.Reader.Peek(rw.Reader.Buffered()) // it is there
	u.s.out = &outbox{Conn: conn, turn: make(chan struct{}, 1)}
	reader := bufio.NewReaderSize(bytes.NewReader(early), max(readAhead, len(early)))
	_, _ = reader.Peek(len(early)) // into its buffer, where the library looks for it
	return u.s.out, bufio.NewReadWriter(reader, bufio.NewWriterSize(u.s.out, headRoom)), nil
}
