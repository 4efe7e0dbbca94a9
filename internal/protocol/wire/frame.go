package wire

import (
	"errors"
	"fmt"

	"github.com/starling-fl/starling/internal/protocol/cbor"
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

// code is how messages are written: in core deterministic CBOR.
var code = cbor.Codec{MaxArray: maxArray}

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
	b, err := code.Append(append(dst, byte(k)), m)
	if err != nil {
		return dst, fmt.Errorf("wire: %s: %w", k, err)
	}
	return checked(dst, b, k)
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
	if err := code.Unmarshal(body, v); err != nil {
		if refused := (*cbor.Error)(nil); errors.As(err, &refused) && refused.Spelling() {
			return fmt.Errorf("%w: %w", ErrCanonical, err)
		}
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// within is a LimitError unless least <= have <= most.
func within[T ~int | ~uint8 | ~uint16 | ~uint32 | ~uint64](field string, have, least, most T) error {
	if have < least || have > most {
		return &LimitError{Field: field, Have: uint64(have), Least: uint64(least), Most: uint64(most)}
	}
	return nil
}
