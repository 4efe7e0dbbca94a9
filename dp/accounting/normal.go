package accounting

import "math"

// upperTail is P[N(0,1) > t], to relative accuracy.
func upperTail(t float64) float64 { return 0.5 * math.Erfc(t/math.Sqrt2) }

// mills is upperTail(x)/phi(x), phi the standard normal density, x > -8.
func mills(x float64) float64 {
	if x < 6 {
		return upperTail(x) * math.Exp(x*x/2) * math.Sqrt(2*math.Pi)
	}
	f := x // Laplace's continued fraction x + 1/(x + 2/(x + 3/...))
	for k := 60.0; k >= 1; k-- {
		f = x + k/f
		if math.IsInf(f, 0) {
			return 1 / x
		}
	}
	return 1 / f
}

// gaussianLogDelta is the logarithm of the least delta at eps of a Gaussian
// mechanism whose sensitivity is mu standard deviations (Balle, Wang 2018,
// theorem 8): Phi(mu/2 - eps/mu) - exp(eps)*Phi(-mu/2 - eps/mu).
func gaussianLogDelta(eps, mu float64) float64 {
	a := eps/mu - mu/2
	if a < -6 { // delta is near 1 - exp(eps)*tail: no cancellation
		return math.Log(upperTail(a) - math.Exp(eps+math.Log(upperTail(a+mu))))
	}
	// exp(eps)*phi(a+mu) = phi(a)
	var diff float64
	if mu > 1e-3 {
		diff = mills(a) - mills(a+mu)
	} else {
		// -mu*R' at the middle; R'(x) = x*R(x) - 1, relative error mu^2.
		x := a + mu/2
		diff = mu * (1 - x*mills(x))
		if x > 20 { // 1 - x*R(x) cancels: its asymptotic series
			x2 := x * x
			diff = mu / x2 * (1 - 3/x2*(1-5/x2*(1-7/x2)))
		}
	}
	return -a*a/2 - 0.5*math.Log(2*math.Pi) + math.Log(diff)
}

// gaussianEpsilon solves gaussianLogDelta for eps by bisection and returns the
// end where delta holds. Relative accuracy 1e-9.
func gaussianEpsilon(logDelta, mu float64) float64 {
	if gaussianLogDelta(0, mu) <= logDelta {
		return 0
	}
	lo, hi := 0.0, mu*mu/2+mu
	for gaussianLogDelta(hi, mu) > logDelta {
		lo, hi = hi, 2*hi
	}
	for range 200 {
		mid := lo + (hi-lo)/2
		if hi-lo <= 1e-13*hi {
			break
		}
		if gaussianLogDelta(mid, mu) > logDelta {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// tailPoint returns t > 0 with upperTail(t) at most p, and close to it. (The
// library's inverse works on 1-p and knows nothing below 1e-16.)
func tailPoint(p float64) float64 {
	p = min(max(p, 1e-300), 0.4)
	lo, hi := 0.0, 38.0
	for range 50 {
		if mid := (lo + hi) / 2; upperTail(mid) > p {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}
