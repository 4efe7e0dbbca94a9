package dp

import (
	"fmt"
	"io"
	"math"
	"math/big"
	"math/bits"
)

// Noise adds independent discrete Gaussian noise of variance v to every
// element of dst. On an error dst holds nothing of its former content.
type Noise interface {
	AddNoise(dst []int64, v Variance) error
}

// Sampler draws exact discrete Gaussians: P[X = x] is proportional to
// exp(-x^2/(2 sigma^2)) on the integers, with no floating-point number on the
// way (Canonne, Kamath, Steinke 2020, algorithms 1 to 3, on fractions of
// integers). Its running time depends on what it draws: draw ahead with a
// [Pool] where an observer could time a request.
//
// A Sampler is owned by one goroutine.
type Sampler struct {
	src *bitSource
}

// samplerBuffer is the size of one read of randomness. Large reads make the
// system call's cost vanish; a sample uses about 40 bytes.
const samplerBuffer = 64 << 10

// NewSampler returns a sampler over rnd, which must be a cryptographic
// generator (crypto/rand.Reader). It reads rnd in blocks of 64 KiB.
func NewSampler(rnd io.Reader) *Sampler {
	return &Sampler{src: newBitSource(rnd, samplerBuffer)}
}

// Sample fills dst with independent draws of variance v. After an error dst is
// all zero and must not be used as noise.
func (s *Sampler) Sample(dst []int64, v Variance) error {
	g, err := newGaussian(v)
	if err != nil {
		clear(dst)
		return err
	}
	for i := range dst {
		dst[i] = g.draw(s.src)
		if s.src.err != nil {
			clear(dst)
			return s.src.err
		}
	}
	return nil
}

// AddNoise implements [Noise].
func (s *Sampler) AddNoise(dst []int64, v Variance) error {
	g, err := newGaussian(v)
	if err != nil {
		clear(dst)
		return err
	}
	for i := range dst {
		x := g.draw(s.src)
		if s.src.err != nil {
			clear(dst)
			return s.src.err
		}
		if dst[i], err = addChecked(dst[i], x); err != nil {
			clear(dst)
			return fmt.Errorf("dp: coordinate %d: %w", i, err)
		}
	}
	return nil
}

func addChecked(a, b int64) (int64, error) {
	sum := a + b
	if (a > 0 && b > 0 && sum < 0) || (a < 0 && b < 0 && sum >= 0) {
		return 0, fmt.Errorf("sum and noise overflow 64 bits: %w", ErrVariance)
	}
	return sum, nil
}

// gaussian is one variance, prepared. With sigma^2 = n/d and t = floor(sigma)+1,
// a candidate y from the discrete Laplace distribution of scale t is accepted with
// probability exp(-gamma), gamma = (|y|*t*d - n)^2 / (2*n*d*t^2).
type gaussian struct {
	t    uint64
	n, d uint64 // valid where wide is nil
	m    uint64 // 2*n*d*t^2, below 2^63
	wide *wideGaussian
}

// wideGaussian holds the same numbers where they do not fit 64 bits.
type wideGaussian struct {
	n, td, m *big.Int
	mTop     uint64 // the top 62 bits of m
	mShift   uint

	x, q, r, tmp big.Int // scratch of accept
}

func newWide(n, td, m *big.Int) *wideGaussian {
	w := &wideGaussian{n: n, td: td, m: m, mShift: uint(max(0, m.BitLen()-62))}
	w.mTop = new(big.Int).Rsh(m, w.mShift).Uint64()
	return w
}

func newGaussian(v Variance) (*gaussian, error) {
	if err := v.check(); err != nil {
		return nil, err
	}
	n, d := v.num(), v.den()
	t := new(big.Int).Sqrt(new(big.Int).Quo(n, d)) // floor(sqrt(floor(x))) = floor(sqrt(x))
	t.Add(t, big.NewInt(1))
	m := new(big.Int).Mul(n, d)
	m.Mul(m, t).Mul(m, t).Lsh(m, 1)
	g := &gaussian{t: t.Uint64()}
	if m.BitLen() <= 62 {
		g.n, g.d, g.m = n.Uint64(), d.Uint64(), m.Uint64()
		return g, nil
	}
	g.wide = newWide(n, new(big.Int).Mul(t, d), m)
	return g, nil
}

