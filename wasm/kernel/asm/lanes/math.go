package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// The elementary functions, operation by operation those of wasm/compiler/codegen, vecmath.go.

// poly is c[0]*t^n + c[1]*t^(n-1) + ... + c[n], rounded after every operation.
func (u *unit) poly(t VecVirtual, c []float32) VecVirtual {
	p := u.reg()
	VMULPS(u.float(c[0]), t, p)
	for i, ci := range c[1:] {
		VADDPS(u.float(ci), p, p)
		if i+2 < len(c) {
			VMULPS(t, p, p)
		}
	}
	return p
}

// clamp keeps NaN: of NaN and a number the instructions give their second operand, the first here.
func (u *unit) clamp(x VecVirtual, lo, hi float32) VecVirtual {
	r := u.reg()
	VMINPS(x, u.floatRegister(hi), r)
	VMAXPS(r, u.floatRegister(lo), r)
	return r
}

var (
	expConsts = append([]float32{89, -104, log2e, ln2High, ln2Low, 1}, expTerms...)
	expTerms  = []float32{1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
		5.0000001201e-1}
)

const (
	log2e   = 1.44269504088896341
	ln2High = 0.693359375
	ln2Low  = -2.12194440e-4
)

func exp(u *unit, x []VecVirtual) VecVirtual {
	t := u.clamp(x[0], -104, 89)
	n, r, s := u.reg(), u.reg(), u.reg()
	VMULPS(u.float(log2e), t, n)
	n = u.round(0, n)
	VMULPS(u.float(ln2High), n, s)
	VSUBPS(s, t, r)
	VMULPS(u.float(ln2Low), n, s)
	VSUBPS(s, r, r)
	p := u.poly(r, expTerms)
	VMULPS(r, r, s)
	VMULPS(s, p, p)
	VADDPS(r, p, p)
	// From -104 down the result is 0.
	if u.wide() {
		more := K()
		VCMPPS(Imm(notLessEqual), u.float(-104), t, more)
		VADDPS_Z(u.float(1), p, more, p)
	} else {
		VADDPS(u.float(1), p, p)
		VPANDN(p, u.compare(lessEqual, t, u.float(-104)), p)
	}
	// times 2^n as 2^(n/2) * 2^(n - n/2); of a NaN that n was made of any number is one.
	half := u.reg()
	VCVTTPS2DQ(n, n)
	VPSRAD(Imm(1), n, half)
	VPSUBD(half, n, n)
	for _, k := range []VecVirtual{half, n} {
		VPADDD(u.konst(127), k, k)
		VPSLLD(Imm(23), k, k)
		VMULPS(k, p, p)
	}
	return p
}

var logTerms = []float32{7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
	-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1}

func log(u *unit, x []VecVirtual) VecVirtual {
	v := x[0]
	one := u.floatRegister(1)
	// Denormals are scaled by 2^24.
	small := u.compare(less, v, u.konst(0x00800000))
	y, e, z := u.reg(), u.reg(), u.reg()
	VMULPS(u.float(1<<24), v, y)
	y = u.choose(small, y, v)
	// e = exponent, y = mantissa in [0.5, 1)
	VPSRLD(Imm(23), y, e)
	VPSUBD(u.konst(126), e, e)
	VCVTDQ2PS(e, e)
	VSUBPS(u.and(small, u.float(24)), e, e)
	y = u.or(u.and(y, u.konst(0x007fffff)), u.konst(0x3f000000))
	// Below sqrt(1/2): e--, y doubled; then y -= 1.
	below := u.compare(less, y, u.float(0.707106781186547524))
	VSUBPS(u.and(below, one), e, e)
	VSUBPS(one, y, z)
	VADDPS(u.and(y, below), z, y)
	VMULPS(y, y, z)
	p, s := u.poly(y, logTerms), u.reg()
	VMULPS(y, p, p)
	VMULPS(z, p, p)
	VMULPS(u.float(ln2Low), e, s)
	VADDPS(s, p, p)
	VMULPS(u.float(0.5), z, s)
	VSUBPS(s, p, p)
	VADDPS(y, p, p)
	VMULPS(u.float(ln2High), e, s)
	VADDPS(s, p, p)
	// 0 -> -Inf; negative or NaN -> NaN; +Inf -> +Inf.
	zero := u.floatRegister(0)
	p = u.choose(u.compare(equal, v, zero), u.floatRegister(float32(math.Inf(-1))), p)
	p = u.choose(u.compare(greaterEqual, v, zero), p, u.register(0x7fc00000))
	return u.choose(u.compare(equal, v, u.float(float32(math.Inf(1)))), v, p)
}

// rational is x*p(x^2) / q(x^2), x clamped to [-bound, bound].
func rational(u *unit, x VecVirtual, bound float32, over, under []float32) VecVirtual {
	c := u.clamp(x, -bound, bound)
	z := u.reg()
	VMULPS(c, c, z)
	p := u.poly(z, over)
	VMULPS(c, p, p)
	q := u.poly(z, under)
	return u.div(p, q)
}

const tanhBound = 7.90531110763549805

var (
	tanhOver = []float32{-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
		1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03}
	tanhUnder = []float32{1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03}
	erfOver   = []float32{-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
		-7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02}
	erfUnder = []float32{-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
		-1.42647390514189e-02}
)
