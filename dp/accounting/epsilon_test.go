package accounting

import (
	"errors"
	"testing"

	"github.com/starling-fl/starling/dp"
)

// Simulated noise is accounted as delivered unless asked for by name.
func TestSimulatedNoise(t *testing.T) {
	spec := dp.ReleaseSpec{Round: 5, SamplingRate: 0.1, B2: 2_900_000, NoiseMultiplier: 1.2, NoiseScale: 0.01, SimulatedRate: 0.01}
	account := func(dim int) (delivered, simulated dp.Guarantee) {
		e, err := spec.Event(dim)
		if err != nil {
			t.Fatal(err)
		}
		if delivered, err = Epsilon([]dp.Event{e}, 1e-6, dp.Tight); err != nil {
			t.Fatal(err)
		}
		if simulated, err = SimulatedEpsilon([]dp.Event{e}, 1e-6, dp.Tight); err != nil {
			t.Fatal(err)
		}
		return delivered, simulated
	}
	d, s := account(100_000)
	if d.Epsilon < 100 || s.Epsilon > 10 || d.Simulated || !s.Simulated {
		t.Errorf("delivered %v, simulated %v", d, s)
	}
	// The simulated population's noise is wide even where the delivered one is a
	// few grid units: the tight accountant applies to it.
	spec.B2, spec.NoiseScale = 90_000, 0.003
	if d, s = account(1000); d.Accountant != dp.RDP || s.Accountant != dp.Tight || s.EpsilonLower == 0 {
		t.Errorf("delivered sigma 1: %v, simulated sigma 360: %v", d, s)
	}
}

// Where the noise is too narrow for the tight accountant its guarantee says which one bounds it.
func TestNarrowNoise(t *testing.T) {
	for b2, integer := range map[int64]bool{399: true, 400: false} {
		e, err := dp.ReleaseSpec{SamplingRate: 1, NoiseMultiplier: 1, NoiseScale: 1, B2: b2}.Event(10)
		if err != nil {
			t.Fatal(err)
		}
		if g, err := Epsilon([]dp.Event{e}, 1e-6, dp.Tight); err != nil || (g.Accountant == dp.RDP) != integer {
			t.Errorf("sigma^2 = %d: %v at order %v, %v", b2, g, g.RDPOrder, err)
		}
	}
}

// A round without noise has no epsilon, whoever asks.
func TestNoAccountantTakesARoundWithoutNoise(t *testing.T) {
	e, err := dp.ReleaseSpec{Round: 3, SamplingRate: 0.5, B2: 100, Unnoised: true}.Event(3)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []func([]dp.Event, float64, dp.Accountant) (dp.Guarantee, error){Epsilon, VisibleEpsilon, SimulatedEpsilon} {
		for _, how := range []dp.Accountant{dp.Tight, dp.RDP} {
			if _, err := f([]dp.Event{testEvent(t, 1), e}, 1e-6, how); !errors.Is(err, dp.ErrUnnoised) {
				t.Errorf("%v: %v", how, err)
			}
		}
	}
}
