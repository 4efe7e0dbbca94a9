package dp

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
)

// ErrVariance reports a noise variance that the sampler cannot draw.
var ErrVariance = errors.New("variance out of range")

// Variance is the sigma^2 of a discrete Gaussian as an exact dyadic rational,
// (Hi*2^64 + Lo) / 2^Shift, in squared grid units. The zero value is no variance.
type Variance struct {
	Hi, Lo uint64
	Shift  uint8
}

// maxSigmaLog2 bounds sigma below 2^48 grid units: beyond it noise could
// overflow an int64 sum, and no such sum exists.
const maxSigmaLog2 = 48

// NewVariance returns z^2 * b2 * scale^2 rounded UP to a multiple of 2^-k,
// where k is the largest integer in 0..60 with sigma^2 * t^2 * 2^(2k) < 2^61,
// t = floor(sigma)+1: the finest grid on which the sampler's fractions fit
// 64 bits (relative rounding below 1e-9 for sigma^2 < 2^31, and below 1 grid unit
// squared above). The product is formed exactly: every float64 is a rational.
//
// z is the noise multiplier, b2 the squared integer sensitivity, scale the
// simulation factor (1: none).
func NewVariance(z float64, b2 int64, scale float64) (Variance, error) {
	if !(z > 0) || math.IsInf(z, 1) {
		return Variance{}, fmt.Errorf("dp: noise multiplier %v, want finite and positive: %w", z, ErrVariance)
	}
	if b2 <= 0 {
		return Variance{}, fmt.Errorf("dp: squared sensitivity %d, want positive: %w", b2, ErrVariance)
	}
	if !(scale > 0) || scale > 1 {
		return Variance{}, fmt.Errorf("dp: noise scale %v, want in (0, 1]: %w", scale, ErrVariance)
	}
	approx := z * z * scale * scale * float64(b2)
	if !(approx > 1e-6) || approx >= math.Ldexp(1, 2*maxSigmaLog2) {
		return Variance{}, fmt.Errorf("dp: sigma^2 = %v*%v*%d is not in (1e-6, 2^%d): %w", z*z, scale*scale, b2, 2*maxSigmaLog2, ErrVariance)
	}
	exact := new(big.Rat).SetInt64(b2)
	for _, f := range []float64{z, z, scale, scale} {
		exact.Mul(exact, new(big.Rat).SetFloat64(f))
	}
	t := math.Floor(math.Sqrt(approx)) + 1
	k := 0
	for k < 60 && math.Ldexp(approx*t*t, 2*(k+1)) < 1<<61 {
		k++
	}
	num := new(big.Int).Lsh(exact.Num(), uint(k))
	q, r := new(big.Int).QuoRem(num, exact.Denom(), new(big.Int))
	if r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	lo := new(big.Int).And(q, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	hi := new(big.Int).Rsh(q, 64).Uint64()
	v := Variance{Hi: hi, Lo: lo, Shift: uint8(k)}
	// One form for each value, so that equal variances have equal encodings.
	for v.Shift > 0 && v.Lo&1 == 0 {
		v.Lo = v.Lo>>1 | v.Hi<<63
		v.Hi >>= 1
		v.Shift--
	}
	return v, nil
}

// check validates a variance that came from outside.
func (v Variance) check() error {
	if v.Hi == 0 && v.Lo == 0 {
		return fmt.Errorf("dp: sigma^2 is zero: %w", ErrVariance)
	}
	if v.Shift > 60 || v.Shift > 0 && v.Lo&1 == 0 {
		return fmt.Errorf("dp: sigma^2 with denominator 2^%d is not in lowest terms or too fine: %w", v.Shift, ErrVariance)
	}
	if v.bitLen()-int(v.Shift) > 2*maxSigmaLog2 {
		return fmt.Errorf("dp: sigma^2 = %v is not below 2^%d: %w", v.Float(), 2*maxSigmaLog2, ErrVariance)
	}
	return nil
}

func (v Variance) bitLen() int {
	if v.Hi != 0 {
		return 64 + bits.Len64(v.Hi)
	}
	return bits.Len64(v.Lo)
}

// num is the numerator, den the denominator.
func (v Variance) num() *big.Int {
	n := new(big.Int).SetUint64(v.Hi)
	return n.Or(n.Lsh(n, 64), new(big.Int).SetUint64(v.Lo))
}

func (v Variance) den() *big.Int { return new(big.Int).Lsh(big.NewInt(1), uint(v.Shift)) }

// Float returns sigma^2 as the nearest float64.
func (v Variance) Float() float64 {
	if v == (Variance{}) {
		return 0
	}
	f, _ := new(big.Rat).SetFrac(v.num(), v.den()).Float64()
	return f
}

// String returns sigma^2 as an exact fraction.
func (v Variance) String() string {
	if v.Shift == 0 {
		return v.num().String()
	}
	return v.num().String() + "/" + v.den().String()
}
