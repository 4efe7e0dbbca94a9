package wire

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/fxamacker/cbor/v2"
)

// Causes for which a frame is refused.
var (
	ErrKind      = errors.New("wire: unknown kind of message")
	ErrDirection = errors.New("wire: message sent in the wrong direction")
	ErrCanonical = errors.New("wire: not the canonical encoding")
	ErrMalformed = errors.New("wire: malformed message")
	ErrUnmasked  = errors.New("wire: update was not made from a masked vector")
)

// A LimitError says which field of which message broke which bound.
type LimitError struct {
	Field       string // message and field, "assignment.plan"
	Have        uint64
	Least, Most uint64
}

func (e *LimitError) Error() string {
	if e.Have < e.Least {
		return fmt.Sprintf("wire: %s is %d, at least %d needed", e.Field, e.Have, e.Least)
	}
	return fmt.Sprintf("wire: %s is %d, limit %d", e.Field, e.Have, e.Most)
}

// A Message is one of this package's message types.
type Message interface {
	Kind() Kind
	validate() error
}

var (
	encMode = must(cbor.CoreDetEncOptions().UserBufferEncMode())
	decMode = must(cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		MaxNestedLevels:   maxNested,
		MaxArrayElements:  maxArray,
		MaxMapPairs:       16,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		UTF8:              cbor.UTF8RejectInvalid,
		NaN:               cbor.NaNDecodeForbidden,
		Inf:               cbor.InfDecodeForbidden,
	}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // constant options: wrong only if this file is
	}
	return v
}

// Append encodes m as a frame behind dst. It refuses a message that Decode
// would refuse.
func Append(dst []byte, m Message) ([]byte, error) {
	k := m.Kind()
	if u, ok := m.(*Update); ok && !u.masked {
		return dst, ErrUnmasked
	}
	if err := m.validate(); err != nil {
		return dst, err
	}
	if b, ok := appendBulk(dst, m); ok {
		return checked(dst, b, k)
	}
	body := scratch.Get().(*bytes.Buffer)
	defer forget(body)
	if err := encMode.MarshalToBuffer(m, body); err != nil {
		return dst, fmt.Errorf("wire: %s: %w", k, err)
	}
	return checked(dst, append(append(slices.Grow(dst, 1+body.Len()), byte(k)), body.Bytes()...), k)
}

// checked is the frame that was appended to dst, unless it is too long.
func checked(dst, b []byte, k Kind) ([]byte, error) {
	if n := len(b) - len(dst); n > flow[k].max {
		return dst, &LimitError{Field: k.String(), Have: uint64(n), Most: uint64(flow[k].max)}
	}
	return b, nil
}

// Decode reads one frame that came from the given side. Byte strings in the
// result are copies. The frame's size is checked against its kind's limit
// before anything is allocated.
func Decode(frame []byte, from Direction) (Message, error) {
	if len(frame) == 0 {
		return nil, fmt.Errorf("%w: empty frame", ErrMalformed)
	}
	k := Kind(frame[0])
	if k == 0 || k >= kindEnd {
		return nil, fmt.Errorf("%w: %d", ErrKind, frame[0])
	}
	rule := &flow[k]
	if rule.from&from == 0 {
		return nil, fmt.Errorf("%w: %s", ErrDirection, k)
	}
	if len(frame) > rule.max {
		return nil, &LimitError{Field: k.String(), Have: uint64(len(frame)), Most: uint64(rule.max)}
	}
	m := rule.make()
	if b, ok := m.(bulky); !ok || !b.takeBulk(frame[1:]) {
		if err := decodeBody(frame[1:], m); err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
	}
	if err := m.validate(); err != nil {
		return nil, err
	}
	if u, ok := m.(*Update); ok {
		u.masked = true
	}
	return m, nil
}

// decodeBody fills v from body and checks that body is v's canonical encoding.
func decodeBody(body []byte, v any) error {
	if err := decMode.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	again := scratch.Get().(*bytes.Buffer)
	defer forget(again)
	if err := encMode.MarshalToBuffer(v, again); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if !bytes.Equal(again.Bytes(), body) {
		return ErrCanonical
	}
	return nil
}

// scratch is what messages are encoded into, to be compared or copied: none is much
// longer than MaxFrame.
var scratch = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// forget gives scratch back without what it held: a token is a secret.
func forget(b *bytes.Buffer) {
	clear(b.Bytes())
	b.Reset()
	scratch.Put(b)
}

// within is a LimitError unless least <= have <= most.
func within[T ~int | ~uint8 | ~uint16 | ~uint32 | ~uint64](field string, have, least, most T) error {
	if have < least || have > most {
		return &LimitError{Field: field, Have: uint64(have), Least: uint64(least), Most: uint64(most)}
	}
	return nil
}
