package kernel

import (
	"math"
	"sync"
)

// The operations in plain Go, on lanes as bits. The conversions of products keep compilers from fusing them with
// sums, as in tilePlain.

func floatOf(x uint32) float32 { return math.Float32frombits(x) }
func bitsOf(x float32) uint32  { return math.Float32bits(x) }

// maskOf is a bool in a lane.
func maskOf(b bool) uint32 {
	if b {
		return math.MaxUint32
	}
	return 0
}

const signBit = 1 << 31

// operations are all but Select, by how many operands they take.
type operations struct {
	unary  map[Op]func(x uint32) uint32
	binary map[Op]func(x, y uint32) uint32
	lanes  *laneKernels // the twin of all others
	once   sync.Once
}

var theOperations operations

// plain returns the operations. They are listed when they are first asked for: what a package does as it starts is in
// every program that has the package, and the browser's computes no loops.
func plain() *operations {
	o := &theOperations
	o.once.Do(func() {
		o.unary, o.binary = unaries(), binaries()
		o.lanes = newPlainLanes(o)
	})
	return o
}

func unaries() map[Op]func(x uint32) uint32 {
	return map[Op]func(x uint32) uint32{
		opCopy:     func(x uint32) uint32 { return x },
		Neg:        func(x uint32) uint32 { return x ^ signBit },
		Abs:        func(x uint32) uint32 { return x &^ signBit },
		Sqrt:       float1(sqrt),
		Rsqrt:      float1(func(x float32) float32 { return 1 / sqrt(x) }),
		Exp:        float1(exp),
		Log:        float1(log),
		Tanh:       float1(tanh),
		Erf:        float1(erf),
		Logistic:   float1(func(x float32) float32 { return 1 / (1 + exp(-x)) }),
		Sign:       sign,
		Floor:      float1(func(x float32) float32 { return float32(math.Floor(float64(x))) }),
		Ceil:       float1(func(x float32) float32 { return float32(math.Ceil(float64(x))) }),
		Round:      float1(func(x float32) float32 { return float32(math.RoundToEven(float64(x))) }),
		IsFinite:   func(x uint32) uint32 { return maskOf(x&^signBit < 0x7f800000) },
		IsNaN:      func(x uint32) uint32 { return maskOf(x&^signBit > 0x7f800000) },
		INeg:       func(x uint32) uint32 { return -x },
		IAbs:       func(x uint32) uint32 { return min(x, -x) },
		Not:        func(x uint32) uint32 { return ^x },
		IntToFloat: func(x uint32) uint32 { return bitsOf(float32(int32(x))) },
		FloatToInt: func(x uint32) uint32 { return uint32(truncate(floatOf(x))) },
	}
}

func binaries() map[Op]func(x, y uint32) uint32 {
	return map[Op]func(x, y uint32) uint32{
		Add:  float2(func(x, y float32) float32 { return x + y }),
		Sub:  float2(func(x, y float32) float32 { return x - y }),
		Mul:  float2(func(x, y float32) float32 { return x * y }),
		Div:  float2(func(x, y float32) float32 { return x / y }),
		Max:  float2(func(x, y float32) float32 { return max(x, y) }),
		Min:  float2(func(x, y float32) float32 { return min(x, y) }),
		Eq:   compare(func(x, y float32) bool { return x == y }),
		Ne:   compare(func(x, y float32) bool { return x != y }),
		Lt:   compare(func(x, y float32) bool { return x < y }),
		Le:   compare(func(x, y float32) bool { return x <= y }),
		Gt:   compare(func(x, y float32) bool { return x > y }),
		Ge:   compare(func(x, y float32) bool { return x >= y }),
		IAdd: func(x, y uint32) uint32 { return x + y },
		ISub: func(x, y uint32) uint32 { return x - y },
		IMul: func(x, y uint32) uint32 { return x * y },
		IMax: func(x, y uint32) uint32 { return uint32(max(int32(x), int32(y))) },
		IMin: func(x, y uint32) uint32 { return uint32(min(int32(x), int32(y))) },
		IEq:  func(x, y uint32) uint32 { return maskOf(x == y) },
		INe:  func(x, y uint32) uint32 { return maskOf(x != y) },
		ILt:  func(x, y uint32) uint32 { return maskOf(int32(x) < int32(y)) },
		ILe:  func(x, y uint32) uint32 { return maskOf(int32(x) <= int32(y)) },
		IGt:  func(x, y uint32) uint32 { return maskOf(int32(x) > int32(y)) },
		IGe:  func(x, y uint32) uint32 { return maskOf(int32(x) >= int32(y)) },
		And:  func(x, y uint32) uint32 { return x & y },
		Or:   func(x, y uint32) uint32 { return x | y },
		Xor:  func(x, y uint32) uint32 { return x ^ y },
	}
}

