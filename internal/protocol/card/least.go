package card

import "math"

// seenDelta is the least delta at eps of so many rounds of a coin that is seen, each that it falls on a Gaussian of noise z: that of a
// Gaussian (Balle, Wang 2018, theorem 8), averaged over how many rounds a device is in. Whatever an accountant adds for
// hits, discreteness or small cohorts, a sound number is not below.
func seenDelta(rate, z float64, rounds int, eps float64) float64 {
	if !(rate > 0 && rate <= 1 && z > 0 && eps >= 0) || rounds < 1 {
		return 0
	}
	lg := func(n int) float64 { v, _ := math.Lgamma(float64(n + 1)); return v }
	mean := rate * float64(rounds)
	spread := 12*math.Sqrt(mean) + 40
	sum := 0.0
	for k := max(1, int(mean-spread)); k <= min(rounds, int(mean+spread)); k++ {
		p := 1.0
		if rate < 1 {
			p = math.Exp(lg(rounds) - lg(k) - lg(rounds-k) + float64(k)*math.Log(rate) + float64(rounds-k)*math.Log1p(-rate))
		} else if k < rounds {
			p = 0
		}
		sum += p * gaussianDelta(eps, math.Sqrt(float64(k))/z)
	}
	return sum
}

// gaussianDelta is 0 where doubles do not show it.
func gaussianDelta(eps, mu float64) float64 {
	tail := func(t float64) float64 { return 0.5 * math.Erfc(t/math.Sqrt2) }
	far := tail(eps/mu + mu/2)
	if far == 0 { // exp(eps) of it is not known
		return 0
	}
	return max(0, tail(eps/mu-mu/2)-math.Exp(eps+math.Log(far)))
}
