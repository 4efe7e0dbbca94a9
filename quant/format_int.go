package quant

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The symmetric integer formats: per block of 64 the largest magnitude as
// float32, and each value as the nearest of 2*levels+1 equal steps. All codes
// come first, then all scales, so that a byte codec sees like beside like.
var (
	formatInt8 = formatSpec{id: 4, name: "int8", size: func(n int) int { return n + 4*blocks(n) },
		encode: func(dst []byte, x []float32) error {
			scales := dst[len(x):]
			for b := 0; len(x) > 0; b++ {
				n := min(blockLen, len(x))
				amax := absMax(x[:n])
				if amax-amax != 0 {
					return checkFinite(x)
				}
				putScale(scales, b, amax)
				inv := inverseScale(127, amax)
				for i, v := range x[:n] {
					dst[i] = byte(int8(math.RoundToEven(float64(v) * inv)))
				}
				x, dst = x[n:], dst[n:]
			}
			return nil
		},
		decode: func(dst []float32, src []byte) error {
			scales := src[len(dst):]
			for b := 0; len(dst) > 0; b++ {
				n := min(blockLen, len(dst))
				amax, err := getScale(scales, b)
				if err != nil {
					return err
				}
				for i := range dst[:n] {
					q := int8(src[i])
					if q == -128 {
						return fmt.Errorf("%w: int8 code -128", ErrCorrupt)
					}
					dst[i] = float32(q) / 127 * amax
				}
				dst, src = dst[n:], src[n:]
			}
			return nil
		}}

	formatInt4 = formatSpec{id: 5, name: "int4", size: func(n int) int { return (n+1)/2 + 4*blocks(n) },
		encode: func(dst []byte, x []float32) error {
			codes, scales := dst[:(len(x)+1)/2], dst[(len(x)+1)/2:]
			clear(codes)
			for b := 0; b*blockLen < len(x); b++ {
				part := x[b*blockLen : min((b+1)*blockLen, len(x))]
				amax := absMax(part)
				if amax-amax != 0 {
					return checkFinite(part)
				}
				putScale(scales, b, amax)
				inv := inverseScale(7, amax)
				for i, v := range part {
					q := byte(int8(math.RoundToEven(float64(v)*inv)) + int4Zero)
					codes[(b*blockLen+i)/2] |= q << (4 * (1 - i&1))
				}
			}
			if len(x)&1 == 1 {
				codes[len(x)/2] |= int4Zero
			}
			return nil
		},
		decode: func(dst []float32, src []byte) error {
			codes, scales := src[:(len(dst)+1)/2], src[(len(dst)+1)/2:]
			for b := 0; b*blockLen < len(dst); b++ {
				part := dst[b*blockLen : min((b+1)*blockLen, len(dst))]
				amax, err := getScale(scales, b)
				if err != nil {
					return err
				}
				for i := range part {
					q := codes[(b*blockLen+i)/2] >> (4 * (1 - i&1)) & 15
					if q == 0 {
						return fmt.Errorf("%w: int4 code 0", ErrCorrupt)
					}
					part[i] = float32(int(q)-int4Zero) / 7 * amax
				}
			}
			return checkPad(codes, len(dst), int4Zero)
		}}
)

// int4Zero is the code of 0, which also pads an odd number of codes.
const int4Zero = 8

// inverseScale returns levels/amax, or 0 for an empty block. float64 holds the
// quotient even where amax is the smallest subnormal float32.
func inverseScale(levels float64, amax float32) float64 {
	if amax == 0 {
		return 0
	}
	return levels / float64(amax)
}

// putScale stores the scale of block b.
func putScale(scales []byte, b int, amax float32) {
	binary.LittleEndian.PutUint32(scales[4*b:], math.Float32bits(amax))
}

// getScale reads the scale of block b: finite and not negative.
func getScale(scales []byte, b int) (float32, error) {
	bits := binary.LittleEndian.Uint32(scales[4*b:])
	if bits >= 0x7f800000 {
		return 0, fmt.Errorf("%w: scale of block %d is not a finite number >= 0", ErrCorrupt, b)
	}
	return math.Float32frombits(bits), nil
}

// checkPad refuses a last half byte other than pad when n is odd: packed
// vectors have one form only.
func checkPad(codes []byte, n int, pad byte) error {
	if n&1 == 1 && codes[n/2]&15 != pad {
		return fmt.Errorf("%w: padding bits are set", ErrCorrupt)
	}
	return nil
}
