// Package cbor writes and reads the part of CBOR (RFC 8949) that the protocol and programs'
// manifests are made of, in core deterministic encoding (section 4.2.1). What it reads has
// one encoding. A [Reader] takes unsigned integers, byte strings and arrays of definite
// length one by one; it copies and allocates nothing. A [Codec] takes Go values by their
// types. A general library, with which tests compare it, is a tenth of what a page loads.
package cbor

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Major types (RFC 8949 section 3.1), as they are in the first byte of a head.
const (
	majorUint  = 0 << 5
	majorBytes = 2 << 5
	majorArray = 4 << 5
)

// MaxHead is the length of the longest head in bytes.
const MaxHead = 1 + 8

// AppendUint appends an unsigned integer.
func AppendUint(b []byte, n uint64) []byte { return appendHead(b, majorUint, n) }

// AppendArray appends the head of an array of n elements, which are to follow.
func AppendArray(b []byte, n int) []byte { return appendHead(b, majorArray, uint64(n)) }

// AppendBytes appends a byte string.
func AppendBytes(b, v []byte) []byte {
	return append(appendHead(b, majorBytes, uint64(len(v))), v...)
}

// appendHead appends the shortest head of a type (RFC 8949 section 4.2.1).
func appendHead(b []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(b, major|byte(n))
	case n <= math.MaxUint8:
		return append(b, major|24, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, major|25), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, major|27), n)
}

// A Reader consumes a message from the front. After the first error it yields zero
// values; Done reports it. Each method is told what it reads, for that error.
type Reader struct {
	b     []byte
	first Error // its reason is 0: none yet
}

// NewReader reads data, which byte strings will alias.
func NewReader(data []byte) Reader { return Reader{b: data} }

// An Error says why a message is not the deterministic encoding of the wanted type. Its text is
// made only when it is read.
type Error struct {
	reason           reason
	what             string
	got, least, most uint64
}

type reason uint8

const (
	truncated reason = 1 + iota
	otherType
	otherForm
	longForm
	otherValue
	tooLarge
	otherCount
	otherLength
	otherSimple
	otherFloat
	otherText
	otherKind
	otherSpelling
	trailing
)

// says are the reasons that have no numbers.
var says = map[reason]string{
	truncated: "truncated", otherFloat: "not a finite float", otherText: "not UTF-8", otherKind: "of a type that is not read",
	otherSpelling: "not in the one spelling that it has",
}

func (e *Error) Error() string {
	switch e.reason {
	case otherType:
		return fmt.Sprintf("%s: major type %d, want %d", e.what, e.got, e.least)
	case otherForm:
		return fmt.Sprintf("%s: length form %d not allowed", e.what, e.got)
	case longForm:
		return fmt.Sprintf("%s: %d not in shortest form", e.what, e.got)
	case otherValue:
		return fmt.Sprintf("%s %d, want %d", e.what, e.got, e.least)
	case tooLarge:
		return fmt.Sprintf("%s: %d above %d", e.what, e.got, e.most)
	case otherCount:
		return fmt.Sprintf("%s: %d elements, want %d..%d", e.what, e.got, e.least, e.most)
	case otherLength:
		return fmt.Sprintf("%s: %d bytes, want %d..%d", e.what, e.got, e.least, e.most)
	}
	if e.reason == otherSimple {
		return fmt.Sprintf("%s: byte %#x, want true or false", e.what, e.got)
	}
	if say, ok := says[e.reason]; ok {
		return e.what + ": " + say
	}
	return fmt.Sprintf("%d bytes after the message", e.got)
}

// Spelling reports whether the value is one that was asked for, in another form than its shortest.
func (e *Error) Spelling() bool {
	return e.reason == longForm || e.reason == otherForm || e.reason == otherSpelling
}

// OK reports whether everything so far was as it must be.
func (r *Reader) OK() bool { return r.first.reason == 0 }

// fail keeps the first error.
func (r *Reader) fail(e Error) {
	if r.OK() {
		r.first = e
	}
	r.b = nil
}

// Uint reads an integer of at most most.
func (r *Reader) Uint(most uint64, what string) uint64 {
	n := r.head(majorUint, what)
	if n > most {
		r.fail(Error{reason: tooLarge, what: what, got: n, most: most})
		return 0
	}
	return n
}

// Literal reads an integer that must be want.
func (r *Reader) Literal(want uint64, what string) {
	if n := r.head(majorUint, what); r.OK() && n != want {
		r.fail(Error{reason: otherValue, what: what, got: n, least: want})
	}
}

// Array reads the head of an array of least..most elements, which are to be read next.
func (r *Reader) Array(least, most int, what string) int {
	n := r.head(majorArray, what)
	if r.OK() && (n < uint64(least) || n > uint64(most)) {
		r.fail(Error{otherCount, what, n, uint64(least), uint64(most)})
		return 0
	}
	return int(n)
}

// Bytes reads a byte string of least..most bytes. The result aliases the message; it has
// no capacity beyond its end.
func (r *Reader) Bytes(least, most int, what string) []byte {
	n := r.head(majorBytes, what)
	switch {
	case !r.OK():
		return nil
	case n < uint64(least) || n > uint64(most):
		r.fail(Error{otherLength, what, n, uint64(least), uint64(most)})
		return nil
	case n > uint64(len(r.b)):
		r.fail(Error{reason: truncated, what: what})
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

// Fixed reads a byte string of exactly len(dst) bytes into dst.
func (r *Reader) Fixed(dst []byte, what string) {
	copy(dst, r.Bytes(len(dst), len(dst), what))
}

// Done returns the first error, an *Error, or complains of bytes left over.
func (r *Reader) Done() error {
	if len(r.b) != 0 {
		r.fail(Error{reason: trailing, got: uint64(len(r.b))})
	}
	if r.OK() {
		return nil
	}
	first := r.first // a copy: that of a Reader on the stack would move it to the heap
	return &first
}

// head reads the shortest head of a type.
func (r *Reader) head(major byte, what string) uint64 {
	if !r.OK() {
		return 0
	}
	if len(r.b) == 0 {
		r.fail(Error{reason: truncated, what: what})
		return 0
	}
	h := r.b[0]
	if h&0xe0 != major {
		r.fail(Error{reason: otherType, what: what, got: uint64(h >> 5), least: uint64(major >> 5)})
		return 0
	}
	info := h & 0x1f
	if info < 24 {
		r.b = r.b[1:]
		return uint64(info)
	}
	if info > 27 { // reserved, or of no definite length (RFC 8949 section 3)
		r.fail(Error{reason: otherForm, what: what, got: uint64(info)})
		return 0
	}
	size := 1 << (info - 24)
	if len(r.b) < 1+size {
		r.fail(Error{reason: truncated, what: what})
		return 0
	}
	var n uint64
	for _, x := range r.b[1 : 1+size] {
		n = n<<8 | uint64(x)
	}
	if n < [...]uint64{24, 1 << 8, 1 << 16, 1 << 32}[info-24] {
		r.fail(Error{reason: longForm, what: what, got: n})
		return 0
	}
	r.b = r.b[1+size:]
	return n
}
