package wire

import (
	"bytes"
	"math"
	"slices"
	"sync"

	"github.com/starling-fl/starling/internal/protocol/cbor"
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

// headsRoom is what is not the byte string: the kind and five heads.
const headsRoom = 1 + 5*cbor.MaxHead

func (t *Turn) room() int   { return headsRoom + len(t.Payload) }
func (u *Update) room() int { return headsRoom + len(u.Data) }

func (t *Turn) appendBulk(b []byte) ([]byte, bool) {
	if t.Payload == nil { // null
		return b, false
	}
	b = cbor.AppendArray(b, 4)
	b = cbor.AppendUint(b, t.Round)
	b = cbor.AppendUint(b, uint64(t.Number))
	b = cbor.AppendBytes(b, t.Payload)
	return cbor.AppendUint(b, uint64(t.Millis)), true
}

func (t *Turn) takeBulk(body []byte) bool {
	r := cbor.NewReader(body)
	r.Array(4, 4, "turn")
	round, number := r.Uint(math.MaxUint64, "round"), r.Uint(math.MaxUint8, "number")
	payload := r.Bytes(0, math.MaxInt, "payload")
	millis := r.Uint(math.MaxUint32, "deadline")
	if r.Done() != nil {
		return false
	}
	t.Round, t.Number, t.Payload, t.Millis = round, uint8(number), bytes.Clone(payload), uint32(millis)
	return true
}

func (u *Update) appendBulk(b []byte) ([]byte, bool) {
	if u.Data == nil {
		return b, false
	}
	b = cbor.AppendArray(b, 4)
	for _, x := range [...]uint64{u.Round, u.Total, u.Offset} {
		b = cbor.AppendUint(b, x)
	}
	return cbor.AppendBytes(b, u.Data), true
}

func (u *Update) takeBulk(body []byte) bool {
	r := cbor.NewReader(body)
	r.Array(4, 4, "update")
	round, total, offset := r.Uint(math.MaxUint64, "round"), r.Uint(math.MaxUint64, "total"), r.Uint(math.MaxUint64, "offset")
	data := r.Bytes(0, math.MaxInt, "data")
	if r.Done() != nil {
		return false
	}
	u.Round, u.Total, u.Offset, u.Data = round, total, offset, append(emptied(len(data)), data...)
	return true
}

// used are buffers of updates that are read no more. What a round's devices send is
// most of what a coordinator allocates, and each is held for a moment only.
var used sync.Pool

// Recycle gives back the bytes of an update that is no longer read.
func Recycle(b []byte) {
	if cap(b) > 0 {
		used.Put(&b)
	}
}

// emptied is a buffer for n bytes, a used one where it is not much larger: anyone who sends
// little holds little.
func emptied(n int) []byte {
	if b, ok := used.Get().(*[]byte); ok && cap(*b) >= n && cap(*b)/2 <= n {
		return (*b)[:0]
	}
	return make([]byte, 0, n)
}
