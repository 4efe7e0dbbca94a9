package secagg

import (
	"encoding/binary"
	"fmt"
)

// The messages are CBOR in core deterministic encoding (RFC 8949 section
// 4.2.1), and use three of its types only: unsigned integers, byte strings and
// arrays of definite length. This file is all of the reader and writer; the
// reader takes the shortest form only, so that decoding and encoding again
// gives the same bytes, and allocates nothing.

const (
	majorUint  = 0 << 5
	majorBytes = 2 << 5
	majorArray = 4 << 5
)

func appendHead(b []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(b, major|byte(n))
	case n < 1<<8:
		return append(b, major|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, major|25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, major|27), n)
}

func appendUint(b []byte, n uint64) []byte { return appendHead(b, majorUint, n) }
func appendArray(b []byte, n int) []byte   { return appendHead(b, majorArray, uint64(n)) }
func appendBytes(b []byte, v []byte) []byte {
	return append(appendHead(b, majorBytes, uint64(len(v))), v...)
}

// A reader consumes a message from the front. After the first error it yields
// zero values; done reports it.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrEncoding, fmt.Sprintf(format, args...))
	}
	r.b = nil
}

func (r *reader) head(major byte, what string) uint64 {
	if r.err != nil {
		return 0
	}
	if len(r.b) == 0 {
		r.fail("%s: truncated", what)
		return 0
	}
	h := r.b[0]
	if h&0xe0 != major {
		r.fail("%s: major type %d, want %d", what, h>>5, major>>5)
		return 0
	}
	info := h & 0x1f
	if info < 24 {
		r.b = r.b[1:]
		return uint64(info)
	}
	if info > 27 {
		r.fail("%s: length form %d not allowed", what, info)
		return 0
	}
	n := 1 << (info - 24)
	if len(r.b) < 1+n {
		r.fail("%s: truncated", what)
		return 0
	}
	var v uint64
	for _, x := range r.b[1 : 1+n] {
		v = v<<8 | uint64(x)
	}
	least := [4]uint64{24, 1 << 8, 1 << 16, 1 << 32}[info-24]
	if v < least {
		r.fail("%s: %d not in shortest form", what, v)
		return 0
	}
	r.b = r.b[1+n:]
	return v
}

// uint reads an integer of at most max.
func (r *reader) uint(max uint64, what string) uint64 {
	v := r.head(majorUint, what)
	if r.err == nil && v > max {
		r.fail("%s: %d above %d", what, v, max)
		return 0
	}
	return v
}

// array reads the head of an array of min..max elements.
func (r *reader) array(min, max int, what string) int {
	v := r.head(majorArray, what)
	if r.err == nil && (v < uint64(min) || v > uint64(max)) {
		r.fail("%s: %d elements, want %d..%d", what, v, min, max)
		return 0
	}
	return int(v)
}

// bytes reads a byte string of min..max bytes; the result aliases the input.
func (r *reader) bytes(min, max int, what string) []byte {
	v := r.head(majorBytes, what)
	if r.err != nil {
		return nil
	}
	if v < uint64(min) || v > uint64(max) {
		r.fail("%s: %d bytes, want %d..%d", what, v, min, max)
		return nil
	}
	if v > uint64(len(r.b)) {
		r.fail("%s: truncated", what)
		return nil
	}
	out := r.b[:v:v]
	r.b = r.b[v:]
	return out
}

// fixed reads a byte string of exactly len(dst) bytes into dst.
func (r *reader) fixed(dst []byte, what string) {
	copy(dst, r.bytes(len(dst), len(dst), what))
}

// done returns the first error, or complains of bytes left over.
func (r *reader) done() error {
	if r.err == nil && len(r.b) != 0 {
		r.fail("%d bytes after the message", len(r.b))
	}
	return r.err
}
