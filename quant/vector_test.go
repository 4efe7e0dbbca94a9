package quant

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// testVector draws n values N(0, 1).
func testVector(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 17))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// equalBits compares bit by bit: the sign of a zero counts.
func equalBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// TestHadamardIsItsDefinition: of whole numbers, which no addition rounds, each row becomes
// the sum of its values, negated where signs say so and where the bits that two places share
// are odd in number.
func TestHadamardIsItsDefinition(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for r := minBlock; r <= 512; r *= 2 {
		for _, rows := range []int{1, 3} {
			x, signs := make([]float32, r*rows), make([]uint64, r*rows/64)
			for i := range x {
				x[i] = float32(rnd.IntN(201) - 100)
			}
			for i := range signs {
				signs[i] = rnd.Uint64()
			}
			want := make([]float32, len(x))
			for i := range want {
				row := i / r * r
				for j := range r {
					v := x[row+j]
					if signs[(row+j)/64]>>((row+j)%64)&1 != uint64(bits.OnesCount(uint(i-row)&uint(j))&1) {
						v = -v
					}
					want[i] += v
				}
			}
			hadamardRows(x, r, signs)
			if !slices.Equal(x, want) {
				t.Errorf("R=%d, %d rows: not the transform", r, rows)
			}
		}
	}
}
