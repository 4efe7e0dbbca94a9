package dp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"math/bits"
)

// ErrEntropy reports that the randomness source failed. Nothing that depends
// on the missing bytes is returned.
var ErrEntropy = errors.New("randomness source failed")

// bitSource hands out uniform bits from a reader in large reads. It uses every
// byte once, in order. After a failure it stays failed.
type bitSource struct {
	r   io.Reader
	buf []byte
	at  int // next unused byte
	err error

	acc  uint32 // single bits not yet handed out
	left uint
}

func newBitSource(r io.Reader, size int) *bitSource {
	b := make([]byte, size)
	return &bitSource{r: r, buf: b, at: size}
}

// fill wipes what was used and reads the buffer anew.
func (s *bitSource) fill() {
	s.at = 0
	if s.err == nil {
		if _, err := io.ReadFull(s.r, s.buf); err != nil {
			s.err = fmt.Errorf("dp: reading %d random bytes: %w: %w", len(s.buf), ErrEntropy, err)
		}
	}
	if s.err != nil {
		clear(s.buf) // callers check err before they use anything
	}
}

func (s *bitSource) uint32() uint32 {
	if s.at+4 > len(s.buf) {
		s.fill()
	}
	v := binary.LittleEndian.Uint32(s.buf[s.at:])
	s.at += 4
	return v
}

func (s *bitSource) uint64() uint64 {
	return uint64(s.uint32())<<32 | uint64(s.uint32())
}

func (s *bitSource) bit() uint32 {
	if s.left == 0 {
		s.acc, s.left = s.uint32(), 32
	}
	b := s.acc & 1
	s.acc >>= 1
	s.left--
	return b
}

// below returns a uniform integer in [0, n), n > 0 (Lemire 2019, exact by rejection).
func (s *bitSource) below(n uint64) uint64 {
	if n <= 1<<32 {
		m := uint64(s.uint32()) * n
		if lo := uint32(m); uint64(lo) < n {
			for thresh := uint32((1<<32 - n) % n); lo < thresh && s.err == nil; {
				m = uint64(s.uint32()) * n
				lo = uint32(m)
			}
		}
		return m >> 32
	}
	hi, lo := bits.Mul64(s.uint64(), n)
	if lo < n {
		for thresh := -n % n; lo < thresh && s.err == nil; {
			hi, lo = bits.Mul64(s.uint64(), n)
		}
	}
	return hi
}

// bernoulli is true with probability exactly a/b, 0 <= a <= b < 2^63. It
// compares a/b with a uniform real of which it draws 32 bits at a time: after
// u, the real is in [u, u+1)*2^-32, and where that interval straddles a/b the
// position of a/b inside it is the fraction (a*2^32 - u*b)/b to go on with.
func (s *bitSource) bernoulli(a, b uint64) bool {
	for s.err == nil {
		hi, lo := bits.Mul64(uint64(s.uint32()), b) // u*b
		ahi, alo := a>>32, a<<32                    // a*2^32
		dlo, borrow := bits.Sub64(alo, lo, 0)
		dhi, borrow := bits.Sub64(ahi, hi, borrow)
		if borrow != 0 || dhi|dlo == 0 {
			return false // a/b <= u*2^-32
		}
		if dhi != 0 || dlo >= b {
			return true // (u+1)*2^-32 <= a/b
		}
		a = dlo
	}
	return false
}

// bernoulliBig is bernoulli for any size of a and b. Neither is changed.
func (s *bitSource) bernoulliBig(a, b *big.Int) bool {
	a = new(big.Int).Set(a)
	u := new(big.Int)
	for s.err == nil {
		u.SetUint64(s.uint64())
		a.Lsh(a, 64)
		a.Sub(a, u.Mul(u, b))
		if a.Sign() <= 0 {
			return false
		}
		if a.Cmp(b) >= 0 {
			return true
		}
	}
	return false
}

// bernoulliScaled is bernoulliBig for the same b again and again: bTop holds the
// top 62 bits of b, b = bTop*2^shift + a rest. One 32-bit draw decides, except with
// probability about 2^-31.
func (s *bitSource) bernoulliScaled(a, b *big.Int, bTop uint64, shift uint, tmp *big.Int) bool {
	aTop := tmp.Rsh(a, shift).Uint64()
	u := uint64(s.uint32())
	// a/b is between aTop/(bTop+1) and (aTop+1)/bTop.
	hi, lo := bits.Mul64(u+1, bTop+1)
	if hi < aTop>>32 || hi == aTop>>32 && lo <= aTop<<32 {
		return s.err == nil
	}
	hi, lo = bits.Mul64(u, bTop)
	if hi > (aTop+1)>>32 || hi == (aTop+1)>>32 && lo >= (aTop+1)<<32 {
		return false
	}
	rest := new(big.Int).Lsh(a, 32)
	rest.Sub(rest, new(big.Int).Mul(b, new(big.Int).SetUint64(u)))
	if rest.Sign() <= 0 {
		return false
	}
	return rest.Cmp(b) >= 0 || s.bernoulliBig(rest, b)
}

// factorials[k] is k!, and inverse[k] the integer part of 2^32/k!.
var factorials, inverse = func() (f, inv [13]uint64) {
	f[0] = 1
	inv[0] = 1 << 32
	for k := 1; k < len(f); k++ {
		f[k] = f[k-1] * uint64(k)
		inv[k] = 1 << 32 / f[k]
	}
	return f, inv
}()

// bernoulliExpOne is true with probability exp(-1). The number K of the first
// failing coin in Bernoulli(1), Bernoulli(1/2), Bernoulli(1/3), ... has
// P[K > k] = 1/k!, so one uniform real gives it: K > k where the real is below 1/k!.
// K is odd with probability exp(-1).
func (s *bitSource) bernoulliExpOne() bool {
	u := uint64(s.uint32())
	if u > inv2 {
		return false // K = 2
	}
	for k := 2; k < len(factorials); k++ {
		if u > inverse[k] {
			return k&1 == 1 && s.err == nil
		}
		if u == inverse[k] {
			// The real is in [u, u+1)*2^-32, and so does 1/k!.
			if below := s.bernoulli(1<<32-u*factorials[k], factorials[k]); below {
				return k&1 == 0 && s.err == nil // K = k+1
			}
			return k&1 == 1 && s.err == nil
		}
	}
	// The real is below 1/12!: go on coin by coin.
	k := uint64(len(factorials))
	for s.bernoulli(1, k) {
		k++
	}
	return k&1 == 1 && s.err == nil
}

const inv2 = 1 << 31
