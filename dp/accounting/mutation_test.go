package accounting

import (
	"math"
	"testing"

	"github.com/starling-fl/starling/dp"
)

// Bug: epsilon and delta, or delta and 1-delta, change places.
func TestMutationDeltaSwapped(t *testing.T) {
	const eps, delta = 0.5, 1e-6
	check := func(calibrate func() (float64, error)) bool {
		z, err := calibrate()
		if err != nil {
			return false
		}
		// delta really is at most delta at eps, by the definition for q = 1, T = 1.
		return gaussianLogDelta(eps, 1/z) <= math.Log(delta)*(1-1e-9)
	}
	if !check(func() (float64, error) { return CalibrateNoise(eps, delta, 1, 1, dp.Tight) }) {
		t.Error("the right calibration was rejected")
	}
	for name, bug := range map[string]func() (float64, error){
		"epsilon and delta": func() (float64, error) { return CalibrateNoise(delta, eps, 1, 1, dp.Tight) },
		"delta and 1-delta": func() (float64, error) { return CalibrateNoise(eps, 1-delta, 1, 1, dp.Tight) },
		"sqrt of delta":     func() (float64, error) { return CalibrateNoise(eps, math.Sqrt(delta), 1, 1, dp.Tight) },
	} {
		// (delta, eps) swapped asks for far more noise: wrong too, but safe; it must
		// show as waste.
		z, err := bug()
		if err == nil && check(bug) {
			right, _ := CalibrateNoise(eps, delta, 1, 1, dp.Tight)
			if z < 2*right {
				t.Errorf("%s swapped was not noticed", name)
			}
		}
	}
	if _, err := dp.CheckDelta(0.5, 1000); err == nil {
		t.Error("an epsilon in the place of delta was accepted for 1000 members")
	}
}
