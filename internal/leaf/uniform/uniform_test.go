package uniform

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"testing"
)

// TestBelow: with n just below 2^63, two of 2^64 numbers are redrawn; the lowest
// that is kept and the highest there is give the ends of the range.
func TestBelow(t *testing.T) {
	draw := func(n int, words ...uint64) (int, int, error) {
		var b []byte
		for _, w := range words {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
		r := bytes.NewReader(b)
		v, err := Below(r, n)
		return v, len(words) - r.Len()/8, err
	}
	const n = math.MaxInt // 2^63 - 1: 2^64 mod n is 2
	for _, c := range []struct {
		words []uint64
		want  int
		read  int
	}{
		{[]uint64{0, 1, 2}, 2, 3}, {[]uint64{2, 9}, 2, 1}, {[]uint64{n}, 0, 1}, {[]uint64{math.MaxUint64}, 1, 1},
	} {
		if got, read, err := draw(n, c.words...); got != c.want || read != c.read || err != nil {
			t.Errorf("%v: %d after %d words, %v; want %d after %d", c.words, got, read, err, c.want, c.read)
		}
	}
	if got, read, err := draw(1, 0); got != 0 || read != 1 || err != nil {
		t.Errorf("of one: %d after %d words, %v", got, read, err)
	}
	if _, _, err := draw(n, 0, 1); !errors.Is(err, io.EOF) {
		t.Errorf("a stream that ends: %v", err)
	}
	for _, n := range []int{0, -1, math.MinInt} {
		if _, _, err := draw(n, 5); !errors.Is(err, ErrEmpty) {
			t.Errorf("of %d: %v", n, err)
		}
	}
}

// TestUniform is a chi-square test with 6 degrees of freedom from a fixed seed.
func TestUniform(t *testing.T) {
	rnd, counts := rand.NewChaCha8([32]byte{1}), [7]float64{}
	const draws = 70_000
	for range draws {
		v, err := Below(rnd, len(counts))
		if err != nil {
			t.Fatal(err)
		}
		counts[v]++
	}
	chi := 0.0
	for _, c := range counts {
		chi += (c - draws/7) * (c - draws/7) / (draws / 7)
	}
	if chi > 22.5 { // one in a thousand
		t.Errorf("chi-square %v of %v", chi, counts)
	}
}

// TestShuffle: of three each of the six orders comes as often as the others; an error of the
// source ends it. 4 sigma of 6,000 draws a cell: it errs once in 3,000 seeds, and the seed is fixed.
func TestShuffle(t *testing.T) {
	const draws = 36_000
	rnd, seen := rand.NewChaCha8([32]byte{7}), map[[3]int]int{}
	for range draws {
		x := []int{0, 1, 2}
		if err := Shuffle(rnd, x); err != nil {
			t.Fatal(err)
		}
		seen[[3]int(x)]++
	}
	for order, n := range seen {
		if math.Abs(float64(n)-draws/6) > 4*math.Sqrt(draws/6.*5/6) {
			t.Errorf("%v came %d times of %d", order, n, draws)
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d orders", len(seen))
	}
	if err := Shuffle(bytes.NewReader(nil), make([]int, 2)); !errors.Is(err, io.EOF) {
		t.Errorf("without randomness: %v", err)
	}
	if err := Shuffle(bytes.NewReader(nil), make([]int, 1)); err != nil {
		t.Errorf("one: %v", err)
	}
}
