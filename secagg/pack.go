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
	// Eight values are width bytes: each begins at the same bit of every eight. A
	// value spans at most 39 bits from the byte it begins in: 8 bytes hold it.
	var at [8]int
	var shift [8]uint
	for i := range at {
		at[i], shift[i] = i*width/8, uint(i*width%8)
	}
	i, first := 0, 0
	for ; i+8 <= len(sum) && first+at[7]+8 <= len(p); i, first = i+8, first+width {
		v, from := (*[8]uint32)(sum[i:]), p[first:first+at[7]+8]
		v[0] += uint32(binary.LittleEndian.Uint64(from[at[0]:]) >> (shift[0] & 7) & mask)
		v[1] += uint32(binary.LittleEndian.Uint64(from[at[1]:]) >> (shift[1] & 7) & mask)
		v[2] += uint32(binary.LittleEndian.Uint64(from[at[2]:]) >> (shift[2] & 7) & mask)
		v[3] += uint32(binary.LittleEndian.Uint64(from[at[3]:]) >> (shift[3] & 7) & mask)
		v[4] += uint32(binary.LittleEndian.Uint64(from[at[4]:]) >> (shift[4] & 7) & mask)
		v[5] += uint32(binary.LittleEndian.Uint64(from[at[5]:]) >> (shift[5] & 7) & mask)
		v[6] += uint32(binary.LittleEndian.Uint64(from[at[6]:]) >> (shift[6] & 7) & mask)
		v[7] += uint32(binary.LittleEndian.Uint64(from[at[7]:]) >> (shift[7] & 7) & mask)
	}
	addPackedPlainly(sum[i:], p[first:], width)
}

// addPackedPlainly is addPacked's plain twin, value by value.
func addPackedPlainly(sum []uint32, p []byte, width int) {
	mask := uint64(ringMask(width))
	bit := 0
	for i := range sum {
		var from [8]byte
		copy(from[:], p[bit/8:])
		sum[i] += uint32(binary.LittleEndian.Uint64(from[:]) >> (bit % 8) & mask)
		bit += width
	}
}

// centre lifts a value mod 2^width into -2^(width-1)..2^(width-1)-1.
func centre(x uint32, width int) int64 {
	s := 32 - width
	return int64(int32(x<<s) >> s)
}
