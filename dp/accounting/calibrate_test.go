package accounting

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/starling-fl/starling/dp"
)

// refine finds the least x to 5e-5 with few full bounds, whatever the slope and
// wherever the cheap ones lie; the answer's own bound is within the target.
func TestRefineTakesFewFullBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	snap := func(x float64) float64 { return roundUp(x, 7) }
	most := 0
	for range 2000 {
		target := math.Exp(rng.NormFloat64() * 2)
		root := math.Exp(rng.NormFloat64() * 3)
		steep, bend := 0.5+12*rng.Float64(), rng.Float64()
		share := rng.Float64()
		full := map[float64]float64{}
		f := func(x float64, want query) (bounds, error) {
			l := math.Log(x / root)
			e := target * math.Exp(-steep*l+bend*l*l/(1+l*l))
			of := func(gap float64) bounds { return bounds{e * (1 - gap*share), e * (1 + gap*(1-share))} }
			b := of(fineGap)
			if want.coarse {
				if b = of(0.2 * rng.Float64()); !(goal{near: want.near}).far(b) {
					b = of(coarseGap * rng.Float64())
				}
			}
			if !want.coarse {
				full[x] = b.upper
			}
			return b, nil
		}
		got, err := refine(target, root*math.Exp(rng.NormFloat64()), 1e-9, 1e9, snap, f)
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := full[got]; !ok || e > target {
			t.Fatalf("%v has epsilon %v (computed: %t), asked for %v", got, e, ok, target)
		}
		least := root * math.Exp(fineGap*(1-share)/steep)
		if got > least*(1+5e-5) {
			t.Fatalf("%v is %v above the least, slope %v", got, got/least-1, steep)
		}
		most = max(most, len(full))
	}
	if most > 5 {
		t.Errorf("%d full bounds for one answer", most)
	}
	// Where even the least x is within, it is the answer; where none is, there is none.
	flat := func(e float64) func(float64, query) (bounds, error) {
		return func(float64, query) (bounds, error) { return bounds{e, e}, nil }
	}
	if x, err := refine(2, 5, 1, 100, snap, flat(1)); err != nil || x != 1 {
		t.Errorf("everything is within: %v, %v", x, err)
	}
	if _, err := refine(2, 5, 1, 100, snap, flat(3)); !errors.Is(err, ErrUnreachable) {
		t.Errorf("nothing is within: %v", err)
	}
}

// Bounds that need to be rough only far from a target hold the full ones, and say on
// which side they are.
func TestRoughBoundsFarAway(t *testing.T) {
	for _, m := range []dp.Mechanism{{SamplingRate: 0.01, NoiseMultiplier: 0.8}, {SamplingRate: 1e-4, NoiseMultiplier: 0.5}, {SamplingRate: 1e-6, NoiseMultiplier: 0.7}} {
		events := []dp.Event{dp.Rounds(m, 1000)}
		full, err := account(events, 1e-9, dp.Tight, query{})
		if err != nil {
			t.Fatal(err)
		}
		for _, near := range []float64{0.02, 0.7, 0.95, 1, 1.05, 1.4, 50} {
			target := near * full.Epsilon
			rough, err := account(events, 1e-9, dp.Tight, query{coarse: true, near: target})
			if err != nil {
				t.Fatal(err)
			}
			if rough.Epsilon < full.EpsilonLower || rough.EpsilonLower > full.Epsilon {
				t.Errorf("%v near %v: %v to %v, in full %v to %v", m, near, rough.EpsilonLower, rough.Epsilon, full.EpsilonLower, full.Epsilon)
			}
			apart := (rough.Epsilon - rough.EpsilonLower) / rough.Epsilon
			if far := rough.Epsilon < 0.9*target || rough.EpsilonLower > 1.1*target; !far && apart > 1.1*coarseGap || apart > 0.25 {
				t.Errorf("%v near %v: bounds are %v apart", m, near, apart)
			}
		}
	}
}

// What is found is held against the whole target: an answer that is a thousandth above it is none.
func TestCalibratedIsVerified(t *testing.T) {
	if x, err := verified(1, 1, 7, func(float64) (float64, error) { return 1.0005, nil }); !errors.Is(err, ErrUnreachable) {
		t.Errorf("%v, %v", x, err)
	}
	x, err := verified(1, 1, 7, func(x float64) (float64, error) { return 1.000008 / x, nil })
	if err != nil || x < 1.000008 || x > 1.00003 {
		t.Errorf("%v, %v: want the next answers that hold", x, err)
	}
}
