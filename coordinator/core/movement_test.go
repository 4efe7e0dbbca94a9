package core

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/starling-fl/starling/dp"
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

// Of trimmed shards with devices' own noise nobody knows how much noise is left: a job is not said to stand still there.
func TestTrimmedNoiseSaysNothing(t *testing.T) {
	j := tinyJob(20)
	c, err := New(j, tinyBase(t), []byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := c.Draw(dp.PoissonDrawNumbered(20))
	if err != nil {
		t.Fatal(err)
	}
	if d.vector.Own, err = (dp.OwnNoise{Multiplier: 1}).Variance(d.vector.B2()); err != nil {
		t.Fatal(err)
	}
	sum := make([]int64, d.Size())
	for range 2 * leastStill {
		d.kept = 0.8
		c.note(d, sum, 20, 0)
	}
	if m := c.Movement(); m.Rounds != 0 || m.Still() {
		t.Errorf("trimmed: %+v", m)
	}
	d.kept = 1
	if c.note(d, sum, 20, 0); c.Movement().Rounds != 1 {
		t.Errorf("whole: %+v", c.Movement())
	}
}

// Each group of a unit says what it found, and the unit is counted once: as many as are expected leave none silent.
func TestGroupsAreNotSilent(t *testing.T) {
	j := tinyJob(20)
	j.Training.HeldOut, j.Privacy.Groups = 0.25, 4
	c, err := New(j, tinyBase(t), []byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := c.Draw(dp.PoissonDrawNumbered(20))
	if err != nil {
		t.Fatal(err)
	}
	f := d.vector.Figures
	sum := make([]int64, d.Size())
	said := sum[len(sum)-f.Size():]
	for i := range f.Coordinates { // every group of every expected unit says 1 first
		said[i] = int64(math.Round(4 * c.t.Units * float64(f.Symbol)))
	}
	c.t.fleetMetrics(d, 0, sum, dp.Event{}, 20, 0)
	if s := d.Silent(); math.Abs(s.Mean) > 0.01*c.t.Units {
		t.Errorf("%v of %v expected units are silent", s.Mean, c.t.Units)
	}
}
