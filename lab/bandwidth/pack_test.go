package bandwidth

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/starling-fl/starling/quant"
)

// bitsAt is the two's complement number whose width bits begin at a bit of b, the lowest first.
func bitsAt(b []byte, at, width int) int32 {
	var v uint32
	for i := range width {
		v |= uint32(b[(at+i)/8]>>((at+i)%8)&1) << i
	}
	return int32(v<<(32-width)) >> (32 - width)
}

// TestPack reads back bit by bit for widths 1..32 and that what does not fit is refused.
func TestPack(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for width := 1; width <= 32; width++ {
		for _, n := range []int{0, 1, 2, 3, 7, 8, 31, 32, 33, 1000} {
			symbols := make([]int32, n)
			for i := range symbols {
				symbols[i] = int32(rnd.Uint32()) >> (32 - width)
			}
			packed, err := appendPacked([]byte("head"), symbols, width)
			if err != nil {
				t.Fatal(err)
			}
			packed = packed[4:]
			if len(packed) != (n*width+7)/8 {
				t.Fatalf("width %d, n=%d: %d bytes", width, n, len(packed))
			}
			for i, want := range symbols {
				if got := bitsAt(packed, i*width, width); got != want {
					t.Fatalf("width %d, n=%d: symbol %d is %d, want %d", width, n, i, got, want)
				}
			}
			for at := n * width; at < 8*len(packed); at++ {
				if packed[at/8]>>(at%8)&1 != 0 {
					t.Fatalf("width %d, n=%d: padding is set", width, n)
				}
			}
		}
		if width < 32 {
			for _, s := range []int32{1 << (width - 1), -1<<(width-1) - 1, math.MaxInt32, math.MinInt32} {
				if out, err := appendPacked(nil, []int32{0, s}, width); !errors.Is(err, quant.ErrRange) || len(out) != 0 {
					t.Errorf("width %d takes %d: %v", width, s, err)
				}
			}
		}
	}
	for _, width := range []int{0, 33, -1} {
		if _, err := appendPacked(nil, nil, width); !errors.Is(err, quant.ErrRange) {
			t.Errorf("width %d: %v", width, err)
		}
	}
}
