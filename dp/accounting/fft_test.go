package accounting

import (
	"math"
	"math/big"
	"math/bits"
	"testing"
)

// testInput is a decaying positive sequence.
func testInput(n int) []float64 {
	a := make([]float64, n)
	for i := range a {
		a[i] = math.Exp(-float64((i*37)%n)/7) + 1e-9*float64(i%3)
	}
	return a
}

// The transform against its definition, inside the error bound that the accountant
// assumes; and back.
func TestFFTIsTheDefinition(t *testing.T) {
	for _, n := range []int{1, 2, 4, 8, 64, 1024} {
		in := testInput(n)
		a := make([]complex128, n)
		norm := 0.0
		for i, x := range in {
			a[i] = complex(x, 0)
			norm += x
		}
		fft(a)
		for i := range a {
			phi := float64(bits.Reverse64(uint64(i))>>11) * 0x1p-53
			want := complex(0, 0)
			for k, x := range in {
				s, c := math.Sincos(2 * math.Pi * math.Mod(phi*float64(k), 1))
				want += complex(x*c, x*s)
			}
			if d := a[i] - want; math.Hypot(real(d), imag(d)) > (float64(log2(n))*fftUnit+1e-15)*norm {
				t.Fatalf("n=%d: X[%d] = %v, want %v", n, i, a[i], want)
			}
			if j := conjugateAt(i); math.Hypot(real(a[j])-real(want), imag(a[j])+imag(want)) > 1e-13*norm {
				t.Fatalf("n=%d: %d is not the conjugate of %d", n, j, i)
			}
		}
		ifft(a)
		for i, x := range in {
			if math.Abs(real(a[i])-x) > 1e-13*norm || math.Abs(imag(a[i])) > 1e-13*norm {
				t.Fatalf("n=%d: back at %d: %v, want %v", n, i, a[i], x)
			}
		}
	}
}

func (x double) big() *big.Float {
	f := new(big.Float).SetPrec(200).SetFloat64(x.hi)
	return f.Add(f, big.NewFloat(x.lo))
}

// Twiddles in double arithmetic lie on the unit circle and square to each
// other, to 1e-29.
func TestDoubleTwiddles(t *testing.T) {
	const n = 1 << 12
	w := doubleTwiddleTable(n)
	f := twiddleTable(n)
	for i, x := range w {
		if math.Abs(x.re.hi-real(f[i])) > 1e-15 || math.Abs(x.im.hi-imag(f[i])) > 1e-15 {
			t.Fatalf("%d: %v, float64 %v", i, x, f[i])
		}
		re, im := x.re.big(), x.im.big()
		one := new(big.Float).SetPrec(200)
		one.Add(new(big.Float).SetPrec(200).Mul(re, re), new(big.Float).SetPrec(200).Mul(im, im))
		if d, _ := one.Sub(one, big.NewFloat(1)).Float64(); math.Abs(d) > 1e-29 {
			t.Fatalf("%d: off the unit circle by %v", i, d)
		}
		// phi(2i) = phi(i)/2: the square of w[2i] is w[i].
		if 2*i < n {
			y := w[2*i].mul(w[2*i])
			dr, _ := new(big.Float).SetPrec(200).Sub(y.re.big(), re).Float64()
			di, _ := new(big.Float).SetPrec(200).Sub(y.im.big(), im).Float64()
			if math.Abs(dr)+math.Abs(di) > 1e-29 {
				t.Fatalf("%d: the square of its half is off by %v %v", i, dr, di)
			}
		}
	}
}

func TestDoubleFFTAgreesWithFFT(t *testing.T) {
	const n = 4096
	in := testInput(n)
	a, d := make([]complex128, n), make([]doubleComplex, n)
	norm := 0.0
	for i, x := range in {
		a[i], d[i].re.hi = complex(x, 0), x
		norm += x
	}
	fft(a)
	doubleFFT(d)
	for i := range a {
		if math.Abs(real(a[i])-d[i].re.hi)+math.Abs(imag(a[i])-d[i].im.hi) > float64(log2(n))*fftUnit*norm {
			t.Fatalf("%d: %v and %v", i, a[i], d[i])
		}
	}
	// Parseval in double arithmetic: sum |X|^2 = n * sum |x|^2.
	sum, want := new(big.Float).SetPrec(300), new(big.Float).SetPrec(300)
	for i := range d {
		for _, y := range []double{d[i].re, d[i].im} {
			b := y.big()
			sum.Add(sum, new(big.Float).SetPrec(300).Mul(b, b))
		}
		b := big.NewFloat(in[i])
		want.Add(want, new(big.Float).SetPrec(300).Mul(b, b))
	}
	want.Mul(want, big.NewFloat(n))
	if r, _ := new(big.Float).Quo(sum.Sub(sum, want), want).Float64(); math.Abs(r) > 1e-27 {
		t.Errorf("Parseval is off by %v", r)
	}
}

func TestPhaseOf(t *testing.T) {
	const n = 256
	for i := range n {
		phi := float64(bits.Reverse64(uint64(i))>>11) * 0x1p-53
		for _, k := range []int64{0, 1, 255, -3, 1 << 40, -(1 << 40) - 77} {
			want := 2 * math.Pi * math.Mod(phi*float64(((k%n)+n)%n), 1)
			if got := phaseOf(i, n, k); math.Abs(math.Remainder(got-want, 2*math.Pi)) > 1e-12 || math.Abs(got) > math.Pi {
				t.Fatalf("%d, %d: %v, want %v", i, k, got, want)
			}
		}
	}
}
