package quant

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/starling-fl/starling/internal/leaf/l2"
)

const (
	clipMargin = 1 - 0x1p-20 // vectors are clipped to this share of the norm
	maxShrinks = 64          // attempts after the redraw, each 0.99 times shorter
	shrink     = 0.99
)

// Report describes how Encode changed a vector. It depends on the device's data and must stay on
// the device.
type Report struct {
	Norm    float64 // L2 norm of the input
	Draws   int     // roundings drawn: 1 normally
	Scale   float64 // product of clipping, weight and shrinking applied, 1 if none
	Norm2   int64   // sum of the squared symbols, <= B2
	Dropped bool    // no attempt met the bound: the vector is all zeros
}

// scratch is the working memory of one call, pooled by the lattice.
type scratch struct {
	y, tmp []float32
	rnd    []byte
}

func newScratch(size int) *scratch {
	return &scratch{y: make([]float32, size), tmp: make([]float32, size), rnd: make([]byte, 4*chunk)}
}

// chunk is the number of values rounded per refill of the random buffer.
const chunk = 4096

// Encode returns the D symbols of x, which has length Dim. It clips x to the
// clip norm, rotates it, and rounds each coordinate to one of its two
// neighbouring symbols so that the expectation is the coordinate. The sum of
// the squared symbols is at most B2, always. x is not changed.
//
// rnd is the secret randomness, crypto/rand.Reader outside tests: 16 bytes of
// it key an AES-128 counter stream, 32 bits of which round a coordinate.
//
// Unbiasedness: for a coordinate v in grid units, |v| <= Q, between symbols a
// distance w apart, |E[symbol] - v| <= w * 2^-23. (Coordinates beyond Q, and
// vectors that are redrawn or shrunk, are biased by design; DecodeMean makes
// up for the first on average.)
//
// Errors wrap ErrLength or ErrNotFinite, or are rnd's.
func (l *Lattice) Encode(x []float32, rnd io.Reader) ([]int32, error) {
	out := make([]int32, l.D())
	if _, err := l.EncodeInto(out, x, rnd); err != nil {
		return nil, err
	}
	return out, nil
}

// EncodeInto is Encode into dst, which has length D, without allocating.
func (l *Lattice) EncodeInto(dst []int32, x []float32, rnd io.Reader) (Report, error) {
	return l.EncodeWeighted(dst, x, 1, rnd)
}

// EncodeWeighted is EncodeInto of the clipped vector times a weight, in (0, 1].
func (l *Lattice) EncodeWeighted(dst []int32, x []float32, weight float64, rnd io.Reader) (Report, error) {
	if !(weight > 0 && weight <= 1) {
		return Report{}, fmt.Errorf("quant: weight is %v, want within (0, 1]", weight)
	}
	if len(x) != l.d {
		return Report{}, fmt.Errorf("%w: vector of %d values, lattice is for %d", ErrLength, len(x), l.d)
	}
	if len(dst) != l.D() {
		return Report{}, fmt.Errorf("%w: room for %d symbols, need %d", ErrLength, len(dst), l.D())
	}
	norm, err := norm(x)
	if err != nil {
		return Report{}, err
	}
	stream, err := newStream(rnd)
	if err != nil {
		return Report{}, err
	}
	rep := Report{Norm: norm, Scale: 1}
	if limit := l.clip * clipMargin; norm > limit {
		rep.Scale = limit / norm
	}
	rep.Scale *= weight
	s := l.scratch.Get().(*scratch)
	defer l.scratch.Put(s)
	unit := load(s.tmp, x, norm)
	l.rot.forward(s.y, s.tmp)

	// Draw, redraw once, then shrink by 0.99 and draw again, up to 64 times.
	for attempt := 0; attempt <= 1+maxShrinks; attempt++ {
		if attempt > 1 {
			rep.Scale *= shrink
		}
		rep.Draws++
		rep.Norm2 = l.round(dst, s, float32(rep.Scale*unit/(float64(l.rot.r)*l.delta)), stream)
		if rep.Norm2 <= l.b2 {
			return rep, nil
		}
	}
	clear(dst)
	rep.Norm2, rep.Scale, rep.Dropped = 0, 0, true
	return rep, nil
}

