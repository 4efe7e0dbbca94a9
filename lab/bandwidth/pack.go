package bandwidth

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/starling-fl/starling/quant"
)

// appendPacked appends symbols to dst with width bits each, two's complement,
// least significant bit first, the last byte filled up with zeros. It is for
// symbols that are sent without a mask, where quant.Width(scheme, 1) bits suffice.
// The error wraps quant.ErrRange if width is not in 1..32 or a symbol does not fit.
func appendPacked(dst []byte, symbols []int32, width int) ([]byte, error) {
	if width < 1 || width > 32 {
		return dst, fmt.Errorf("%w: width of %d bits, must be 1..32", quant.ErrRange, width)
	}
	at := len(dst)
	size := packedSize(len(symbols), width)
	dst = slices.Grow(dst, size)[:at+size]
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
		return dst[:at], fmt.Errorf("%w: a symbol does not fit in %d bits", quant.ErrRange, width)
	}
	return dst, nil
}

func packedSize(n, width int) int { return (n*width + 7) / 8 }
