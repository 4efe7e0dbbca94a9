package accounting

import (
	"math"

	"github.com/starling-fl/starling/dp"
)

// plan holds the single-round losses on a coarse grid of x, to choose a grid
// step, a tilt and a window. Nothing rigorous rests on it.
type plan struct {
	parts []planPart
	// flip: the direction "remove" (loss log P/Q under P) or "add" (log Q/P under Q).
	flip bool
}

type planPart struct {
	rounds    float64
	end       float64   // the largest loss
	loss, log []float64 // loss and log of the probability weight
}

func newPlan(parts []dp.Part, flip bool, tail float64) plan {
	pl := plan{flip: flip}
	t := tailPoint(tail)
	for _, p := range parts {
		pp := planPart{rounds: float64(p.Rounds), end: math.Inf(-1)}
		for _, w := range p.Mixed() {
			pp.add(w, t, flip)
		}
		pl.parts = append(pl.parts, pp)
	}
	return pl
}

// add takes in a round without hits, from tails of t standard deviations on.
func (pp *planPart) add(p dp.Weighted, t float64, flip bool) {
	q := p.Q
	h := min(0.2*p.Z, 0.4*p.Z*p.Z)
	lo, hi := -p.Z*t, 1+p.Z*t
	for i, n := 0, math.Ceil((hi-lo)/h); float64(i) <= n; i++ {
		x := lo + float64(i)*h
		u := (2*x - 1) / (2 * p.Z * p.Z)
		var l float64
		switch {
		case q == 1:
			l = u
		case u > 36:
			l = u + math.Log(q)
		default:
			l = math.Log1p(q * math.Expm1(u))
		}
		w := -x*x/(2*p.Z*p.Z) + math.Log(h/p.Z) - 0.5*math.Log(2*math.Pi)
		w += math.Log(p.Seen * p.Weight)
		if flip {
			l = -l
		} else {
			w += l
		}
		pp.loss = append(pp.loss, l)
		pp.log = append(pp.log, w)
		pp.end = max(pp.end, l)
	}
	if p.Seen < 1 {
		pp.loss = append(pp.loss, 0)
		pp.log = append(pp.log, math.Log1p(-p.Seen)+math.Log(p.Weight))
		pp.end = max(pp.end, 0)
	}
}

// cumulant returns K(s), the log of the composed loss's moment generating
// function, and its first two derivatives.
func (pl plan) cumulant(s float64) (k, k1, k2 float64) {
	for _, p := range pl.parts {
		top := math.Inf(-1)
		for i, l := range p.loss {
			top = max(top, p.log[i]+s*l)
		}
		var m0, m1, m2 float64
		for i, l := range p.loss {
			e := p.log[i] + s*l - top
			if e < -60 {
				continue
			}
			w := math.Exp(e)
			m0 += w
			m1 += w * l
			m2 += w * l * l
		}
		m1 /= m0
		m2 = max(m2/m0-m1*m1, 0)
		k += p.rounds * (top + math.Log(m0))
		k1 += p.rounds * m1
		k2 += p.rounds * m2
	}
	return k, k1, k2
}

// guess returns an epsilon near which delta holds, by Chernoff's bound on
// the truncated losses, and the tilt at which the bound is attained: the slope of
// -log delta there.
func (pl plan) guess(delta float64) (slope, eps float64) {
	eps = math.Inf(1)
	try := func(t float64) {
		k, _, _ := pl.cumulant(t)
		if e := (k - math.Log(delta) + t*math.Log(t) - (t+1)*math.Log1p(t)) / t; e < eps {
			eps, slope = e, t
		}
	}
	for t := 1e-3; t < 1e9; t *= 2 {
		try(t)
	}
	for f := math.Sqrt2; f > 1.04; f = math.Sqrt(f) {
		c := slope
		try(c * f)
		try(c / f)
	}
	return slope, max(eps, 0)
}

// choose picks a tilt and a window for a delta expected near eps, where log delta
// falls with the given slope. The slope itself is the natural tilt. Where
// rare large losses make the tail heavy, such a tilt would move all mass to the far
// end, and a smaller one needs a far narrower window; the transform's absolute error
// limits how small: rounding says what that error is, about.
func (pl plan) choose(slope, eps, delta float64, rounding func(tilt float64) float64, target float64) (tilt, lo, hi, sLo, sHi float64) {
	type candidate struct{ tilt, k, scale float64 }
	// What may be missed of delta, as a logarithm: a relative error r in delta is one of
	// r/(slope*eps) in epsilon.
	spare := math.Log(delta) + math.Log(target*max(1, slope*eps))
	var fit []candidate // from the slope downwards
	least := candidate{slope, 0, math.Inf(1)}
	for t := slope; t > 1e-3*slope && t > 1e-3; t /= 1.1 {
		k, _, _ := pl.cumulant(t)
		// log of the weight that the tilted mass has at eps, and of the largest
		// factor it is multiplied with (see composed.delta).
		scale := k - t*eps + t*math.Log(t) - (t+1)*math.Log1p(t)
		if scale+math.Log(rounding(t)) < spare+math.Log(0.1) {
			fit = append(fit, candidate{t, k, scale})
		} else if scale < least.scale {
			least = candidate{t, k, scale}
		}
	}
	if len(fit) == 0 {
		fit = []candidate{least}
	}
	best := math.Inf(1)
	for step, i := max(1, len(fit)/8), 0; ; i += step {
		i = min(i, len(fit)-1)
		c := fit[i]
		// Mass beyond the window wraps to where it weighs at most as much as any; mass
		// above it counts as infinite loss besides, at full weight.
		wrapped, lost := min(-14, spare+math.Log(0.02)-c.scale), spare+math.Log(0.02)-c.k
		l, u, sl, sh := pl.window(c.tilt, func(edge float64) float64 { return min(wrapped, lost+c.tilt*edge) })
		if w := u - l; w < 0.9*best || i == 0 {
			best = w
			tilt, lo, hi, sLo, sHi = c.tilt, l, u, sl, sh
		}
		if i == len(fit)-1 {
			return tilt, lo, hi, sLo, sHi
		}
	}
}

// window returns losses lo < hi outside of which the composed loss, tilted by
// exp(s*L), falls with a log probability below logTail of the edge each (Chernoff), and
// the exponents that show it.
func (pl plan) window(s float64, logTail func(edge float64) float64) (lo, hi, sLo, sHi float64) {
	k, k1, k2 := pl.cumulant(s)
	sd := math.Sqrt(k2) + 1e-300
	find := func(sign float64) (edge, at float64) {
		rate := func(d float64) (float64, float64) {
			kk, kk1, _ := pl.cumulant(s + sign*d)
			return kk - k - sign*d*kk1, kk1
		}
		a, b := 0.0, math.Sqrt(max(2, -2*logTail(k1)))/sd
		edge = k1
		for range 60 {
			r, m := rate(b)
			if r <= logTail(m) {
				break
			}
			if b*sd > 1e4 || math.Abs(m-edge) < 1e-6*math.Abs(m) {
				// The end of the support; grids reach a little further.
				return m + sign*0.02*math.Abs(m-k1), s + sign*b
			}
			edge = m
			a, b = b, 2*b
		}
		for range 25 {
			mid := (a + b) / 2
			if r, m := rate(mid); r <= logTail(m) {
				b = mid
			} else {
				a = mid
			}
			if b-a < 0.02*b {
				break
			}
		}
		_, edge = rate(b)
		return edge, s + sign*b
	}
	hi, sHi = find(1)
	lo, sLo = find(-1)
	return lo, hi, sLo, sHi
}