// draw returns one sample. If the source fails it returns 0 soon, with
// src.err set.
func (g *gaussian) draw(src *bitSource) int64 {
	for src.err == nil {
		y := g.laplace(src)
		abs := uint64(y)
		if y < 0 {
			abs = uint64(-y)
		}
		if g.wide != nil {
			if g.wide.accept(src, abs) {
				return y
			}
			continue
		}
		// w = | |y|*t*d - n | ; |y| is below 2^62/t after the check here.
		hi, w := bits.Mul64(abs, g.t*g.d)
		if hi != 0 || w > math.MaxInt64 {
			if src.acceptFar(g, abs) {
				return y
			}
			continue
		}
		if w >= g.n {
			w -= g.n
		} else {
			w = g.n - w
		}
		hi, lo := bits.Mul64(w, w)
		if src.bernoulliExp(hi, lo, g.m) {
			return y
		}
	}
	return 0
}

// laplace draws from the discrete Laplace distribution of scale t (algorithm 2
// with s = 1): P[y] proportional to exp(-|y|/t).
func (g *gaussian) laplace(src *bitSource) int64 {
	for src.err == nil {
		u := src.below(g.t)
		if !src.bernoulliExp1(u, g.t) {
			continue
		}
		var v uint64
		for src.bernoulliExpOne() {
			v++
		}
		neg := src.bit() == 1
		hi, y := bits.Mul64(v, g.t)
		y, carry := bits.Add64(y, u, 0)
		if hi != 0 || carry != 0 || y > math.MaxInt64 {
			// Probability below exp(-2^14) for sigma < 2^48: never seen, and
			// an exact int64 does not exist for it.
			src.err = fmt.Errorf("dp: a sample does not fit 64 bits: %w", ErrVariance)
			return 0
		}
		if neg && y == 0 {
			continue
		}
		if neg {
			return -int64(y)
		}
		return int64(y)
	}
	return 0
}

// bernoulliExp1 is true with probability exp(-a/b), 0 <= a <= b < 2^63
// (algorithm 1, first case). Bernoulli(a/(b*k)) is drawn as the product of
// Bernoulli(1/k) and Bernoulli(a/b).
func (s *bitSource) bernoulliExp1(a, b uint64) bool {
	k := uint64(1)
	for (k == 1 || s.bernoulli(1, k)) && s.bernoulli(a, b) {
		k++
	}
	return k&1 == 1 && s.err == nil
}

// bernoulliExp is true with probability exp(-(hi*2^64+lo)/b), b < 2^63.
func (s *bitSource) bernoulliExp(hi, lo, b uint64) bool {
	if hi >= b { // the quotient is above 2^64; exp of it needs that many coins of exp(-1) to be 1
		return s.bernoulliExpFar()
	}
	q, r := bits.Div64(hi, lo, b)
	for range q {
		if !s.bernoulliExpOne() {
			return false
		}
		if s.err != nil {
			return false
		}
	}
	return s.bernoulliExp1(r, b)
}

// bernoulliExpFar is a coin of probability exp(-g) for g > 2^64: it is decided
// by the first factor exp(-1) that comes out false.
func (s *bitSource) bernoulliExpFar() bool {
	for s.err == nil {
		if !s.bernoulliExpOne() {
			return false
		}
	}
	return false
}

// acceptFar decides an |y|*t*d of 63 bits or more with big integers.
func (s *bitSource) acceptFar(g *gaussian, abs uint64) bool {
	v := Variance{Lo: g.n, Shift: uint8(bits.TrailingZeros64(g.d))}
	td := new(big.Int).Mul(new(big.Int).SetUint64(g.t), v.den())
	return newWide(v.num(), td, new(big.Int).SetUint64(g.m)).accept(s, abs)
}

// accept is a coin of probability exp(-(abs*td - n)^2/m).
func (w *wideGaussian) accept(src *bitSource, abs uint64) bool {
	x, q, r := &w.x, &w.q, &w.r
	x.SetUint64(abs)
	x.Mul(x, w.td).Sub(x, w.n)
	w.tmp.Mul(x, x)
	q.QuoRem(&w.tmp, w.m, r)
	if !q.IsUint64() {
		return src.bernoulliExpFar()
	}
	for range q.Uint64() {
		if !src.bernoulliExpOne() || src.err != nil {
			return false
		}
	}
	k := uint64(1)
	for (k == 1 || src.bernoulli(1, k)) && src.bernoulliScaled(r, w.m, w.mTop, w.mShift, &w.tmp) {
		k++
	}
	return k&1 == 1 && src.err == nil
}
