package accounting

import (
	"math"
	"math/bits"
	"sync"
)

// fftUnit bounds the rounding error of one butterfly relative to what went in:
// a complex product by a twiddle (sqrt(5)*u), the twiddle's own error (u) and
// the sum (u), below 6u. An output of a transform of size n is a sum over n
// paths of log2(n) butterflies, hence off by at most log2(n)*fftUnit times the
// 1-norm of the input.
const fftUnit = 8 * 0x1p-53

// twiddles[i] = exp(i*pi*phi(i)), phi the bit-reversal (van der Corput)
// sequence. The table for a size is a prefix of that for every larger one.
var twiddles struct {
	mu sync.RWMutex
	w  []complex128 // owned by mu; entries never change once there
}

func twiddleTable(n int) []complex128 {
	twiddles.mu.RLock()
	w := twiddles.w
	twiddles.mu.RUnlock()
	if len(w) >= n {
		return w[:n]
	}
	twiddles.mu.Lock()
	defer twiddles.mu.Unlock()
	if len(twiddles.w) < n {
		w = make([]complex128, n)
		for i := range w {
			phi := float64(bits.Reverse64(uint64(i))>>11) * 0x1p-53 // exact for i < 2^53
			s, c := math.Sincos(math.Pi * phi)
			w[i] = complex(c, s)
		}
		twiddles.w = w
	}
	return twiddles.w[:n]
}

// fft replaces a, of a power of two length, by X[i] = sum over k of
// a[k]*exp(2*pi*i*phi(i)*k): the discrete Fourier transform in bit-reversed order.
func fft(a []complex128) {
	n := len(a)
	if n < 2 {
		return
	}
	w := twiddleTable(n / 2)
	for half, blocks := n/2, 1; half >= 1; half, blocks = half/2, blocks*2 {
		for b := range blocks {
			t := w[b]
			lo := a[2*half*b:][:half]
			hi := a[2*half*b+half:][:half]
			for j, u := range lo {
				v := hi[j]
				v = complex(real(v)*real(t)-imag(v)*imag(t), real(v)*imag(t)+imag(v)*real(t))
				lo[j], hi[j] = u+v, u-v
			}
		}
	}
}

// ifft undoes fft, the factor 1/n included.
func ifft(a []complex128) {
	n := len(a)
	if n < 2 {
		return
	}
	w := twiddleTable(n / 2)
	for half, blocks := 1, n/2; half < n; half, blocks = half*2, blocks/2 {
		for b := range blocks {
			t := w[b]
			lo := a[2*half*b:][:half]
			hi := a[2*half*b+half:][:half]
			for j, u := range lo {
				v := hi[j]
				d := u - v
				lo[j] = u + v
				hi[j] = complex(real(d)*real(t)+imag(d)*imag(t), imag(d)*real(t)-real(d)*imag(t))
			}
		}
	}
	scale := complex(1/float64(n), 0)
	for i := range a {
		a[i] *= scale
	}
}

// conjugateAt is the position of frequency -f in bit-reversed order, where i
// is the position of f.
func conjugateAt(i int) int {
	if i == 0 {
		return 0
	}
	top := 1 << (bits.Len(uint(i)) - 1)
	return 3*top - 1 - i
}
