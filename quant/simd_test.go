package quant

import (
	"math"
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

// TestFastHadamard holds the fast transform to the plain one, to the bit.
func TestFastHadamard(t *testing.T) {
	for r := minBlock; r <= maxBlock; r *= 2 {
		for _, rows := range []int{1, 2, 3, 7} {
			x := testVector(uint64(r), r*rows)
			x[1], x[2] = x[0], 0
			signs := make([]uint64, len(x)/64)
			rnd := rand.New(rand.NewPCG(3, uint64(rows)))
			for i := range signs {
				signs[i] = rnd.Uint64()
			}
			want := slices.Clone(x)
			applySigns(want, signs)
			for k := 0; k < len(want); k += r {
				hadamardGeneric(want[k : k+r])
			}
			hadamardRows(x, r, signs)
			if !equalBits(x, want) {
				t.Errorf("R=%d, %d rows: fast and plain transform differ", r, rows)
			}
		}
	}
}

// TestFastRounding holds fast rounding to plain rounding: same symbols, same norm.
func TestFastRounding(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, name := range SchemeNames() {
		s, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		q, cells := s.MaxSymbol(), cellsOf(s)
		for _, n := range []int{1, 7, 8, 64, 4096} {
			y := testVector(uint64(n), n)
			random := make([]byte, 4*n)
			for i := range random {
				random[i] = byte(rnd.Uint32())
			}
			for i := range y { // ties, the ends, and beyond them
				switch i % 9 {
				case 0:
					y[i] = float32(math.Round(float64(y[i])))
				case 1:
					y[i] = 4
				case 2:
					y[i] = -4
				case 3:
					y[i] = 0x1p-30 * y[i]
				}
			}
			scale := float32(q) / 3
			got, want := make([]int32, n), make([]int32, n)
			var gotNorm, wantNorm int64
			if cells == nil {
				gotNorm = roundUniform(got, y, random, scale, q)
				wantNorm = roundUniformGeneric(want, y, random, scale, q)
			} else {
				gotNorm = roundCells(got, y, random, scale, q, cells)
				wantNorm = roundCellsGeneric(want, y, random, scale, q, cells)
			}
			if !slices.Equal(got, want) || gotNorm != wantNorm {
				t.Errorf("%s, n=%d: fast and plain rounding differ: norms %d and %d", name, n, gotNorm, wantNorm)
			}
		}
	}
}
