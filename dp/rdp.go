package dp

import (
	"math"
)

// Orders are searched between these; a list that stops at 63 reports 0.140
// where 0.0019 is available.
const (
	minOrder = 1.001
	maxOrder = 65536
)

// rdpSlack covers quadrature and rounding in a Rényi divergence, relatively.
const rdpSlack = 1e-11

// renyi returns the Rényi divergence of order a of one round of p, the larger of
// the two directions of add/remove adjacency (Mironov, Talwar, Zhang 2019,
// theorem 5), as an upper bound within 1e-10 relative.
func (p Part) renyi(a float64) float64 {
	return p.logMomentM1(a).log1p() / (a - 1) * (1 + rdpSlack)
}

// logReal is a non-negative real number held as its logarithm.
type logReal float64

// log1p returns log(1+x).
func (l logReal) log1p() float64 {
	if l > 36 {
		return float64(l)
	}
	return math.Log1p(math.Exp(float64(l)))
}

// logMomentM1 is log(A-1), A = E_Q[(P/Q)^a], a > 1. Minus 1, because A is within
// 1e-14 of 1 where q is 1e-5, and T rounds of that count.
func (p Part) logMomentM1(a float64) logReal {
	if p.Hit.Prob > 0 {
		// Who knows which rounds are hit sees a mixture: its moment is the mean.
		var acc logSum
		for _, w := range p.Mixed() {
			acc.add(math.Log(w.Weight) + float64(w.logMomentM1(a)))
		}
		return logReal(acc.value())
	}
	logSeen := math.Log(p.Seen)
	switch {
	case p.Q == 1:
		x := a * (a - 1) / (2 * p.Z * p.Z)
		logE := x // log(exp(x) - 1)
		if x < 36 {
			logE = math.Log(math.Expm1(x))
		}
		return logReal(logE + logSeen)
	case a == math.Trunc(a) && a <= 256:
		return momentInteger(p.Q, p.Z, int(a)) + logReal(logSeen)
	}
	return momentReal(p.Q, p.Z, a) + logReal(logSeen)
}

// momentInteger is the binomial sum for integer orders:
// A-1 = sum over k >= 2 of binom(a,k) q^k (1-q)^(a-k) (exp(k(k-1)/(2z^2)) - 1),
// which is exact for discrete Gaussians on integer vectors too.
func momentInteger(q, z float64, a int) logReal {
	var acc logSum
	logBinom := 0.0
	for k := 1; k <= a; k++ {
		logBinom += math.Log(float64(a-k+1) / float64(k))
		if k < 2 {
			continue
		}
		x := float64(k) * float64(k-1) / (2 * z * z)
		logE := x
		if x < 36 {
			logE = math.Log(math.Expm1(x))
		}
		acc.add(logBinom + float64(k)*math.Log(q) + float64(a-k)*math.Log1p(-q) + logE)
	}
	return logReal(acc.value())
}

// momentReal is the same for any order, as an integral: with
// u(x) = q*(exp((2x-1)/(2z^2)) - 1), which has mean 0 under Q = N(0, z^2),
//
//	A-1 = E_Q[(1+u)^a - 1 - a*u],
//
// whose integrand is positive (Bernoulli's inequality) and analytic in the strip
// |Im x| < pi*z^2, so that the trapezoidal rule converges like exp(-2 pi^2 z^2/h)
// and exp(-2 pi^2 z^2/h^2); the steps below leave 1e-13. It replaces the series of Mironov et
// al., section 3.3, whose terms alternate in sign; a test holds the two together.
func momentReal(q, z, a float64) logReal {
	h := min(0.5*z, 0.55*z*z)
	var acc logSum
	lo, hi := -13*z, a+13*z
	for i := math.Floor(lo / h); i*h <= hi; i++ {
		x := i * h
		e := (2*x - 1) / (2 * z * z)
		u := q * math.Expm1(min(e, 600))
		l := a * math.Log1p(u)
		var logF float64
		switch {
		case e > 600:
			l = e + math.Log(q) // log(u), and log(1+u)
			logF = a*l + math.Log1p(-a*math.Exp(-(a-1)*l))
		case math.Abs(a*u) < 1e-2:
			logF = math.Log(binomialTail(a, u))
		case (a-1)*l > 40*a:
			logF = l
		case l > 36: // a*u counts where a is close to 1
			logF = l + math.Log1p(-a*math.Exp(math.Log(u)-l))
		default:
			logF = math.Log(math.Expm1(l) - a*u)
		}
		acc.add(logF - x*x/(2*z*z))
	}
	return logReal(acc.value() + math.Log(h/z) - 0.5*math.Log(2*math.Pi))
}

