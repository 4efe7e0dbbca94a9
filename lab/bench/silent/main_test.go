package main

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The statistic is the greatest distance of two step functions, and how likely it is comes
// out of exchanging what could be exchanged: two samples of one distribution are as far apart
// as often as chance says, two of others never.
func TestApart(t *testing.T) {
	if d := apartBy([]float64{1, 2, 3, 4}, []float64{3, 4, 5, 6}); d != 0.5 {
		t.Errorf("apart by %v, want 0.5", d)
	}
	if d := apartBy([]float64{1, 1, 2}, []float64{1, 1, 2}); d != 0 {
		t.Errorf("the same is apart by %v", d)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	sample := func(shift float64) (devices [][]float64) {
		for range 20 {
			own := rnd.NormFloat64() // each device's own
			devices = append(devices, []float64{own + shift + 0.1*rnd.NormFloat64(), own + shift + 0.1*rnd.NormFloat64()})
		}
		return devices
	}
	apart := func(x, y [][]float64) float64 {
		var a, b []float64
		for i := range x {
			a, b = append(a, x[i]...), append(b, y[i]...)
		}
		return chanceOf(apartBy(a, b), x, y, 2)
	}
	if p := apart(sample(0), sample(3)); p > 0.01 {
		t.Errorf("three deviations are seen with %v", p)
	}
	below := 0
	for range 100 {
		if apart(sample(0), sample(0)) < 0.05 {
			below++
		}
	}
	if below > 15 { // of 100 at 5 %: 16 or more with a chance of 4e-5, and the seed is fixed for samples
		t.Errorf("%d of 100 equal samples differ at 5 %%", below)
	}
	if v := visible(1, 2); math.Abs(v-3.2416) > 1e-9 {
		t.Errorf("%v", v)
	}
}
