package secagg

import (
	"encoding/binary"
	"fmt"
)

// A masked vector travels as Dim values of Width bits, one after the other,
// least significant bit first: value i occupies bits i*Width..(i+1)*Width-1 of the
// string, bit j of which is bit j%8 of byte j/8. Unused bits of the last byte
// are zero.

func packedSize(dim, width int) int { return (dim*width + 7) / 8 }

func ringMask(width int) uint32 { return uint32(1<<width - 1) }

// pack encodes v, reducing each value mod 2^width.
func pack(v []uint32, width int) []byte {
	out := make([]byte, packedSize(len(v), width)+8)
	mask := uint64(ringMask(width))
	var buf uint64 // bits not yet written, n of them, n < 32 between values
	n, o := 0, 0
	for _, x := range v {
		buf |= (uint64(x) & mask) << n
		n += width
		if n >= 32 {
			binary.LittleEndian.PutUint32(out[o:], uint32(buf))
			o += 4
			buf >>= 32
			n -= 32
		}
	}
	binary.LittleEndian.PutUint32(out[o:], uint32(buf))
	return out[:packedSize(len(v), width)]
}

// checkPacked refuses a string that pack cannot have made for dim values.
func checkPacked(p []byte, dim, width int) error {
	if len(p) != packedSize(dim, width) {
		return fmt.Errorf("%w: packed vector of %d bytes, want %d (%d symbols of %d bits)",
			ErrLength, len(p), packedSize(dim, width), dim, width)
	}
	if used := dim * width % 8; used != 0 && p[len(p)-1]>>used != 0 {
		return fmt.Errorf("%w: bits set after the last packed value", ErrRange)
	}
	return nil
}

// addPacked adds the packed values to sum mod 2^32, hence mod 2^width. The
// caller has checked p.
func addPacked(sum []uint32, p []byte, width int) {
	mask := uint64(ringMask(width))
	bit, i := 0, 0
	// A value spans at most 39 bits from the byte it begins in: 8 bytes hold it.
	for ; i < len(sum) && bit/8+8 <= len(p); i++ {
		sum[i] += uint32(binary.LittleEndian.Uint64(p[bit/8:]) >> (bit % 8) & mask)
		bit += width
	}
	for ; i < len(sum); i++ {
		var tail [8]byte
		copy(tail[:], p[bit/8:])
		sum[i] += uint32(binary.LittleEndian.Uint64(tail[:]) >> (bit % 8) & mask)
		bit += width
	}
}

// centre lifts a value mod 2^width into -2^(width-1)..2^(width-1)-1.
func centre(x uint32, width int) int64 {
	s := 32 - width
	return int64(int32(x<<s) >> s)
}
