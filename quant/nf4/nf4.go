// Package nf4 encodes 4-bit NormalFloat (QLoRA, Dettmers et al. 2023, section 3 and
// appendix E) in the layout of bitsandbytes: the flattened values are cut into
// blocks; a block's scale is its largest magnitude; a value is stored as the
// code of the level nearest to value/scale, the lower one of equals; the first
// value of a byte is in its high nibble, and an odd end is padded with Zero.
//
//	codes, scales := make([]byte, nf4.CodesLen(len(x))), make([]float32, nf4.Blocks(len(x), 64))
//	err := nf4.Encode(codes, scales, x, 64)
//	...
//	nf4.Decode(x, codes, scales, 64)
//
// Bases on disk (package model), frozen weights in a program's memory (package
// wasm) and vectors on the wire (package quant) are stored in it; what stands
// around codes and scales is theirs.
package nf4

import (
	"errors"
	"fmt"
	"math"
)

// Block is the number of values that share a scale on disk and on the wire.
const Block = 64

// Zero is the code of the value 0.
const Zero = 7

// ErrNotFinite reports a NaN or an infinity, which has no code.
var ErrNotFinite = errors.New("not a finite number")

// Levels are the 16 values in code order: a stored value is Levels[code] times
// its block's scale.
var Levels = [16]float32{
	-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
	-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0,
	0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
	0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1,
}

// CodesLen returns the bytes of codes of n values: two a byte.
func CodesLen(n int) int { return (n + 1) / 2 }

// Blocks returns the number of blocks, hence of scales, of n values.
func Blocks(n, block int) int { return (n + block - 1) / block }

// bounds are the midpoints between neighbouring levels; a scaled value on a
// midpoint takes the lower code.
var bounds = func() (b [15]float32) {
	for i := range b {
		b[i] = float32((float64(Levels[i]) + float64(Levels[i+1])) / 2)
	}
	return b
}()

// cell finds a code with one comparison: [-1, 1] is cut into 257 cells, so
// narrow that none holds two midpoints. Cells are assigned by a monotone
// function, so midpoints of lower cells are below and of higher cells above.
type cell struct {
	bound float32 // the midpoint in this cell, +Inf if there is none
	code  uint32  // the code up to and including it
}

var cells = func() (c [257]cell) {
	k := 0
	for i := range c {
		c[i] = cell{bound: float32(math.Inf(1)), code: uint32(k)}
		if k < len(bounds) && int(cellOf(bounds[k])) == i {
			c[i].bound = bounds[k]
			k++
		}
	}
	return c
}()

func cellOf(scaled float32) int32 { return int32(float32(scaled*128) + 128) }

// code returns the code of a value scaled to [-1, 1]; rounding may have left it
// one unit in the last place outside.
func code(scaled float32) byte {
	c := &cells[cellOf(scaled)]
	// The sign bit of the difference is the comparison, without a branch.
	return byte(c.code + math.Float32bits(c.bound-scaled)>>31)
}

// Encode fills codes and scales from x: blocks of block values (positive and
// even), the last of which may be short. The lengths must be CodesLen(len(x))
// and Blocks(len(x), block). A value that is not finite is ErrNotFinite.
func Encode(codes []byte, scales, x []float32, block int) error {
	for at := 0; len(x) > 0; {
		done := 0
		if block == Block {
			done = encodeFast(codes, scales, x)
		}
		at, x, codes, scales = at+done*block, x[done*block:], codes[done*block/2:], scales[done:]
		if len(x) == 0 {
			break
		}
		// What stopped the fast path is one block; without one, all blocks are left.
		n := len(x)
		if fast && block == Block {
			n = min(block, n)
		}
		if bad := encodeGeneric(codes[:CodesLen(n)], scales, x[:n], block); bad >= 0 {
			return fmt.Errorf("nf4: value %d is %g: %w", at+bad, x[bad], ErrNotFinite)
		}
		at, x, codes, scales = at+n, x[n:], codes[CodesLen(n):], scales[Blocks(n, block):]
	}
	return nil
}

// encodeGeneric is the plain twin. It returns the place of the first value that
// is not finite, or -1.
func encodeGeneric(codes []byte, scales, x []float32, block int) int {
	for b, at := 0, 0; at < len(x); b, at = b+1, at+block {
		part := x[at:min(at+block, len(x))]
		top := uint32(0) // magnitudes compare as integers; infinity and NaN come last
		for _, v := range part {
			top = max(top, math.Float32bits(v)&0x7fffffff)
		}
		scales[b] = math.Float32frombits(top)
		if top >= 0x7f800000 {
			for i, v := range part {
				if v-v != 0 {
					return at + i
				}
			}
		}
		encodeBlock(codes[at/2:at/2+CodesLen(len(part))], part, scales[b])
	}
	return -1
}

// encodeBlock packs a block with a given scale. As bitsandbytes does, it
// multiplies by the reciprocal; only where that overflows does it divide.
func encodeBlock(codes []byte, x []float32, scale float32) {
	inv := 1 / scale
	if scale == 0 || math.IsInf(float64(inv), 0) {
		encodeTiny(codes, x, scale)
		return
	}
	n := len(x) / 2
	for i := range codes[:n] {
		hi := code(x[2*i] * inv)
		lo := code(x[2*i+1] * inv)
		codes[i] = hi<<4 | lo
	}
	if len(x)&1 == 1 {
		codes[n] = code(x[2*n]*inv)<<4 | Zero
	}
}

// encodeTiny is for blocks that are all zeros or so small (below 2^-128) that
// the reciprocal of the scale is not a float32.
func encodeTiny(codes []byte, x []float32, scale float32) {
	clear(codes)
	for i := range 2 * len(codes) {
		c := byte(Zero)
		if i < len(x) && scale != 0 {
			c = code(float32(float64(x[i]) / float64(scale)))
		}
		codes[i/2] |= c << (4 * (1 - i&1))
	}
}

// Decode fills dst from codes and scales in blocks of block values: what Encode
// stored, up to rounding. The lengths must be those of Encode.
func Decode(dst []float32, codes []byte, scales []float32, block int) {
	DecodeLevels(dst, codes, scales, block, &Levels)
}

// DecodeLevels is Decode with levels of the file's own; block may be odd.
func DecodeLevels(dst []float32, codes []byte, scales []float32, block int, levels *[16]float32) {
	done := 0
	if block == Block {
		done = decodeFast(dst, codes, scales, levels)
	}
	decodeGeneric(dst[done*block:], codes[done*block/2:], scales[done:], block, levels)
}

func decodeGeneric(dst []float32, codes []byte, scales []float32, block int, levels *[16]float32) {
	for b, at := 0, 0; at < len(dst); b, at = b+1, at+block {
		var table [16]float32
		for i, v := range levels {
			table[i] = v * scales[b]
		}
		i, end := at, min(at+block, len(dst))
		if i&1 == 1 { // only after an odd block
			dst[i] = table[codes[i/2]&15]
			i++
		}
		for ; i+1 < end; i += 2 {
			c := codes[i/2]
			dst[i], dst[i+1] = table[c>>4], table[c&15]
		}
		if i < end {
			dst[i] = table[codes[i/2]>>4]
		}
	}
}
