package quant

import (
	"encoding/binary"
	"fmt"
	"sync"
)

// A compressed vector is one byte of format, one byte of codec, the number of
// values as a minimal unsigned varint, and the packed values through the codec.

var bytePool = sync.Pool{New: func() any { return new([]byte) }}

// CheckNames returns an error that wraps ErrUnknown if there is no such format
// or codec.
func CheckNames(format, codec string) error {
	if _, err := LookupFormat(format); err != nil {
		return err
	}
	_, err := LookupCodec(codec)
	return err
}

// Compress appends x to dst in the given format and codec. Errors wrap
// ErrUnknown, ErrNotFinite, or ErrRange if a value does not fit the format.
func Compress(dst []byte, x []float32, format, codec string) ([]byte, error) {
	f, err := LookupFormat(format)
	if err != nil {
		return dst, err
	}
	c, err := LookupCodec(codec)
	if err != nil {
		return dst, err
	}
	at := len(dst)
	dst = append(dst, f.spec.id, c.spec.id)
	dst = binary.AppendUvarint(dst, uint64(len(x)))
	if c.spec == &codecNone {
		out, err := f.Append(dst, x)
		if err != nil {
			return dst[:at], err
		}
		return out, nil
	}
	buf := bytePool.Get().(*[]byte)
	defer bytePool.Put(buf)
	packed, err := f.Append((*buf)[:0], x)
	if err != nil {
		return dst[:at], err
	}
	*buf = packed
	out, err := c.Append(dst, packed)
	if err != nil {
		return dst[:at], err
	}
	return out, nil
}

// Decompress returns the values of a compressed vector. It takes at most max
// values and checks the length before it allocates; errors wrap ErrCorrupt or
// ErrUnknown.
func Decompress(src []byte, max int) ([]float32, error) {
	f, c, n, payload, err := parseHeader(src)
	if err != nil {
		return nil, err
	}
	if max < 0 || n > uint64(max) {
		return nil, fmt.Errorf("%w: %d values, the limit is %d", ErrCorrupt, n, max)
	}
	if c.spec == &codecNone && len(payload) != f.Size(int(n)) {
		return nil, fmt.Errorf("%w: %d bytes of %s for %d values, need %d", ErrCorrupt, len(payload), f.Name(), n, f.Size(int(n)))
	}
	dst := make([]float32, n)
	return dst, decodePayload(dst, f, c, payload)
}

// DecompressInto fills dst, whose length must be that of the vector, without
// allocating.
func DecompressInto(dst []float32, src []byte) error {
	f, c, n, payload, err := parseHeader(src)
	if err != nil {
		return err
	}
	if n != uint64(len(dst)) {
		return fmt.Errorf("%w: %d values, need %d", ErrCorrupt, n, len(dst))
	}
	return decodePayload(dst, f, c, payload)
}

func decodePayload(dst []float32, f Format, c Codec, payload []byte) error {
	if c.spec == &codecNone {
		return f.Decode(dst, payload)
	}
	buf := bytePool.Get().(*[]byte)
	defer bytePool.Put(buf)
	*buf = grow((*buf)[:0], f.Size(len(dst)))
	if err := c.Decode(*buf, payload); err != nil {
		return err
	}
	return f.Decode(dst, *buf)
}

func parseHeader(src []byte) (f Format, c Codec, n uint64, payload []byte, err error) {
	if len(src) < 3 {
		return f, c, 0, nil, fmt.Errorf("%w: %d bytes are too short", ErrCorrupt, len(src))
	}
	for _, s := range formats {
		if s.id == src[0] {
			f.spec = s
		}
	}
	for _, s := range codecs {
		if s.id == src[1] {
			c.spec = s
		}
	}
	if f.spec == nil || c.spec == nil {
		return f, c, 0, nil, fmt.Errorf("%w: format %d with codec %d", ErrUnknown, src[0], src[1])
	}
	n, k := binary.Uvarint(src[2:])
	if k <= 0 || k > 1 && src[2+k-1] == 0 {
		return f, c, 0, nil, fmt.Errorf("%w: number of values", ErrCorrupt)
	}
	return f, c, n, src[2+k:], nil
}
