package quant

import (
	"encoding/binary"
	"fmt"
)

// AppendPacked appends symbols to dst with width bits each, two's complement,
// least significant bit first, the last byte filled up with zeros. It is for
// symbols that are sent without a mask, where Width(scheme, 1) bits suffice.
// The error wraps ErrRange if width is not in 1..32 or a symbol does not fit.
func AppendPacked(dst []byte, symbols []int32, width int) ([]byte, error) {
	if width < 1 || width > 32 {
		return dst, fmt.Errorf("%w: width of %d bits, must be 1..32", ErrRange, width)
	}
	at := len(dst)
	size := packedSize(len(symbols), width)
	dst = grow(dst, size)
	out := dst[at:]
	var acc, seen uint64
	bits, k := 0, 0
	mask := uint64(1)<<width - 1
	for _, s := range symbols {
		// A symbol fits if all bits above its width repeat the sign.
		seen |= uint64((s >> (width - 1)) ^ (s >> 31))
		acc |= uint64(s) & mask << bits
		bits += width
		if bits >= 32 {
			binary.LittleEndian.PutUint32(out[k:], uint32(acc))
			acc >>= 32
			bits -= 32
			k += 4
		}
	}
	for ; k < size; k++ {
		out[k] = byte(acc)
		acc >>= 8
	}
	if seen != 0 {
		return dst[:at], fmt.Errorf("%w: a symbol does not fit in %d bits", ErrRange, width)
	}
	return dst, nil
}

// Unpack fills symbols from src, which AppendPacked made. The error wraps
// ErrCorrupt if src has not the exact length or its padding is not zero.
func Unpack(symbols []int32, src []byte, width int) error {
	if width < 1 || width > 32 {
		return fmt.Errorf("%w: width of %d bits, must be 1..32", ErrRange, width)
	}
	if len(src) != packedSize(len(symbols), width) {
		return fmt.Errorf("%w: %d bytes for %d symbols of %d bits, need %d", ErrCorrupt, len(src), len(symbols), width,
			packedSize(len(symbols), width))
	}
	var acc uint64
	bits := 0
	up := 32 - width
	for i := range symbols {
		if bits < width {
			if len(src) >= 4 {
				acc |= uint64(binary.LittleEndian.Uint32(src)) << bits
				src = src[4:]
				bits += 32
			} else {
				for _, b := range src {
					acc |= uint64(b) << bits
					bits += 8
				}
				src = nil
			}
		}
		symbols[i] = int32(uint32(acc)<<up) >> up
		acc >>= width
		bits -= width
	}
	if acc != 0 {
		return fmt.Errorf("%w: padding bits are set", ErrCorrupt)
	}
	return nil
}

func packedSize(n, width int) int { return (n*width + 7) / 8 }