func float1(f func(x float32) float32) func(x uint32) uint32 {
	return func(x uint32) uint32 { return bitsOf(f(floatOf(x))) }
}

func float2(f func(x, y float32) float32) func(x, y uint32) uint32 {
	return func(x, y uint32) uint32 { return bitsOf(f(floatOf(x), floatOf(y))) }
}

func compare(f func(x, y float32) bool) func(x, y uint32) uint32 {
	return func(x, y uint32) uint32 { return maskOf(f(floatOf(x), floatOf(y))) }
}

// sqrt is right in float32: float64 has more than twice its bits and two more.
func sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }

func sign(x uint32) uint32 {
	if v := floatOf(x); v > 0 || v < 0 {
		return x&signBit | bitsOf(1)
	}
	return x
}

// truncate is i32.trunc_sat_f32_s.
func truncate(x float32) int32 {
	switch {
	case x != x:
		return 0
	case x >= 1<<31:
		return math.MaxInt32
	case x < -1<<31:
		return math.MinInt32
	}
	return int32(x)
}

// The elementary functions are those of the programs' own code, operation by operation (wasm/compiler/codegen,
// vecmath.go): polynomials of Cephes and of Eigen.

// poly is c[0]*t^n + c[1]*t^(n-1) + ... + c[n], rounded after every operation.
func poly(t float32, c ...float32) float32 {
	p := c[0]
	for _, ci := range c[1:] {
		p = float32(p*t) + ci
	}
	return p
}

// clamp keeps NaN.
func clamp(x, lo, hi float32) float32 {
	if hi < x {
		x = hi
	}
	if x < lo {
		x = lo
	}
	return x
}

func pow2(n int32) float32 { return floatOf(uint32(n+127) << 23) }

func exp(x float32) float32 {
	t := clamp(x, -104, 89)
	if t <= -104 {
		return 0
	}
	n := float32(math.RoundToEven(float64(float32(t * 1.44269504088896341))))
	r := t - float32(n*0.693359375)
	r -= float32(n * -2.12194440e-4)
	p := poly(r, expTerms[:]...)
	p = float32(p*float32(r*r)) + r
	p++
	i := truncate(n)
	half := i >> 1
	return float32(p*pow2(half)) * pow2(i-half)
}

var expTerms = [...]float32{1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
	5.0000001201e-1}

func log(x float32) float32 {
	switch {
	case x == 0:
		return float32(math.Inf(-1))
	case !(x > 0):
		return float32(math.NaN())
	case x > math.MaxFloat32:
		return x
	}
	y, less := x, float32(0)
	if x < floatOf(0x00800000) {
		y, less = x*(1<<24), 24
	}
	e := float32(int32(bitsOf(y)>>23)-126) - less
	y = floatOf(bitsOf(y)&0x007fffff | 0x3f000000)
	if y < 0.707106781186547524 {
		e--
		y = (y - 1) + y
	} else {
		y--
	}
	z := float32(y * y)
	p := poly(y, logTerms[:]...)
	p = float32(float32(p*y) * z)
	p += float32(e * -2.12194440e-4)
	p -= float32(z * 0.5)
	p += y
	return p + float32(e*0.693359375)
}

var logTerms = [...]float32{7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
	-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1}

// rational is x*p(x^2) / q(x^2), x clamped to [-bound, bound].
func rational(x, bound float32, p, q []float32) float32 {
	c := clamp(x, -bound, bound)
	z := float32(c * c)
	return float32(poly(z, p...)*c) / poly(z, q...)
}

func tanh(x float32) float32 { return rational(x, tanhBound, tanhOver[:], tanhUnder[:]) }

const tanhBound = 7.90531110763549805

var (
	tanhOver = [...]float32{-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
		1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03}
	tanhUnder = [...]float32{1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03}
)

func erf(x float32) float32 { return rational(x, 4, erfOver[:], erfUnder[:]) }

var (
	erfOver = [...]float32{-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
		-7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02}
	erfUnder = [...]float32{-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
		-1.42647390514189e-02}
)
