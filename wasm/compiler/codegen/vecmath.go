package codegen

import (
	"math"

	"github.com/starling-fl/starling/wasm/compiler/emit"
)

// Elementary functions in lanes. The polynomials are those of Cephes (S. Moshier; expf, logf) and of Eigen (ptanh,
// perf). Largest errors, over all finite arguments unless stated, are held by TestVectorMath:
//
//	exp       1 ulp; overflows to +Inf above 88.73, denormal results are right to one unit of theirs
//	log       1 ulp; log(0) = -Inf, negative arguments give NaN
//	tanh      6 ulp
//	erf       7 ulp
//	logistic  2.2 ulp where the result is normal

// poly leaves c[0]*t^n + c[1]*t^(n-1) + ... + c[n] on the stack.
func (k *kernel) poly(t emit.Local, c ...float32) {
	f := k.f
	k.constF(c[0])
	for _, ci := range c[1:] {
		f.Get(t)
		f.SIMD(emit.F32x4Mul)
		k.constF(ci)
		f.SIMD(emit.F32x4Add)
	}
}

// exp leaves exp(x) on the stack.
func (k *kernel) exp(x emit.Local) {
	f := k.f
	t, n, r := f.New(emit.V128), f.New(emit.V128), f.New(emit.V128)
	// Clamp, keeping NaN: pmin(a, b) is b < a ? b : a.
	f.Get(x)
	k.constF(89)
	f.SIMD(emit.F32x4Pmin)
	k.constF(-104)
	f.SIMD(emit.F32x4Pmax)
	f.Tee(t)
	k.constF(1.44269504088896341)
	f.SIMD(emit.F32x4Mul)
	f.SIMD(emit.F32x4Nearest)
	f.Set(n)
	// r = t - n*ln2, in two parts.
	f.Get(t)
	f.Get(n)
	k.constF(0.693359375)
	f.SIMD(emit.F32x4Mul)
	f.SIMD(emit.F32x4Sub)
	f.Get(n)
	k.constF(-2.12194440e-4)
	f.SIMD(emit.F32x4Mul)
	f.SIMD(emit.F32x4Sub)
	f.Set(r)
	// exp(r) = 1 + r + r^2 * p(r)
	k.poly(r, 1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
	f.Get(r)
	f.Get(r)
	f.SIMD(emit.F32x4Mul)
	f.SIMD(emit.F32x4Mul)
	f.Get(r)
	f.SIMD(emit.F32x4Add)
	k.constF(1)
	f.SIMD(emit.F32x4Add)
	// From -104 down the result is 0. It is made here: multiplications that underflow take processors a hundred times as
	// long as others do, and attention computes exp of -10000 for every key of padding.
	f.Get(t)
	k.constF(-104)
	f.SIMD(emit.F32x4Le)
	f.SIMD(emit.V128AndNot)
	// times 2^n as 2^(n/2) * 2^(n - n/2), which reaches denormals and infinity.
	f.Get(n)
	f.SIMD(emit.I32x4TruncSatF32x4S)
	f.Tee(n)
	f.I32(1)
	f.SIMD(emit.I32x4ShrS)
	f.Tee(r)
	k.pow2()
	f.SIMD(emit.F32x4Mul)
	f.Get(n)
	f.Get(r)
	f.SIMD(emit.I32x4Sub)
	k.pow2()
	f.SIMD(emit.F32x4Mul)
	f.Free(t, n, r)
}

// pow2 turns integers n on the stack into the floats 2^n.
func (k *kernel) pow2() {
	k.constV(127)
	k.f.SIMD(emit.I32x4Add)
	k.f.I32(23)
	k.f.SIMD(emit.I32x4Shl)
}

// log leaves log(x) on the stack.
func (k *kernel) log(x emit.Local) {
	f := k.f
	small, y, e, z := f.New(emit.V128), f.New(emit.V128), f.New(emit.V128), f.New(emit.V128)
	// Denormals are scaled by 2^24.
	f.Get(x)
	k.constF(math.Float32frombits(0x00800000))
	f.SIMD(emit.F32x4Lt)
	f.Set(small)
	f.Get(x)
	k.constF(1 << 24)
	f.SIMD(emit.F32x4Mul)
	f.Get(x)
	f.Get(small)
	f.SIMD(emit.V128Bitselect)
	f.Tee(y)
	// e = exponent, y = mantissa in [0.5, 1)
	f.I32(23)
	f.SIMD(emit.I32x4ShrU)
	k.constV(126)
	f.SIMD(emit.I32x4Sub)
	f.SIMD(emit.F32x4ConvertI32x4S)
	f.Get(small)
	k.constF(24)
	f.SIMD(emit.V128And)
	f.SIMD(emit.F32x4Sub)
	f.Set(e)
	f.Get(y)
	k.constV(0x007fffff)
	f.SIMD(emit.V128And)
	k.constV(0x3f000000)
	f.SIMD(emit.V128Or)
	f.Tee(y)
	// Below sqrt(1/2): e--, y doubled; then y -= 1.
	k.constF(0.707106781186547524)
	f.SIMD(emit.F32x4Lt)
	f.Set(z)
	f.Get(e)
	f.Get(z)
	k.constF(1)
	f.SIMD(emit.V128And)
	f.SIMD(emit.F32x4Sub)
	f.Set(e)
	f.Get(y)
	k.constF(1)
	f.SIMD(emit.F32x4Sub)
	f.Get(y)
	f.Get(z)
	f.SIMD(emit.V128And)
	f.SIMD(emit.F32x4Add)
	f.Tee(y)
	f.Get(y)
	f.SIMD(emit.F32x4Mul)
	f.Set(z)
	// y^3 * p(y) - e*c1 ... ; result y - z/2 + e*ln2
	k.poly(y, 7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
		2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)
	f.Get(y)
	f.SIMD(emit.F32x4Mul)
	f.Get(z)
	f.SIMD(emit.F32x4Mul)
	f.Get(e)
	k.constF(-2.12194440e-4)
	f.SIMD(emit.F32x4Mul)
	f.SIMD(emit.F32x4Add)
	f.Get(z)
	k.constF(0.5)
	f.SIMD(emit.F32x4Mul)
	f.SIMD(emit.F32x4Sub)
	f.Get(y)
	f.SIMD(emit.F32x4Add)
	f.Get(e)
	k.constF(0.693359375)
	f.SIMD(emit.F32x4Mul)
	f.SIMD(emit.F32x4Add)
	f.Set(y)
	// 0 -> -Inf; negative or NaN -> NaN; +Inf -> +Inf.
	k.constF(float32(math.Inf(-1)))
	f.Get(y)
	f.Get(x)
	k.constF(0)
	f.SIMD(emit.F32x4Eq)
	f.SIMD(emit.V128Bitselect)
	f.Set(y)
	f.Get(y)
	k.constV(0x7fc00000)
	f.Get(x)
	k.constF(0)
	f.SIMD(emit.F32x4Ge)
	f.SIMD(emit.V128Bitselect)
	f.Set(y)
	f.Get(x)
	f.Get(y)
	f.Get(x)
	k.constF(float32(math.Inf(1)))
	f.SIMD(emit.F32x4Eq)
	f.SIMD(emit.V128Bitselect)
	f.Free(small, y, e, z)
}

// rational leaves x*p(x^2) / q(x^2) on the stack, x clamped to [-bound, bound].
func (k *kernel) rational(x emit.Local, bound float32, p, q []float32) {
	f := k.f
	c, z := f.New(emit.V128), f.New(emit.V128)
	f.Get(x)
	k.constF(bound)
	f.SIMD(emit.F32x4Pmin)
	k.constF(-bound)
	f.SIMD(emit.F32x4Pmax)
	f.Tee(c)
	f.Get(c)
	f.SIMD(emit.F32x4Mul)
	f.Set(z)
	k.poly(z, p...)
	f.Get(c)
	f.SIMD(emit.F32x4Mul)
	k.poly(z, q...)
	f.SIMD(emit.F32x4Div)
	f.Free(c, z)
}

// tanh leaves tanh(x) on the stack.
func (k *kernel) tanh(x emit.Local) {
	k.rational(x, 7.90531110763549805,
		[]float32{-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
			1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03},
		[]float32{1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03})
}

// erf leaves erf(x) on the stack.
func (k *kernel) erf(x emit.Local) {
	k.rational(x, 4,
		[]float32{-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
			-7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02},
		[]float32{-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
			-1.42647390514189e-02})
}
