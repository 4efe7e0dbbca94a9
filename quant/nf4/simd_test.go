package nf4

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
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

// TestFast holds the fast path to the plain one, blocks of zeros, of tiny values and
// of midpoints included.
func TestFast(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 65, 128, 1000, 64 * 50, 64*50 + 1} {
		x := testVector(uint64(n)+1, n)
		for i := range x {
			switch i / 64 % 8 {
			case 1:
				x[i] = 0
			case 2:
				x[i] *= 0x1p-140
			case 3:
				x[i] = bounds[i%15]
				if i%64 == 0 {
					x[i] = 1
				}
			case 4:
				x[i] *= 0x1p120
			}
		}
		codes, want := make([]byte, (n+1)/2), make([]byte, (n+1)/2)
		scales, wantScales := make([]float32, Blocks(n, Block)), make([]float32, Blocks(n, Block))
		if err := Encode(codes, scales, x, Block); err != nil {
			t.Fatal(err)
		}
		if encodeGeneric(want, wantScales, x, Block) >= 0 {
			t.Fatal("plain encoder refused finite values")
		}
		if !slices.Equal(codes, want) || !equalBits(scales, wantScales) {
			t.Errorf("n=%d: fast and plain codes differ", n)
		}
		y, wantY := make([]float32, n), make([]float32, n)
		Decode(y, codes, scales, Block)
		decodeGeneric(wantY, codes, scales, Block, &Levels)
		if !equalBits(y, wantY) {
			t.Errorf("n=%d: fast and plain values differ", n)
		}
	}
}

// TestBlockSizes: for any size of block a code is that of the nearest level, the
// lower of two, and codes of a block do not depend on its neighbours.
func TestBlockSizes(t *testing.T) {
	for _, block := range []int{2, 16, 64, 100, 256} {
		for _, n := range []int{0, 1, block - 1, block, block + 1, 5*block + 3} {
			x := testVector(uint64(block), n)
			codes, scales := make([]byte, CodesLen(n)), make([]float32, Blocks(n, block))
			if err := Encode(codes, scales, x, block); err != nil {
				t.Fatal(err)
			}
			y := make([]float32, n)
			Decode(y, codes, scales, block)
			for i, v := range x {
				scale := scales[i/block]
				best := Levels[0]
				for _, l := range Levels {
					if math.Abs(float64(v/scale-l)) < math.Abs(float64(v/scale-best)) {
						best = l
					}
				}
				if y[i] != best*scale {
					t.Fatalf("blocks of %d, value %d of %d: %v came back as %v, nearest is %v", block, i, n, v, y[i], best*scale)
				}
			}
			if n&1 == 1 && codes[n/2]&15 != Zero {
				t.Errorf("blocks of %d, %d values: padded with %d", block, n, codes[n/2]&15)
			}
		}
	}
}

// TestNotFinite: the first value without a code is named, wherever it stands.
func TestNotFinite(t *testing.T) {
	for _, block := range []int{16, 64} {
		for _, at := range []int{0, 63, 64, 130, 199} {
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				x := testVector(1, 200)
				x[at] = float32(bad)
				err := Encode(make([]byte, 100), make([]float32, Blocks(200, block)), x, block)
				if want := fmt.Sprintf("value %d is", at); !errors.Is(err, ErrNotFinite) || !strings.Contains(err.Error(), want) {
					t.Errorf("blocks of %d, %v at %d: %v", block, bad, at, err)
				}
			}
		}
	}
}
