package quant

import "math"

// nf4Levels is the codebook of 4-bit NormalFloat as bitsandbytes has it.
var nf4Levels = [16]float32{
	-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
	-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
	0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
	0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
}

// nf4Zero is the code of 0, which also pads an odd number of codes.
const nf4Zero = 7

// nf4Bounds are the midpoints between neighbouring levels; a scaled value on a
// midpoint takes the lower code.
var nf4Bounds = func() (b [15]float32) {
	for i := range b {
		b[i] = float32((float64(nf4Levels[i]) + float64(nf4Levels[i+1])) / 2)
	}
	return b
}()

// nf4Cell finds a code with one comparison: [-1, 1] is cut into 257 cells, so
// narrow that none holds two midpoints. Cells are assigned by a monotone
// function, so midpoints of lower cells lie below and of higher cells above.
type nf4Cell struct {
	bound float32 // the midpoint in this cell, +Inf if there is none
	code  uint32  // the code up to and including it
}

var nf4Cells = func() (cells [257]nf4Cell) {
	k := 0
	for i := range cells {
		cells[i] = nf4Cell{bound: float32(math.Inf(1)), code: uint32(k)}
		if k < len(nf4Bounds) && int(nf4CellOf(nf4Bounds[k])) == i {
			cells[i].bound = nf4Bounds[k]
			k++
		}
	}
	return cells
}()

func nf4CellOf(scaled float32) int32 { return int32(float32(scaled*128) + 128) }

// nf4Code returns the code of a value scaled to [-1, 1]; rounding may have
// left it one unit in the last place outside.
func nf4Code(scaled float32) byte {
	c := &nf4Cells[nf4CellOf(scaled)]
	// The sign bit of the difference is the comparison, without a branch.
	return byte(c.code + math.Float32bits(c.bound-scaled)>>31)
}

// nf4Encode packs x, two codes a byte with the first in the high half, into
// codes, and the largest magnitude of each block of 64 into scales. It returns
// an error that wraps ErrNotFinite if x holds a value that is not finite.
func nf4Encode(codes []byte, scales, x []float32) error {
	for len(x) > 0 {
		done := nf4EncodeFast(codes, scales, x)
		x, codes, scales = x[done*blockLen:], codes[done*blockLen/2:], scales[done:]
		if len(x) == 0 {
			break
		}
		// What stopped the fast path is one block; without one, all blocks are left.
		n := min(blockLen, len(x))
		if !useAVX2 {
			n = len(x)
		}
		if !nf4EncodeGeneric(codes[:(n+1)/2], scales, x[:n]) {
			return checkFinite(x)
		}
		x, codes, scales = x[n:], codes[(n+1)/2:], scales[blocks(n):]
	}
	return nil
}

// nf4EncodeGeneric is the plain twin. It returns false at a block that holds a
// value that is not finite.
func nf4EncodeGeneric(codes []byte, scales, x []float32) bool {
	for b := 0; len(x) > 0; b++ {
		n := min(blockLen, len(x))
		amax := absMax(x[:n])
		scales[b] = amax
		if amax-amax != 0 {
			return false
		}
		nf4EncodeBlock(codes[:(n+1)/2], x[:n], amax)
		x, codes = x[n:], codes[(n+1)/2:]
	}
	return true
}

// nf4EncodeBlock packs a block with a given scale. As bitsandbytes does, it
// multiplies by the reciprocal; only where that overflows does it divide.
func nf4EncodeBlock(codes []byte, x []float32, amax float32) {
	inv := 1 / amax
	if amax == 0 || math.IsInf(float64(inv), 0) {
		nf4EncodeTiny(codes, x, amax)
		return
	}
	n := len(x) / 2
	for i := range codes[:n] {
		hi := nf4Code(x[2*i] * inv)
		lo := nf4Code(x[2*i+1] * inv)
		codes[i] = hi<<4 | lo
	}
	if len(x)&1 == 1 {
		codes[n] = nf4Code(x[2*n]*inv)<<4 | nf4Zero
	}
}

// nf4EncodeTiny is for blocks that are all zeros or so small (below 2^-128)
// that the reciprocal of the scale is not a float32.
func nf4EncodeTiny(codes []byte, x []float32, amax float32) {
	clear(codes)
	for i := range 2 * len(codes) {
		code := byte(nf4Zero)
		if i < len(x) && amax != 0 {
			code = nf4Code(float32(float64(x[i]) / float64(amax)))
		}
		codes[i/2] |= code << (4 * (1 - i&1))
	}
}

// nf4Decode fills dst from packed codes and one scale per block.
func nf4Decode(dst []float32, codes []byte, scales []float32) {
	done := nf4DecodeFast(dst, codes, scales)
	nf4DecodeGeneric(dst[done*blockLen:], codes[done*blockLen/2:], scales[done:])
}

func nf4DecodeGeneric(dst []float32, codes []byte, scales []float32) {
	for b := 0; len(dst) > 0; b++ {
		n := min(blockLen, len(dst))
		var table [16]float32
		for i, v := range nf4Levels {
			table[i] = v * scales[b]
		}
		for i := 0; i+1 < n; i += 2 {
			c := codes[i/2]
			dst[i], dst[i+1] = table[c>>4], table[c&15]
		}
		if n&1 == 1 {
			dst[n-1] = table[codes[n/2]>>4]
		}
		dst, codes = dst[n:], codes[(n+1)/2:]
	}
}
