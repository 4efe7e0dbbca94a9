package job

import "testing"

// A device's coin amplifies where nobody sees it fall. From two providers in a device
// on the others' sum shows it (docs/privacy/proofs.md, section 8): then it hides nothing, and
// there is no second guarantee for those who see.
func TestHides(t *testing.T) {
	for most, hides := range map[int]bool{0: true, 1: true, 2: false, 3: false, 100: false} {
		for _, rate := range []float64{0.1, 1} {
			j := Default()
			j.Providers.Max, j.Cohort.SamplingRate = most, rate
			if j.Hides() != hides || j.VisibleDiffers() != (hides && rate < 1) {
				t.Errorf("%d providers, rate %v: hides %v, twofold %v", most, rate, j.Hides(), j.VisibleDiffers())
			}
		}
	}
}

// The denominator counts units, and so does what delta is held against.
func TestUnitsOfADevice(t *testing.T) {
	j := Default()
	j.Cohort.Population = 200
	j.Cohort.SamplingRate = 0.25
	if j.ExpectedCohort() != 50 {
		t.Errorf("a cohort of %v is expected", j.ExpectedCohort())
	}
	if j.UnitsPerDevice() != 1 || j.Protected() != 200 {
		t.Errorf("devices: %v a device, %d protected", j.UnitsPerDevice(), j.Protected())
	}
	j.Providers = Providers{Max: 8, Expected: 2.5, SamplingRate: 0.2}
	if j.UnitsPerDevice() != 0.5 || j.Protected() != 500 {
		t.Errorf("providers: %v a device, %d protected", j.UnitsPerDevice(), j.Protected())
	}
}
