package quant

import (
	"fmt"
	"math"
	"sync"
)

// Lattice encodes the vectors of one round: a scheme, a dimension, a clip norm
// and the round's public rotation. It is immutable and safe for concurrent use.
type Lattice struct {
	scheme  Scheme
	d       int // length of the vectors
	rot     *rotation
	clip    float64
	delta   float64
	b2      int64
	cells   []int32 // by floor(value)+Q, see cellsOf; nil for uniform schemes
	scratch sync.Pool
}

// NewLattice prepares scheme s for vectors of length d with L2 norm at most
// clip, rotated by the signs of the public round seed. The error wraps
// ErrRange if d is not in 1..MaxDimension, or clip is not a positive number
// whose spacing fits a float32.
func NewLattice(s Scheme, d int, clip float64, seed [32]byte) (*Lattice, error) {
	if !s.valid() {
		return nil, fmt.Errorf("%w: the zero Scheme", ErrUnknown)
	}
	if d < 1 || d > MaxDimension {
		return nil, fmt.Errorf("%w: dimension %d, must be 1..%d", ErrRange, d, MaxDimension)
	}
	if !(clip > 0) || math.IsInf(clip, 0) {
		return nil, fmt.Errorf("%w: clip norm %g, must be positive and finite", ErrRange, clip)
	}
	r, m := blockShape(d)
	size := float64(r * m)
	delta := roundUp24(s.spec.l * clip / (float64(s.spec.q) * math.Sqrt(size)))
	if delta < 0x1p-80 || delta > 0x1p60 {
		return nil, fmt.Errorf("%w: clip norm %g gives a spacing of %g, must be within 2^-80..2^60", ErrRange, clip, delta)
	}
	rot, err := newRotation(r, m, seed)
	if err != nil {
		return nil, err
	}
	l := &Lattice{scheme: s, d: d, rot: rot, clip: clip, delta: delta, b2: normBound(s, r*m)}
	l.cells = cellsOf(s)
	l.scratch.New = func() any { return newScratch(r * m) }
	return l, nil
}

// normBound returns B2 = ceil(1.001*m*D + 5*sd*sqrt(D)). The conversions keep
// a compiler from fusing a product with the sum, which would round differently.
func normBound(s Scheme, size int) int64 {
	mean := float64(float64(1.001*s.spec.m) * float64(size))
	slack := float64(float64(5*s.spec.sd) * math.Sqrt(float64(size)))
	return int64(math.Ceil(mean + slack))
}

// roundUp24 rounds a positive x up to a number with 24 significant bits, which
// float32 and float64 both hold exactly: k * 2^e with 2^23 <= k <= 2^24.
func roundUp24(x float64) float64 {
	frac, exp := math.Frexp(x)
	return math.Ldexp(math.Ceil(math.Ldexp(frac, 24)), exp-24)
}

// cellsOf tabulates, for every integer i in -Q..Q at index i+Q, the pair of
// neighbouring symbols whose interval holds [i, i+1): the lower one in the low
// 16 bits, signed, and the distance to the upper one in the high 16 bits.
func cellsOf(s Scheme) []int32 {
	symbols := s.spec.symbols
	if symbols == nil {
		return nil
	}
	q := s.spec.q
	cells := make([]int32, 2*q+1)
	k := 0
	for i := -q; i <= q; i++ {
		for k+1 < len(symbols) && symbols[k+1] <= i {
			k++
		}
		width := int32(1)
		if k+1 < len(symbols) {
			width = symbols[k+1] - symbols[k]
		}
		cells[i+q] = width<<16 | int32(uint16(symbols[k]))
	}
	return cells
}

// Scheme returns the scheme the lattice was made with.
func (l *Lattice) Scheme() Scheme { return l.scheme }

// Dim returns d, the length of the vectors that go in and come out.
func (l *Lattice) Dim() int { return l.d }

// D returns the number of symbols of an encoded vector: Rows * R.
func (l *Lattice) D() int { return l.rot.r * l.rot.m }

// R returns the block length of the rotation, a power of two in 64..4096.
func (l *Lattice) R() int { return l.rot.r }

// Rows returns m, the number of blocks.
func (l *Lattice) Rows() int { return l.rot.m }

// Clip returns the L2 norm that vectors are clipped to.
func (l *Lattice) Clip() float64 { return l.clip }

// Delta returns the spacing: what one unit of a symbol is worth. It is
// ((L*S) / (Q*sqrt(D))) evaluated in IEEE float64 in that order and rounded up
// to 24 significant bits, hence a dyadic rational that float32 holds.
func (l *Lattice) Delta() float64 { return l.delta }

// B2 returns the bound on the sum of the squared symbols of any vector that
// Encode returns: the squared L2 sensitivity of the sum under add/remove
// adjacency, in squared symbol units.
func (l *Lattice) B2() int64 { return l.b2 }

// MaxSymbol returns Q: every symbol is in -Q..Q.
func (l *Lattice) MaxSymbol() int32 { return l.scheme.spec.q }
