package socket

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/starling-fl/starling/internal/wire"
)

// Why nothing more comes by an inbox.
var (
	errProtocol = errors.New("the peer broke the WebSocket protocol")
	errTooBig   = errors.New("the message is too large")
	errHungUp   = errors.New("the peer hung up")
)

// inbox is what comes by a connection: a client's messages as RFC 6455 section 5 has
// them, without extensions, and strictly so: whatever else comes is errProtocol, for
// good. Control frames are handed on as they come, between a message's frames, too.
// It holds of a frame no more than its head: begin waits for a message, whose bytes go
// where Read is told. One goroutine uses it.
type inbox struct {
	r       *bufio.Reader
	control func(opcode byte, payload []byte) error // the payload's bytes hold until it returns

	err   error // ended the connection
	final bool  // the present frame is its message's last
	left  uint64
	mask  uint32 // of the next four bytes, the first one's lowest
	total uint64 // bytes of the message in the frames so far, the present one's included
}

// The opcodes of frames that come.
const (
	opContinuation = 0x0
	opClose        = 0x8
	opPong         = 0xa
)

// mostControl is the longest payload of a control frame.
const mostControl = 125

// head is what stands before a frame's payload.
type head struct {
	final  bool
	opcode byte
	length uint64
	mask   uint32
}

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errProtocol, fmt.Sprintf(format, args...))
}

// headLength is how long the head is that begins with these two bytes.
func headLength(b []byte) int {
	switch b[1] & 0x7f {
	case 126:
		return 2 + 2 + 4
	case 127:
		return 2 + 8 + 4
	}
	return 2 + 4
}

// parseHead takes headLength bytes of a client's frame.
func parseHead(b []byte) (head, error) {
	h := head{final: b[0]&0x80 != 0, opcode: b[0] & 0x0f, length: uint64(b[1] & 0x7f)}
	switch {
	case b[0]&0x70 != 0:
		return h, broken("bits are set that no extension was agreed on for")
	case b[1]&0x80 == 0:
		return h, broken("a frame is not masked")
	}
	b = b[2:]
	switch h.length {
	case 126:
		if h.length, b = uint64(binary.BigEndian.Uint16(b)), b[2:]; h.length < 126 {
			return h, broken("a length is not as short as it can be")
		}
	case 127:
		if h.length, b = binary.BigEndian.Uint64(b), b[8:]; h.length < 1<<16 || h.length >= 1<<63 {
			return h, broken("a length is not as short as it can be, or has its highest bit set")
		}
	}
	h.mask = binary.LittleEndian.Uint32(b)
	switch {
	case h.opcode <= opBinary:
	case h.opcode < opClose || h.opcode > opPong:
		return h, broken("opcode %d is unknown", h.opcode)
	case !h.final || h.length > mostControl:
		return h, broken("a control frame is in parts, or longer than %d bytes", mostControl)
	}
	return h, nil
}

// head waits for the next frame.
func (i *inbox) head() (head, error) {
	b, err := i.r.Peek(2)
	if err == nil {
		b, err = i.r.Peek(headLength(b))
	}
	if err != nil {
		return head{}, cut(err)
	}
	h, err := parseHead(b)
	if err != nil {
		return head{}, err
	}
	_, err = i.r.Discard(len(b))
	return h, err
}

// cut tells the connection's end from a message's.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// data waits for the next frame that is none of control, those before it are handed on.
func (i *inbox) data() (head, error) {
	for i.err == nil {
		h, err := i.head()
		if err != nil {
			i.err = err
			break
		}
		if h.opcode < opClose {
			return h, nil
		}
		b, err := i.r.Peek(int(h.length))
		if err != nil {
			i.err = cut(err)
			break
		}
		unmask(b, h.mask)
		if h.opcode == opClose {
			i.err = closing(b)
		}
		if err := i.control(h.opcode, b); err != nil && i.err == nil {
			i.err = err
		}
		if _, err := i.r.Discard(len(b)); err != nil && i.err == nil {
			i.err = err
		}
	}
	return head{}, i.err
}

// closing is errHungUp, or errProtocol where no close frame has such a payload.
func closing(b []byte) error {
	if len(b) == 0 {
		return errHungUp
	}
	if len(b) < 2 {
		return broken("half a status code")
	}
	switch code := binary.BigEndian.Uint16(b); {
	case code < 1000, code >= 1004 && code <= 1006, code > 1014 && code < 3000, code > 4999:
		return broken("status code %d is not to be sent", code)
	}
	if !utf8.Valid(b[2:]) {
		return broken("a reason is not UTF-8")
	}
	return errHungUp
}

// enter begins with a frame's payload.
func (i *inbox) enter(h head) {
	i.final, i.left, i.mask = h.final, h.length, h.mask
	i.total += h.length
}

// begin waits for a message and returns its opcode. The one before was read to its end.
func (i *inbox) begin() (opcode byte, err error) {
	h, err := i.data()
	if err != nil {
		return 0, err
	}
	if h.opcode == opContinuation {
		i.err = broken("a frame continues no message")
		return 0, i.err
	}
	i.total = 0
	i.enter(h)
	return h.opcode, nil
}

// Read reads from the message that has begun, to io.EOF at its end. errTooBig is a
// message of more than wire.MaxFrame bytes, as soon as a head says so.
func (i *inbox) Read(p []byte) (int, error) {
	for i.left == 0 {
		if i.final {
			return 0, io.EOF
		}
		h, err := i.data()
		if err != nil {
			return 0, err
		}
		if h.opcode != opContinuation {
			i.err = broken("a message begins within another")
			return 0, i.err
		}
		i.enter(h)
	}
	if i.total > wire.MaxFrame {
		return 0, errTooBig
	}
	n, err := i.r.Read(p[:min(uint64(len(p)), i.left)])
	i.mask = unmask(p[:n], i.mask)
	i.left -= uint64(n)
	if err != nil {
		i.err = cut(err)
	}
	return n, i.err
}

// drain reads on until the peer hangs up, or the connection ends.
func (i *inbox) drain() {
	for i.err == nil {
		if i.left > 0 {
			n, err := i.r.Discard(int(min(i.left, wire.MaxFrame)))
			i.left -= uint64(n)
			i.err = err
			continue
		}
		if h, err := i.data(); err == nil {
			i.enter(h)
		}
	}
}

// unmask takes a frame's mask off, of which mask is what the first four bytes have, and
// returns what those after b have (RFC 6455 section 5.3).
func unmask(b []byte, mask uint32) uint32 {
	for eight := uint64(mask)<<32 | uint64(mask); len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^eight)
	}
	for i := range b {
		b[i] ^= byte(mask)
		mask = mask>>8 | mask<<24
	}
	return mask
}
