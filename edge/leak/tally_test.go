package leak

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Newcombe 1998, table II, method 10.
func TestIntervals(t *testing.T) {
	for _, c := range []struct {
		a, n, b, m int
		low, high  float64
	}{
		{56, 70, 48, 80, 0.0524, 0.3339}, {9, 10, 3, 10, 0.1705, 0.8090}, {10, 10, 0, 20, 0.6791, 1},
	} {
		var in, out tally
		in.add(c.a, c.n)
		out.add(c.b, c.m)
		if _, low, high := beyond(&in, &out); math.Abs(low-c.low) > 1e-4 || math.Abs(high-c.high) > 1e-4 {
			t.Errorf("%+v: %.4f to %.4f", c, low, high)
		}
	}
}

// Trials that differ more than coins would count for less: all or nothing for one guess each.
func TestEffective(t *testing.T) {
	var even, odd tally
	for i := range 20 {
		even.add(5, 10)
		odd.add(10*(i%2), 10)
	}
	if even.effective() != 200 || odd.effective() > 21 || odd.effective() < 18 {
		t.Errorf("%v and %v", even.effective(), odd.effective())
	}
}

// Counts add up, are those of a guess that is one, and no further from it than any others
// that are tried.
func TestWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		n := rng.IntN(30)
		guess := make([]float64, 1+rng.IntN(6))
		for i := range guess {
			guess[i] = rng.NormFloat64() * 10
		}
		counts := whole(guess, n)
		far := func(c []int) (sum float64) {
			for i := range c {
				sum += (float64(c[i]) - guess[i]) * (float64(c[i]) - guess[i])
			}
			return sum
		}
		if total(counts) != n {
			t.Fatalf("%v of %d: %v", guess, n, counts)
		}
		best := far(counts)
		for from := range counts {
			for to := range counts {
				if counts[from] == 0 {
					continue
				}
				counts[from]--
				counts[to]++
				if far(counts) < best-1e-9 {
					t.Fatalf("%v of %d: %v is nearer", guess, n, counts)
				}
				counts[from]++
				counts[to]--
			}
		}
		exact := make([]float64, len(counts))
		for i, c := range counts {
			exact[i] = float64(c)
		}
		for i, c := range whole(exact, n) {
			if c != counts[i] {
				t.Fatalf("%v becomes %v", exact, c)
			}
		}
	}
}
