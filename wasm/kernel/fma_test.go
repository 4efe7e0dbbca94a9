package kernel

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exactFMA is x*y + z of finite numbers by whole numbers of any size, rounded once.
func exactFMA(x, y, z float32) float32 {
	exact := func(v float32) *big.Float { return new(big.Float).SetPrec(1000).SetFloat64(float64(v)) }
	sum := new(big.Float).SetPrec(1000).Mul(exact(x), exact(y))
	if sum.Add(sum, exact(z)); sum.Sign() == 0 { // big.Float and IEEE 754 agree on what 0 + -0 is, not on x - x
		return float32(float64(x)*float64(y)) + z
	}
	f, _ := sum.Float32()
	return f
}

// TestFMA draws terms whose sum lies near a midpoint of float32, where rounding twice goes wrong, and special ones.
func TestFMA(t *testing.T) {
	rnd := rand.New(rand.NewPCG(12, 13))
	bits := math.Float32frombits
	number := func() float32 {
		switch rnd.IntN(4) {
		case 0:
			return bits(rnd.Uint32()) // of any size
		case 1:
			return bits(rnd.Uint32() & 0x807fffff) // denormal
		case 2:
			return float32(rnd.IntN(1<<12)-1<<11) * bits(uint32(rnd.IntN(40)+107)<<23) // few bits: ties
		}
		return special[rnd.IntN(len(special))]
	}
	twice := 0
	check := func(x, y, z float32) {
		t.Helper()
		got := FMA(x, y, z)
		want := float32(math.FMA(float64(x), float64(y), float64(z))) // right but for rounding
		if s := float64(x)*float64(y) + float64(z); !math.IsNaN(s) && !math.IsInf(s, 0) {
			if once := exactFMA(x, y, z); math.Float32bits(once) != math.Float32bits(want) {
				twice++
				want = once
			}
		}
		if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
			t.Fatalf("%v*%v + %v (%#x %#x %#x) is %v, want %v", x, y, z, math.Float32bits(x), math.Float32bits(y),
				math.Float32bits(z), got, want)
		}
	}
	for range 200000 {
		check(number(), number(), number())
		// z just so large that the product, 2^-24 of it and a little more or less, decides how it is rounded.
		z := bits(uint32(rnd.IntN(200)+30)<<23 | rnd.Uint32()&0x7fffff)
		half := float64(z) * 0x1p-24 / float64(1+float64(rnd.Uint32()&0x7fffff)*0x1p-23)
		x := float32(1 + float64(rnd.Uint32()&0x7fffff)*0x1p-23)
		check(x, float32(half), z)
		check(x, -float32(half), z)
		ulp := float32(math.Abs(float64(math.Nextafter32(z, 0) - z)))
		check(1+0x1p-23, ulp/2*(1-0x1p-23), z) // a half less 2^-46 of it
		check(1-0x1p-24, ulp/2*(1+0x1p-23), z)
		check(ulp/2, 1, z)
	}
	if twice < 1000 {
		t.Errorf("only %d sums would have been rounded twice", twice)
	}
}
