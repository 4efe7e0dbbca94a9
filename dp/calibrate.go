package dp

import (
	"fmt"
	"math"
)

// CalibrateNoise returns the least noise multiplier z for which rounds rounds
// at sampling rate q stay within (epsilon, delta), rounded up to 7 significant
// digits and verified: Epsilon at the returned z is at most epsilon.
func CalibrateNoise(epsilon, delta, q float64, rounds int, acct Accountant) (z float64, err error) {
	if !(epsilon > 0) || math.IsInf(epsilon, 1) {
		return 0, fmt.Errorf("dp: target epsilon %v, want finite and positive", epsilon)
	}
	if rounds < 1 {
		return 0, fmt.Errorf("dp: %d rounds, want at least 1", rounds)
	}
	f := func(z float64) (float64, error) {
		g, err := Epsilon([]Event{Rounds(Mechanism{SamplingRate: q, NoiseMultiplier: z}, rounds)}, delta, acct)
		return g.Epsilon, err
	}
	return calibrate(epsilon, f)
}

func calibrate(epsilon float64, f func(z float64) (float64, error)) (float64, error) {
	lo, hi := 0.0, 1.0
	for range 60 {
		e, err := f(hi)
		if err != nil {
			return 0, err
		}
		if e <= epsilon {
			break
		}
		lo, hi = hi, hi*2
	}
	for hi-lo > 1e-8*hi {
		mid := (lo + hi) / 2
		e, err := f(mid)
		if err == nil && e <= epsilon {
			hi = mid
		} else {
			lo = mid
		}
	}
	z := roundUp(hi, 7)
	e, err := f(z)
	if err != nil {
		return 0, err
	}
	if e > epsilon {
		return 0, fmt.Errorf("dp: calibration failed: z %v gives epsilon %v, target %v", z, e, epsilon)
	}
	return z, nil
}

// roundUp rounds x > 0 up to a number of significant decimal digits.
func roundUp(x float64, digits int) float64 {
	unit := math.Pow(10, float64(digits-1)-math.Floor(math.Log10(x)))
	return math.Ceil(x*unit) / unit
}
