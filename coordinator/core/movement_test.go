package core

import (
	"math"
	"math/rand/v2"
	"testing"
)

// sums are a round's released sum of devices whose updates have a norm and share a direction to a degree.
func noisySum(r *rand.Rand, n int, sigma, aligned float64) []int64 {
	sum := make([]int64, n)
	for i := range sum {
		sum[i] = int64(math.Round(sigma*r.NormFloat64() + aligned/math.Sqrt(float64(n))))
	}
	return sum
}

// Rounds of noise alone are told from rounds of updates where the latter would show, and
// nothing is said where they would not.
func TestMovement(t *testing.T) {
	const n, devices, b2 = 2000, 100, 10_000 // a clip norm of 100
	for _, c := range []struct {
		sigma   float64
		aligned float64 // share of the clip norm that each device moves the sum by
		still   bool
	}{
		{100, 0, true},
		{100, 0.125, false},
		{100, 1, false},
		{2000, 0, false}, // so much noise that a fleet that trains would not show either
		{2000, 0.125, false},
	} {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 1))
			var m Movement
			said := false
			for range 20 {
				m.take(noisySum(r, n, c.sigma, c.aligned*devices*100), c.sigma*c.sigma, b2, devices)
				said = said || m.Still()
			}
			if said != c.still || c.still && m.Moved {
				t.Errorf("noise %v, updates %v, seed %d: still %t, %+v", c.sigma, c.aligned, seed, said, m)
			}
		}
	}
	// What moved once, and then no more, is said but known to have moved.
	r := rand.New(rand.NewPCG(1, 2))
	var m Movement
	m.take(noisySum(r, n, 100, 5000), 1e4, b2, devices)
	for range 12 {
		m.take(noisySum(r, n, 100, 0), 1e4, b2, devices)
	}
	if !m.Moved || !m.Still() || m.Rounds != 12 {
		t.Errorf("%+v", m)
	}
	// Without noise, a sum of nothing says so by itself.
	m = Movement{}
	for range leastStill {
		m.take(make([]int64, n), 0, b2, devices)
	}
	if !m.Still() || m.Moved {
		t.Errorf("without noise %+v", m)
	}
	if m.take([]int64{1}, 0, b2, devices); m.Still() || !m.Moved {
		t.Errorf("without noise, moved: %+v", m)
	}
}
