package ir

import "math"

// Neutral returns the bits of the neutral element of a reduction: what a reduction over nothing gives.
func Neutral(op Op, d DType) uint64 {
	switch op {
	case ReduceProd:
		switch d {
		case F32:
			return uint64(math.Float32bits(1))
		}
		return 1
	case ReduceAnd:
		if d == Bool {
			return 1
		}
		return math.MaxUint64
	case ReduceMax:
		switch d {
		case F32:
			return uint64(math.Float32bits(float32(math.Inf(-1))))
		case I32:
			return 1 << 31
		}
		return 1 << 63
	case ReduceMin:
		switch d {
		case F32:
			return uint64(math.Float32bits(float32(math.Inf(1))))
		case I32:
			return math.MaxInt32
		}
		return math.MaxInt64
	}
	return 0
}
