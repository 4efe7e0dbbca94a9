package quant

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

const (
	minBlock = 64
	maxBlock = 4096
	maxRows  = 1<<14 - 8 // the rest of a masked vector's 2^26 symbols is for the count and the figures of evaluation

	// MaxDimension bounds the length of a vector that a lattice takes: 67,076,096 values.
	MaxDimension = maxBlock * maxRows

	// signsInfo is the HKDF info string of the key that the rotation's signs
	// are drawn with.
	signsInfo = "starling/quant/1 rotation signs"
)

// blockShape returns the block length R and the number of rows m of the
// rotation of d values, D = m*R >= d. R is the largest power of two in
// 64..4096 whose padding D-d is at most 0.5% of d; if there is none, the one
// that pads least, and of equals the largest. Always m <= maxRows.
func blockShape(d int) (r, m int) {
	bestR, bestPad := 0, 0
	for r := maxBlock; r >= minBlock; r /= 2 {
		m := (d + r - 1) / r
		if m > maxRows {
			break
		}
		pad := m*r - d
		if pad*200 <= d {
			return r, m
		}
		if bestR == 0 || pad < bestPad {
			bestR, bestPad = r, pad
		}
	}
	return bestR, (d + bestR - 1) / bestR
}

// rotation is the orthonormal two-pass block transform
//
//	x (m rows of R) -> signs s1 -> Hadamard on each row -> interleave
//	y[c*m+r] = X[r][c] -> signs s2 -> Hadamard on each consecutive R of y
//
// with each Hadamard divided by sqrt(R). The code leaves out the division: the
// two together are 1/R, an exact power of two, which the caller folds into a
// multiplication it does anyway.
type rotation struct {
	r, m   int
	s1, s2 []uint64 // one bit a value, set means negate; bit i%64 of word i/64
	plus   []uint64 // no value negated
}

// newRotation derives the signs of a rotation of m rows of r from the public
// round seed: AES-128 in counter mode from a zero block, under the first 16
// bytes of HKDF-SHA256(seed, no salt, info = signsInfo). Bit i of the key
// stream is bit i%8 (least significant first) of byte i/8; s1 is bits
// 0..D-1 and s2 is bits D..2D-1; a set bit negates.
func newRotation(r, m int, seed [32]byte) (*rotation, error) {
	key, err := hkdf.Key(sha256.New, seed[:], nil, signsInfo, 16)
	if err != nil {
		return nil, fmt.Errorf("quant: derive the sign key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("quant: sign key: %w", err)
	}
	stream := make([]byte, 2*r*m/8)
	cipher.NewCTR(block, make([]byte, aes.BlockSize)).XORKeyStream(stream, stream)
	words := make([]uint64, len(stream)/8)
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(stream[8*i:])
	}
	n := len(words) / 2
	return &rotation{r: r, m: m, s1: words[:n], s2: words[n:], plus: make([]uint64, n)}, nil
}

// forward rotates src, times R, into dst. Both have D values; src is used up.
func (t *rotation) forward(dst, src []float32) {
	hadamardRows(src, t.r, t.s1)
	transpose(dst, src, t.m, t.r)
	hadamardRows(dst, t.r, t.s2)
}

// inverse undoes forward, times R: after both, a vector is R*R times itself. A
// Hadamard matrix is its own inverse times R, and signs are their own inverse.
func (t *rotation) inverse(dst, src []float32) {
	hadamardRows(src, t.r, t.plus)
	applySigns(src, t.s2)
	transpose(dst, src, t.r, t.m)
	hadamardRows(dst, t.r, t.plus)
	applySigns(dst, t.s1)
}