// load copies x to dst, filled up with zeros, and returns what one unit there
// is worth: 1, or a power of two near the norm if that is so large or small
// that the rotation could leave the range of float32.
func load(dst, x []float32, norm float64) (unit float64) {
	clear(dst[len(x):])
	if norm == 0 || norm > 0x1p-80 && norm < 0x1p80 {
		copy(dst, x)
		return 1
	}
	_, exp := math.Frexp(norm)
	unit = math.Ldexp(1, exp)
	for i, v := range x {
		dst[i] = float32(float64(v) / unit)
	}
	return unit
}

// round rounds s.y*scale onto the lattice and returns the sum of squares.
func (l *Lattice) round(dst []int32, s *scratch, scale float32, stream cipher.Stream) int64 {
	var norm2 int64
	for i := 0; i < len(dst); i += chunk {
		n := min(chunk, len(dst)-i)
		random := s.rnd[:4*n]
		clear(random)
		stream.XORKeyStream(random, random)
		if l.cells == nil {
			norm2 += roundUniform(dst[i:i+n], s.y[i:i+n], random, scale, l.scheme.spec.q)
		} else {
			norm2 += roundCells(dst[i:i+n], s.y[i:i+n], random, scale, l.scheme.spec.q, l.cells)
		}
	}
	return norm2
}

// uniform maps 32 random bits to the middle of one of 2^23 equal parts of (0, 1).
// The result is exact in float32.
func uniform(u uint32) float32 {
	return math.Float32frombits(0x3f800000|u>>9) - (1 - 0x1p-24)
}

// roundUniform rounds to every integer in -q..q. The value between the
// neighbours decides: the upper one is taken if the uniform number is below
// the distance from the lower one. random has four bytes a value.
func roundUniform(dst []int32, y []float32, random []byte, scale float32, q int32) (norm2 int64) {
	limit := float32(q)
	for i, v := range y {
		v = min(max(v*scale, -limit), limit)
		lo := float32(math.Floor(float64(v)))
		s := int32(lo)
		if uniform(binary.LittleEndian.Uint32(random[4*i:])) < v-lo {
			s++
		}
		dst[i] = s
		norm2 += int64(s) * int64(s)
	}
	return norm2
}

// roundCells rounds to the symbols behind cells, see cellsOf.
func roundCells(dst []int32, y []float32, random []byte, scale float32, q int32, cells []int32) (norm2 int64) {
	limit := float32(q)
	for i, v := range y {
		v = min(max(v*scale, -limit), limit)
		c := cells[int32(math.Floor(float64(v)))+q]
		s, width := int32(int16(c)), c>>16
		if uniform(binary.LittleEndian.Uint32(random[4*i:]))*float32(width) < v-float32(s) {
			s += width
		}
		dst[i] = s
		norm2 += int64(s) * int64(s)
	}
	return norm2
}

// norm returns the L2 norm of x, accumulated in float64 where squares of
// float32 neither overflow nor vanish.
func norm(x []float32) (float64, error) {
	n := l2.Norm(x)
	if n-n != 0 {
		return 0, checkFinite(x)
	}
	return n, nil
}

// newStream starts the secret generator: AES-128 in counter mode from a zero
// block under a key of 16 bytes read from rnd, used for one vector only.
func newStream(rnd io.Reader) (cipher.Stream, error) {
	var key [16]byte
	if _, err := io.ReadFull(rnd, key[:]); err != nil {
		return nil, fmt.Errorf("quant: read the rounding key: %w", err)
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, fmt.Errorf("quant: rounding key: %w", err)
	}
	var zero [aes.BlockSize]byte
	return cipher.NewCTR(block, zero[:]), nil
}