// binomialTail is (1+u)^a - 1 - a*u for |a*u| < 0.01.
func binomialTail(a, u float64) float64 {
	term := a * (a - 1) / 2 * u * u
	sum := 0.0
	for k := 3.0; math.Abs(term) > 1e-18*math.Abs(sum) && k < 40; k++ {
		sum += term
		term *= u * (a - k + 1) / k
	}
	return sum + term
}

// logSum adds numbers given by their logarithms.
type logSum struct {
	top, sum float64
	any      bool
}

func (s *logSum) add(l float64) {
	switch {
	case math.IsInf(l, -1):
	case !s.any:
		s.top, s.sum, s.any = l, 1, true
	case l <= s.top:
		if l > s.top-50 {
			s.sum += math.Exp(l - s.top)
		}
	default:
		s.sum = s.sum*math.Exp(s.top-l) + 1
		s.top = l
	}
}

func (s *logSum) value() float64 {
	if !s.any {
		return math.Inf(-1)
	}
	return s.top + math.Log(s.sum)
}

// RDPToEpsilon converts a Rényi divergence rho of order a (Canonne, Kamath,
// Steinke 2020, proposition 12), clamped at 0.
func RDPToEpsilon(rho, a, delta float64) float64 {
	return max(0, rho+math.Log1p(-1/a)-(math.Log(delta)+math.Log(a))/(a-1))
}

// divergence composes the parts at one order.
func divergence(parts []Part, a float64) float64 {
	rho := 0.0
	for _, p := range parts {
		if p.Q < 1 && a+26*p.Z > 3e4*min(0.5*p.Z, 0.55*p.Z*p.Z) {
			// An order far beyond the useful ones, whose integral would take long:
			// the divergence without sampling is a bound.
			rho += float64(p.Rounds) * a / (2 * p.Z * p.Z)
			continue
		}
		rho += float64(p.Rounds) * p.renyi(a)
	}
	return rho
}

// rdpEpsilonAt bounds epsilon of the parts at one order.
func rdpEpsilonAt(parts []Part, a, delta float64) float64 {
	return RDPToEpsilon(divergence(parts, a), a, delta)
}

// rdpEpsilon does so at the best order.
func rdpEpsilon(parts []Part, delta float64, integerOnly bool) (eps, order float64) {
	return BestOrder(integerOnly, func(a float64) float64 { return rdpEpsilonAt(parts, a, delta) })
}

// BestOrder minimises f over the orders: a grid in log(a-1), then golden-section
// search around its best point. Any order gives a valid bound, so a search that
// stops early is loose, never wrong. With integerOnly the orders are integers.
func BestOrder(integerOnly bool, f func(a float64) float64) (least, order float64) {
	least, order = math.Inf(1), minOrder
	try := func(a float64) float64 {
		if integerOnly {
			a = math.Round(a)
		}
		a = min(max(a, minOrder), maxOrder)
		if integerOnly && a < 2 {
			a = 2
		}
		e := f(a)
		if math.IsNaN(e) {
			e = math.Inf(1)
		}
		if e < least {
			least, order = e, a
		}
		return e
	}
	lo, hi := math.Log(minOrder-1), math.Log(maxOrder-1)
	const steps = 36
	best, bestAt := math.Inf(1), 0
	for i := 0; i <= steps; i++ {
		if e := try(1 + math.Exp(lo+(hi-lo)*float64(i)/steps)); e < best {
			best, bestAt = e, i
		}
	}
	w := (hi - lo) / steps
	a, b := lo+w*float64(bestAt-1), lo+w*float64(bestAt+1)
	const inv = 0.6180339887498949
	c, d := b-inv*(b-a), a+inv*(b-a)
	fc, fd := try(1+math.Exp(c)), try(1+math.Exp(d))
	for range 26 {
		if fc <= fd {
			b, d, fd = d, c, fc
			c = b - inv*(b-a)
			fc = try(1 + math.Exp(c))
		} else {
			a, c, fc = c, d, fd
			d = a + inv*(b-a)
			fd = try(1 + math.Exp(d))
		}
	}
	if integerOnly {
		for k := -3.0; k <= 3; k++ {
			try(order + k)
		}
	}
	return least, order
}

// Divergence bounds the composition's Rényi divergence at an order. Noise whose masses are
// within exp(eta) of a continuous one's adds what that ratio can.
func (c Composition) Divergence(a float64) float64 {
	return divergence(c.Parts, a) + c.Eta*(2*a-1)/(a-1)
}
