package l2

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestNorm holds the norm to one computed with 400 bits.
func TestNorm(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, size := range []float64{math.SmallestNonzeroFloat32, 1e-20, 1, 1e30, math.MaxFloat32} {
		for _, n := range []int{0, 1, 3, 4, 5, 1001} {
			x, sum := make([]float32, n), new(big.Float).SetPrec(400)
			for i := range x {
				x[i] = float32(size * (2*rnd.Float64() - 1))
				v := new(big.Float).SetPrec(400).SetFloat64(float64(x[i]))
				sum.Add(sum, v.Mul(v, v))
			}
			want, _ := sum.Sqrt(sum).Float64()
			if got := Norm(x); math.Abs(got-want) > 1e-13*want {
				t.Errorf("%d values up to %g: %v, want %v", n, size, got, want)
			}
		}
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for at := range 6 {
			x := make([]float32, 6)
			x[at] = float32(bad)
			if n := Norm(x); !math.IsNaN(n) && !math.IsInf(n, 0) {
				t.Errorf("%v at %d: norm %v", bad, at, n)
			}
		}
	}
}
