package wire

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
)

// Turns and updates carry nearly all bytes of a round, each in one byte string. Here
// they are written and read at one copy of it; the general way, which is this file's
// plain twin, decodes, encodes again and compares. What is not the canonical encoding
// of one of them is left to that way, which says why.

// bulky is a message that is written and read here.
type bulky interface {
	// room is how long the frame may be.
	room() int
	// appendBulk appends the body; false: the general way is to.
	appendBulk(b []byte) ([]byte, bool)
	// takeBulk reads a canonical body; false: it is none, or the general way is to say.
	takeBulk(body []byte) bool
}

// appendBulk appends a bulky message's frame.
func appendBulk(dst []byte, m Message) ([]byte, bool) {
	bulk, ok := m.(bulky)
	if !ok {
		return dst, false
	}
	return bulk.appendBulk(append(slices.Grow(dst, bulk.room()), byte(m.Kind())))
}

// Major types of CBOR (RFC 8949 section 3.1).
const (
	majorUint  = 0 << 5
	majorBytes = 2 << 5
	majorArray = 4 << 5
)

// headsRoom is what is not the byte string: the kind and five heads.
const headsRoom = 1 + 5*9

func (t *Turn) room() int   { return headsRoom + len(t.Payload) }
func (u *Update) room() int { return headsRoom + len(u.Data) }

func (t *Turn) appendBulk(b []byte) ([]byte, bool) {
	if t.Payload == nil { // null
		return b, false
	}
	b = append(b, majorArray|4)
	b = appendHead(b, majorUint, t.Round)
	b = appendHead(b, majorUint, uint64(t.Number))
	b = append(appendHead(b, majorBytes, uint64(len(t.Payload))), t.Payload...)
	return appendHead(b, majorUint, uint64(t.Millis)), true
}

func (t *Turn) takeBulk(body []byte) bool {
	r := bulkReader{body, true}
	r.array(4)
	round, number := r.uint(math.MaxUint64), r.uint(math.MaxUint8)
	payload := r.bytes()
	millis := r.uint(math.MaxUint32)
	if !r.ok || len(r.b) > 0 {
		return false
	}
	t.Round, t.Number, t.Payload, t.Millis = round, uint8(number), bytes.Clone(payload), uint32(millis)
	return true
}

func (u *Update) appendBulk(b []byte) ([]byte, bool) {
	if u.Data == nil {
		return b, false
	}
	b = append(b, majorArray|4)
	for _, x := range [...]uint64{u.Round, u.Total, u.Offset} {
		b = appendHead(b, majorUint, x)
	}
	return append(appendHead(b, majorBytes, uint64(len(u.Data))), u.Data...), true
}

func (u *Update) takeBulk(body []byte) bool {
	r := bulkReader{body, true}
	r.array(4)
	round, total, offset := r.uint(math.MaxUint64), r.uint(math.MaxUint64), r.uint(math.MaxUint64)
	data := r.bytes()
	if !r.ok || len(r.b) > 0 {
		return false
	}
	u.Round, u.Total, u.Offset, u.Data = round, total, offset, bytes.Clone(data)
	return true
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

// bulkReader consumes a body from the front until something is not as it must be.
type bulkReader struct {
	b  []byte
	ok bool
}

// head reads the shortest head of a type.
func (r *bulkReader) head(major byte) uint64 {
	if !r.ok || len(r.b) == 0 || r.b[0]&0xe0 != major {
		r.ok = false
		return 0
	}
	info := r.b[0] & 0x1f
	r.b = r.b[1:]
	if info < 24 {
		return uint64(info)
	}
	size := 1 << (info - 24)
	if info > 27 || len(r.b) < size {
		r.ok = false
		return 0
	}
	var n uint64
	for _, x := range r.b[:size] {
		n = n<<8 | uint64(x)
	}
	r.b = r.b[size:]
	r.ok = n >= [...]uint64{24, 1 << 8, 1 << 16, 1 << 32}[info-24]
	return n
}

func (r *bulkReader) array(n uint64) { r.ok = r.head(majorArray) == n && r.ok }

func (r *bulkReader) uint(most uint64) uint64 {
	n := r.head(majorUint)
	r.ok = r.ok && n <= most
	return n
}

// bytes aliases the body.
func (r *bulkReader) bytes() []byte {
	n := r.head(majorBytes)
	if !r.ok || n > uint64(len(r.b)) {
		r.ok = false
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}
