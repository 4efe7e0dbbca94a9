package model

import (
	"encoding/binary"
	"fmt"
	"math"
)

func encodeFloats(dtype string, v []float32) ([]byte, error) {
	switch dtype {
	case "F32":
		out := make([]byte, 4*len(v))
		for i, x := range v {
			binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(x))
		}
		return out, nil
	case "F16":
		out := make([]byte, 2*len(v))
		for i, x := range v {
			binary.LittleEndian.PutUint16(out[2*i:], ToF16(x))
		}
		return out, nil
	case "BF16":
		out := make([]byte, 2*len(v))
		for i, x := range v {
			binary.LittleEndian.PutUint16(out[2*i:], toBF16(x))
		}
		return out, nil
	}
	return nil, fmt.Errorf("cannot store floats as %q", dtype)
}

func decodeFloats(dtype string, b []byte) ([]float32, error) {
	width := dtypeBits[dtype] / 8
	if width == 0 || len(b)%width != 0 {
		return nil, fmt.Errorf("%d bytes of dtype %q", len(b), dtype)
	}
	var get func(b []byte) float32
	switch dtype {
	case "F32":
		get = func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }
	case "F64":
		get = func(b []byte) float32 { return float32(math.Float64frombits(binary.LittleEndian.Uint64(b))) }
	case "F16":
		get = func(b []byte) float32 { return fromF16(binary.LittleEndian.Uint16(b)) }
	case "BF16":
		get = func(b []byte) float32 {
			return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
		}
	default:
		return nil, fmt.Errorf("dtype %q is not a float", dtype)
	}
	out := make([]float32, len(b)/width)
	for i := range out {
		out[i] = get(b[i*width:])
	}
	return out, nil
}

// toBF16 rounds to nearest even; a NaN stays a NaN.
func toBF16(x float32) uint16 {
	b := math.Float32bits(x)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// ToF16 is a number's bits in float16: it rounds to nearest even; beyond 65504 (and its rounding) is infinity.
func ToF16(x float32) uint16 {
	b := math.Float32bits(x)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00
	case b >= 0x477ff000: // rounds to 65536 or more
		return sign | 0x7c00
	case b >= 0x38800000: // normal
		b += 0xfff + b>>13&1
		return sign | uint16((b-0x38000000)>>13)
	}
	// Subnormal: adding 0.5 puts the value's bits at the bottom of the
	// significand, rounded by the addition.
	f := math.Float32frombits(b) + 0.5
	return sign | uint16(math.Float32bits(f)-0x3f000000)
}

func fromF16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp, frac := uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exp {
	case 0:
		f := float32(frac) / (1 << 24)
		return math.Float32frombits(sign | math.Float32bits(f))
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}
