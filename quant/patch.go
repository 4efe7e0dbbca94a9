package quant

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// kindPatch is an update that leads to exactly the values of a full message,
// by the difference of its codes to those of the values held: one byte of
// kind, 16 bytes of the digest of what is held, and a compressed vector whose
// payload went through subtract.
const kindPatch = 2

// PackPatch shortens full, a message that PackUpdate made for a device that
// holds nothing, for a device that holds held. UnpackUpdate yields the same
// values from both, to the bit, in every format: the codes are predicted from
// held and only the difference is sent. It goes through full's codec, or zstd
// where full has none. It returns nil if the patch would not be smaller.
//
// Errors wrap ErrCorrupt or ErrUnknown if full is not such a message, or
// ErrLength if held is not as long as it.
func PackPatch(full []byte, held []float32) ([]byte, error) {
	if len(full) == 0 || full[0] != kindFull {
		return nil, fmt.Errorf("%w: not a full update", ErrCorrupt)
	}
	f, c, n, payload, err := parseHeader(full[1:])
	if err != nil {
		return nil, err
	}
	if n != uint64(len(held)) {
		return nil, fmt.Errorf("%w: the device holds %d values, the update has %d", ErrLength, len(held), n)
	}
	packed := make([]byte, f.Size(len(held)))
	if err := c.Decode(packed, payload); err != nil {
		return nil, err
	}
	old, err := f.Append(nil, held)
	if errors.Is(err, ErrRange) || errors.Is(err, ErrNotFinite) {
		return nil, nil // what is held does not fit the format: nothing to predict from
	} else if err != nil {
		return nil, err
	}
	if c.spec == &codecNone {
		c.spec = &codecZstd
	}
	digest := Digest(held)
	msg := append([]byte{kindPatch}, digest[:baseLen]...)
	msg = append(msg, f.spec.id, c.spec.id)
	msg = binary.AppendUvarint(msg, n)
	diff := make([]byte, len(packed))
	subtract(f, diff, packed, old, len(held))
	if msg, err = c.Append(msg, diff); err != nil {
		return nil, err
	}
	if len(msg) >= len(full) {
		return nil, nil
	}
	return msg, nil
}

// unpackPatch undoes PackPatch; body is the message after its kind.
func unpackPatch(body []byte, held []float32, n int) ([]float32, error) {
	if len(body) < baseLen {
		return nil, fmt.Errorf("%w: patch of %d bytes", ErrCorrupt, len(body))
	}
	digest := Digest(held)
	if held == nil || len(held) != n || !bytes.Equal(digest[:baseLen], body[:baseLen]) {
		return nil, fmt.Errorf("%w: it is for %x", ErrBase, body[:baseLen])
	}
	f, c, count, payload, err := parseHeader(body[baseLen:])
	if err != nil {
		return nil, err
	}
	if count != uint64(n) {
		return nil, fmt.Errorf("%w: patch of %d values, need %d", ErrCorrupt, count, n)
	}
	diff := make([]byte, f.Size(n))
	if err := c.Decode(diff, payload); err != nil {
		return nil, err
	}
	old, err := f.Append(nil, held)
	if err != nil {
		return nil, fmt.Errorf("%w: the held values do not fit %s: %w", ErrBase, f.Name(), err)
	}
	packed := make([]byte, len(diff))
	add(f, packed, diff, old, n)
	out := make([]float32, n)
	return out, f.Decode(out, packed)
}

// section is a run of elements of one size in a packed vector: 0 bytes means
// two codes of 4 bits a byte.
type section struct{ length, size int }

// sections says what the packed bytes of n values are made of.
func sections(f Format, n int) []section {
	switch f.spec {
	case &formatF32:
		return []section{{4 * n, 4}}
	case &formatF16, &formatBF16:
		return []section{{2 * n, 2}}
	case &formatInt8:
		return []section{{n, 1}, {4 * blocks(n), 4}}
	case &formatNF4DQ:
		tail := f.Size(n) - (n+1)/2 - blocks(n)
		return []section{{(n + 1) / 2, 0}, {blocks(n), 1}, {tail, 4}}
	default: // int4, nf4
		return []section{{(n + 1) / 2, 0}, {4 * blocks(n), 4}}
	}
}

// subtract writes the difference between two packed vectors in a form that
// byte codecs shorten: elements are subtracted as integers, the sign goes to
// the lowest bit, and bytes of equal weight stand together.
func subtract(f Format, dst, packed, old []byte, n int) {
	for _, s := range sections(f, n) {
		if s.size == 0 {
			for i := range s.length {
				a, b := packed[i], old[i]
				dst[i] = (a-b&0xf0)&0xf0 | (a-b&0x0f)&0x0f
			}
		} else {
			count, top := s.length/s.size, 8*s.size-1
			for i := range count {
				d := load32(packed[i*s.size:], s.size) - load32(old[i*s.size:], s.size)
				d <<= 31 - top // sign-extend
				z := uint32(int32(d)<<1^int32(d)>>31) >> (31 - top)
				for k := range s.size {
					dst[k*count+i] = byte(z >> (8 * k))
				}
			}
		}
		dst, packed, old = dst[s.length:], packed[s.length:], old[s.length:]
	}
}

// add undoes subtract.
func add(f Format, packed, diff, old []byte, n int) {
	for _, s := range sections(f, n) {
		if s.size == 0 {
			for i := range s.length {
				d, b := diff[i], old[i]
				packed[i] = (d+b&0xf0)&0xf0 | (d+b&0x0f)&0x0f
			}
		} else {
			count := s.length / s.size
			for i := range count {
				var z uint32
				for k := range s.size {
					z |= uint32(diff[k*count+i]) << (8 * k)
				}
				v := z>>1 ^ -(z & 1) + load32(old[i*s.size:], s.size)
				for k := range s.size {
					packed[i*s.size+k] = byte(v >> (8 * k))
				}
			}
		}
		packed, diff, old = packed[s.length:], diff[s.length:], old[s.length:]
	}
}

// load32 reads size bytes, least significant first.
func load32(b []byte, size int) (v uint32) {
	for k := range size {
		v |= uint32(b[k]) << (8 * k)
	}
	return v
}
