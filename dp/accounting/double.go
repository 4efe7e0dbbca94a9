package accounting

import (
	"math"
	"math/bits"
	"sync"
)

// double is an unevaluated sum hi + lo, |lo| <= ulp(hi)/2: about 32 decimal
// digits (Dekker 1971; the operations are those of Joldes, Muller, Popescu 2017 with
// errors below 10*2^-106 relative).
type double struct{ hi, lo float64 }

func quickSum(a, b float64) double {
	s := a + b
	return double{s, b - (s - a)}
}

func (x double) add(y double) double {
	s := x.hi + y.hi
	v := s - x.hi
	e := (x.hi - (s - v)) + (y.hi - v)
	t := x.lo + y.lo
	w := t - x.lo
	f := (x.lo - (t - w)) + (y.lo - w)
	r := quickSum(s, e+t)
	return quickSum(r.hi, r.lo+f)
}

// near is add to an absolute error below 4*2^-106*(|x|+|y|), at half the cost: where
// x and y cancel the sum has no relative accuracy, which a transform's error bound,
// relative to the 1-norm of what went in, does not ask for.
func (x double) near(y double) double {
	s := x.hi + y.hi
	v := s - x.hi
	return quickSum(s, (x.hi-(s-v))+(y.hi-v)+(x.lo+y.lo))
}

func (x double) neg() double { return double{-x.hi, -x.lo} }

func (x double) mul(y double) double {
	p := x.hi * y.hi
	e := math.FMA(x.hi, y.hi, -p)
	e += math.FMA(x.hi, y.lo, x.lo*y.hi)
	return quickSum(p, e)
}

// doubleComplex is a complex number of doubles.
type doubleComplex struct{ re, im double }

func (x doubleComplex) mul(y doubleComplex) doubleComplex {
	return doubleComplex{
		x.re.mul(y.re).near(x.im.mul(y.im).neg()),
		x.re.mul(y.im).near(x.im.mul(y.re)),
	}
}

// doubleUnit bounds the error of a butterfly in double arithmetic as fftUnit
// does in float64, generously.
const doubleUnit = 0x1p-98

// doubleTwiddles is twiddleTable in double arithmetic.
var doubleTwiddles struct {
	mu sync.Mutex
	w  []doubleComplex // owned by mu; entries never change once there
}

// doubleTwiddleTable builds exp(i*pi*phi(i)) by products of the roots of unity of
// the bits of i; those come from the half-angle formulas.
func doubleTwiddleTable(n int) []doubleComplex {
	doubleTwiddles.mu.Lock()
	defer doubleTwiddles.mu.Unlock()
	if len(doubleTwiddles.w) >= n {
		return doubleTwiddles.w[:n]
	}
	w := make([]doubleComplex, n)
	w[0] = doubleComplex{re: double{1, 0}}
	root := doubleComplex{im: double{1, 0}} // exp(i*pi/2) for bit 0
	for b := 1; b < n; b *= 2 {
		for i := range b {
			w[b+i] = w[i].mul(root)
		}
		// cos(t/2) = sqrt((1+cos t)/2), sin(t/2) = sin t/(2 cos(t/2))
		c := root.re.add(double{1, 0})
		c = double{c.hi / 2, c.lo / 2}.sqrt()
		s := root.im.div(double{2 * c.hi, 2 * c.lo})
		root = doubleComplex{c, s}
	}
	doubleTwiddles.w = w
	return w
}

func (x double) sqrt() double {
	r := math.Sqrt(x.hi)
	d := x.add(double{r, 0}.mul(double{r, 0}).neg())
	return quickSum(r, d.hi/(2*r))
}

func (x double) div(y double) double {
	q := x.hi / y.hi
	r := x.add(y.mul(double{q, 0}).neg())
	return quickSum(q, (r.hi+r.lo)/y.hi)
}

// doubleFFT is fft in double arithmetic.
func doubleFFT(a []doubleComplex) {
	n := len(a)
	if n < 2 {
		return
	}
	w := doubleTwiddleTable(n / 2)
	for half, blocks := n/2, 1; half >= 1; half, blocks = half/2, blocks*2 {
		for b := range blocks {
			t := w[b]
			lo := a[2*half*b:][:half]
			hi := a[2*half*b+half:][:half]
			for j, u := range lo {
				v := hi[j].mul(t)
				lo[j] = doubleComplex{u.re.near(v.re), u.im.near(v.im)}
				hi[j] = doubleComplex{u.re.near(v.re.neg()), u.im.near(v.im.neg())}
			}
		}
	}
}

// phaseOf is 2*pi*phi(i)*k for a transform of size n, a power of two, reduced to (-pi, pi] in
// integers, so that small angles keep their relative accuracy.
func phaseOf(i, n int, k int64) float64 {
	rev := bits.Reverse64(uint64(i)) >> (65 - bits.Len(uint(n)))
	k %= int64(n)
	if k < 0 {
		k += int64(n)
	}
	r := int64((rev * uint64(k)) & uint64(n-1))
	if 2*r > int64(n) {
		r -= int64(n)
	}
	return 2 * math.Pi * float64(r) / float64(n)
}
