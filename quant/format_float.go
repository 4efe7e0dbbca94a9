package quant

import (
	"encoding/binary"
	"fmt"
	"math"
)

var (
	formatF32 = formatSpec{id: 1, name: "f32", size: func(n int) int { return 4 * n },
		encode: func(dst []byte, x []float32) error {
			if err := checkFinite(x); err != nil {
				return err
			}
			for i, v := range x {
				binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
			}
			return nil
		},
		decode: func(dst []float32, src []byte) error {
			for i := range dst {
				v := math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
				if v-v != 0 {
					return fmt.Errorf("%w: f32 value %d is %g", ErrCorrupt, i, v)
				}
				dst[i] = v
			}
			return nil
		}}

	formatF16 = formatSpec{id: 2, name: "f16", size: func(n int) int { return 2 * n },
		encode: func(dst []byte, x []float32) error {
			if err := checkFinite(x); err != nil {
				return err
			}
			for i, v := range x {
				h := toHalf(v)
				if h&0x7c00 == 0x7c00 {
					return fmt.Errorf("%w: value %d is %g, f16 ends at 65504", ErrRange, i, v)
				}
				binary.LittleEndian.PutUint16(dst[2*i:], h)
			}
			return nil
		},
		decode: func(dst []float32, src []byte) error {
			for i := range dst {
				h := binary.LittleEndian.Uint16(src[2*i:])
				if h&0x7c00 == 0x7c00 {
					return fmt.Errorf("%w: f16 value %d is not finite", ErrCorrupt, i)
				}
				dst[i] = fromHalf(h)
			}
			return nil
		}}

	formatBF16 = formatSpec{id: 3, name: "bf16", size: func(n int) int { return 2 * n },
		encode: func(dst []byte, x []float32) error {
			if err := checkFinite(x); err != nil {
				return err
			}
			for i, v := range x {
				b := math.Float32bits(v)
				b += 0x7fff + b>>16&1 // to nearest, ties to even
				if b&0x7f800000 == 0x7f800000 {
					return fmt.Errorf("%w: value %d is %g, bf16 ends at 3.39e38", ErrRange, i, v)
				}
				binary.LittleEndian.PutUint16(dst[2*i:], uint16(b>>16))
			}
			return nil
		},
		decode: func(dst []float32, src []byte) error {
			for i := range dst {
				h := binary.LittleEndian.Uint16(src[2*i:])
				if h&0x7f80 == 0x7f80 {
					return fmt.Errorf("%w: bf16 value %d is not finite", ErrCorrupt, i)
				}
				dst[i] = math.Float32frombits(uint32(h) << 16)
			}
			return nil
		}}
)

// toHalf rounds v to IEEE binary16, to nearest, ties to even; what is too
// large becomes an infinity.
func toHalf(v float32) uint16 {
	b := math.Float32bits(v)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b >= 0x47800000: // 65536 and up
		return sign | 0x7c00
	case b < 0x38800000: // below 2^-14: subnormal; the sum rounds at the bit wanted
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3f000000)
	default:
		b += 0xfff + b>>13&1
		return sign | uint16((b-0x38000000)>>13)
	}
}

// fromHalf is the value of a finite binary16.
func fromHalf(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	mag := uint32(h&0x7fff) << 13
	if mag < 1<<23 { // subnormal: the bits count units of 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(h&0x7fff)*0x1p-24))
	}
	return math.Float32frombits(sign | (mag + 0x38000000))
}
