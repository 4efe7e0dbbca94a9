package attack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
)

// An Array is a CBOR array: of uint64, []byte, string, bool, float64, nil and Array.
type Array []any

// ErrCBOR is an item that cannot be read.
var ErrCBOR = errors.New("attack: not CBOR of the kinds that the protocol uses")

func appendHead(b []byte, major byte, n uint64) []byte {
	switch major <<= 5; {
	case n < 24:
		return append(b, major|byte(n))
	case n <= math.MaxUint8:
		return append(b, major|24, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, major|25), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(b, major|27), n)
	}
}

// Encode writes an item in core deterministic encoding (RFC 8949, section 4.2.1).
// It panics at a type that Array does not name: what is sent is ours.
func Encode(v any) []byte { return appendItem(nil, v) }

func appendItem(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, 0xf6)
	case bool:
		if v {
			return append(b, 0xf5)
		}
		return append(b, 0xf4)
	case int:
		return appendHead(b, 0, uint64(v))
	case uint64:
		return appendHead(b, 0, v)
	case []byte:
		return append(appendHead(b, 2, uint64(len(v))), v...)
	case string:
		return append(appendHead(b, 3, uint64(len(v))), v...)
	case float64:
		return appendFloat(b, v)
	case Raw:
		return append(b, v...)
	case Array:
		b = appendHead(b, 4, uint64(len(v)))
		for _, item := range v {
			b = appendItem(b, item)
		}
		return b
	default:
		panic(fmt.Sprintf("attack: %T is not an item", v))
	}
}

// halves are the values that binary16 holds.
var halves = sync.OnceValue(func() map[uint64]uint16 {
	all := make(map[uint64]uint16, 1<<16)
	for h := range uint32(1 << 16) {
		all[math.Float64bits(half(uint16(h)))] = uint16(h)
	}
	return all
})

// appendFloat takes the shortest of the three forms that holds the value.
func appendFloat(b []byte, v float64) []byte {
	if h, ok := halves()[math.Float64bits(v)]; ok {
		return append(b, 0xf9, byte(h>>8), byte(h))
	}
	if single := float32(v); float64(single) == v {
		return binary.BigEndian.AppendUint32(append(b, 0xfa), math.Float32bits(single))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xfb), math.Float64bits(v))
}

// half is the value of a binary16 (RFC 8949, appendix D).
func half(h uint16) float64 {
	exponent, mantissa := int(h>>10&0x1f), float64(h&0x3ff)
	var v float64
	switch exponent {
	case 0:
		v = math.Ldexp(mantissa, -24)
	case 31:
		if v = math.Inf(1); mantissa != 0 {
			v = math.NaN()
		}
	default:
		v = math.Ldexp(mantissa+1024, exponent-25)
	}
	if h&0x8000 != 0 {
		v = -v
	}
	return v
}

// Decode reads one item, which is all of b.
func Decode(b []byte) (any, error) {
	v, rest, err := item(b, 0)
	if err == nil && len(rest) != 0 {
		err = fmt.Errorf("%w: %d bytes behind it", ErrCBOR, len(rest))
	}
	return v, err
}

// DecodeArray reads an array of n items at least.
func DecodeArray(b []byte, n int) (Array, error) {
	v, err := Decode(b)
	if err != nil {
		return nil, err
	}
	a, ok := v.(Array)
	if !ok || len(a) < n {
		return nil, fmt.Errorf("%w: %T of %d items, an array of %d expected", ErrCBOR, v, len(a), n)
	}
	return a, nil
}

func item(b []byte, depth int) (v any, rest []byte, err error) {
	if len(b) == 0 || depth > 8 {
		return nil, nil, fmt.Errorf("%w: truncated, or too deep", ErrCBOR)
	}
	major, info := b[0]>>5, b[0]&31
	b = b[1:]
	if major == 7 {
		switch {
		case info == 20 || info == 21:
			return info == 21, b, nil
		case info == 22:
			return nil, b, nil
		case info == 25 && len(b) >= 2:
			return half(binary.BigEndian.Uint16(b)), b[2:], nil
		case info == 26 && len(b) >= 4:
			return float64(math.Float32frombits(binary.BigEndian.Uint32(b))), b[4:], nil
		case info == 27 && len(b) >= 8:
			return math.Float64frombits(binary.BigEndian.Uint64(b)), b[8:], nil
		}
		return nil, nil, fmt.Errorf("%w: simple value %d", ErrCBOR, info)
	}
	n := uint64(info)
	if info >= 24 {
		size := 1 << (info - 24)
		if info > 27 || len(b) < size {
			return nil, nil, fmt.Errorf("%w: length form %d", ErrCBOR, info)
		}
		n = 0
		for _, x := range b[:size] {
			n = n<<8 | uint64(x)
		}
		b = b[size:]
	}
	switch {
	case major == 0:
		return n, b, nil
	case n > uint64(len(b)):
		return nil, nil, fmt.Errorf("%w: %d of something in %d bytes", ErrCBOR, n, len(b))
	case major == 2:
		return b[:n:n], b[n:], nil
	case major == 3:
		return string(b[:n]), b[n:], nil
	case major == 4:
		a := make(Array, n)
		for i := range a {
			if a[i], b, err = item(b, depth+1); err != nil {
				return nil, nil, err
			}
		}
		return a, b, nil
	}
	return nil, nil, fmt.Errorf("%w: major type %d", ErrCBOR, major)
}
