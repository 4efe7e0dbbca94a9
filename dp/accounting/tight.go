package accounting

import (
	"errors"
	"math"

	"github.com/starling-fl/starling/dp"
)

// bounds hold an epsilon.
type bounds struct{ lower, upper float64 }

// The relative distance of the bounds at which refinement ends: for results, and
// on the way to a calibrated parameter.
const (
	fineGap   = 2e-5
	coarseGap = 2e-3
)

// goal is when refinement ends: when the bounds are gap apart, relatively, or, on the
// way to a calibrated parameter, when they say roughly how far they are from near.
type goal struct{ gap, near float64 }

// far holds for bounds that are on one side of near, a tenth away or more, and are
// less than a quarter apart: what is searched is elsewhere, and which way they say.
func (g goal) far(b bounds) bool {
	return g.near > 0 && (b.upper < 0.9*g.near || b.lower > 1.1*g.near) && b.upper-b.lower < 0.25*b.upper
}

// minTightNoise: below it only closed forms and the Rényi bound are used.
const minTightNoise = 0.05

// tailShare is the part of delta spent on losses beyond the grid, which count as
// infinite. Cutting there also keeps the tilted mass from piling up at its end.
const tailShare = 1e-6

// tightEpsilon bounds epsilon at delta of the composed parts, both directions of
// add/remove. rdp is the Rényi accountant's result, a valid upper bound.
func tightEpsilon(parts []dp.Part, delta, rdp float64, want goal) (bounds, error) {
	if b, ok := closedForm(parts, delta); ok {
		return b, nil
	}
	for _, p := range parts {
		// No use is made of so little noise but to state that it protects nobody; its
		// losses span more than a grid holds, or than float64 has exponents for.
		for _, w := range p.Mixed() {
			if p.Z < minTightNoise || w.Q == 1 && p.Z < 0.1 && !symmetric(parts) {
				return bounds{upper: rdp}, nil
			}
		}
	}
	remove, err := direction(parts, delta, false, rdp, 0, want)
	if err != nil {
		return bounds{}, err
	}
	if symmetric(parts) || addBelow(parts, delta, remove.upper) {
		return remove, nil
	}
	add, err := direction(parts, delta, true, rdp, remove.upper, want)
	if err != nil {
		return bounds{}, err
	}
	return bounds{lower: max(remove.lower, add.lower), upper: max(remove.upper, add.upper)}, nil
}

// symmetric: without amplification x -> 1-x swaps the two worlds.
func symmetric(parts []dp.Part) bool {
	for _, p := range parts {
		if p.Q < 1 {
			return false
		}
	}
	return true
}

// closedForm solves what needs no convolution: Gaussians without sampling
// (their composition is one Gaussian), and a single sampled round.
func closedForm(parts []dp.Part, delta float64) (bounds, bool) {
	const ulps = 1e-11 // relative error of the closed forms
	wrap := func(eps float64) bounds {
		return bounds{lower: eps * (1 - ulps), upper: eps * (1 + ulps)}
	}
	mu2, all := 0.0, true
	for _, p := range parts {
		mu2 += float64(p.Rounds) / (p.Z * p.Z)
		all = all && p.Q == 1 && p.Seen == 1 && p.Hit.Prob == 0
	}
	mu := math.Sqrt(mu2)
	if all {
		return wrap(gaussianEpsilon(math.Log(delta), mu)), true
	}
	if len(parts) != 1 || parts[0].Rounds != 1 || parts[0].Seen < 1 || parts[0].Hit.Prob > 0 {
		return bounds{}, false
	}
	// Direction remove: delta(eps) = q*deltaGauss(eps'), exp(eps) = 1 + q*(exp(eps')-1).
	q := parts[0].Q
	if delta >= q {
		return bounds{}, true
	}
	inner := gaussianEpsilon(math.Log(delta/q), mu)
	eps := inner + math.Log(q)
	if inner < 600 {
		eps = math.Log1p(q * math.Expm1(inner))
	}
	b := wrap(eps)
	// Direction add: delta(eps) = c*deltaGauss(-log(c/(q*exp(eps)))), c = 1-(1-q)*exp(eps),
	// 0 where c is not positive. It is the smaller one for a single round;
	// checked here rather than trusted.
	if c := -math.Expm1(b.lower + math.Log1p(-q)); c > 0 {
		if math.Log(c)+gaussianLogDelta(b.lower+math.Log(q/c), mu) > math.Log(delta)+1e-9 {
			return bounds{}, false
		}
	}
	return b, true
}

// addBelow reports whether a Chernoff bound already shows that direction "add"
// needs no more than eps. The moments are the rigorous ones of momentReal in
// the other direction, by Mironov et al. 2019 theorem 5 at most those of "remove"; it
// takes the coarse plan only to choose where to look, and a cell grid to prove.
func addBelow(parts []dp.Part, delta, eps float64) bool {
	pl := newPlan(parts, true, delta*1e-9)
	most, total := 0.0, 0.0 // the largest loss of this direction is bounded
	for _, p := range parts {
		total += float64(p.Rounds)
		for _, w := range p.Mixed() {
			most -= float64(p.Rounds) * math.Log1p(-w.Q)
		}
	}
	if most < eps*(1-1e-9) {
		return true
	}
	// The least s with K(s) - s*eps + s*log(s) - (s+1)*log(1+s) well below log(delta):
	// the smaller s, the coarser a grid shows it.
	at := 0.0
	for s := 0.25; s < 1e7; s *= 1.5 {
		k, _, _ := pl.cumulant(s)
		if k-s*eps+s*math.Log(s)-(s+1)*math.Log1p(s) < math.Log(delta)-1 {
			at = s
			break
		}
	}
	if at == 0 {
		return false
	}
	// Proof: the same bound on pessimistic grids.
	h := 1 / (at + 1) / 4
	k, lost := 0.0, 0.0
	for _, p := range parts {
		h := min(h, 0.25*math.Sqrt(12/(total*at*(at+1))))
		c, err := newCells(p, h, delta*1e-6/total, 1e-3/total)
		if err != nil {
			return false
		}
		g := newGrid(c, p.Rounds, true)
		k += float64(p.Rounds) * (g.logMoment(g.pess, h, at) + cellError)
		lost += float64(p.Rounds) * g.infinite
	}
	logDelta := k - at*eps + at*math.Log(at) - (at+1)*math.Log1p(at)
	return math.Exp(logDelta)+lost <= delta
}

// direction bounds epsilon in one direction. It starts on a coarse grid and
// refines: the error is of second order in the step. An upper bound of enough is
// good enough.
func direction(parts []dp.Part, delta float64, flip bool, rdp, enough float64, want goal) (bounds, error) {
	total, target := 0.0, want.gap
	for _, p := range parts {
		total += float64(p.Rounds)
	}
	tail := delta * tailShare / total
	pl := newPlan(parts, flip, tail)
	out := bounds{lower: 0, upper: rdp} // always valid
	slope, eps := pl.guess(delta)
	h, before, lastH := 0.0, math.Inf(1), math.Inf(1)
	precise, most := false, maxCells
	guess := func(r float64) func(float64) float64 { return func(float64) float64 { return r } }
	rounding := guess(total * 2e-13) // until a composition says
	for round := range 14 {
		tilt, lo, hi, sLo, sHi := pl.choose(slope, eps, delta, rounding, target)
		if !(hi > lo) {
			return out, nil
		}
		if h == 0 {
			h = (hi - lo) / (1 << 13)
			h = min(h, 0.3*math.Sqrt(12/(total*(slope+1)*(slope+1)+1)))
		}
		// A grid scatters each loss over its cell.
		spread := 6 * math.Sqrt(total) * h
		lo, hi = lo-spread, hi+spread
		h = max(h, 1.01*(hi-lo)/float64(most))
		// Transforms have sizes of powers of two: rather a little coarser than twice as long.
		if _, over := math.Frexp((hi - lo) / h); math.Ldexp(h, over-1)*1.15 > hi-lo {
			h = math.Ldexp(hi-lo, 1-over) * (1 + 1e-9)
		}
		if h > 0.9*lastH && !math.IsInf(before, 1) {
			return out, nil // no finer grid fits
		}
		c, err := attempt(parts, flip, precise, h, tail, total, tilt, lo, hi, sLo, sHi)
		if errors.Is(err, errTooFine) || errors.Is(err, errNoBounds) {
			if round == 0 {
				h *= 4
				continue
			}
			return out, nil
		}
		if err != nil {
			return out, err
		}
		b, newSlope, inside := c.epsilon(delta, out)
		if inside {
			out.lower, out.upper = max(out.lower, b.lower), min(out.upper, b.upper)
		}
		gap := out.upper - out.lower
		if gap <= target*out.upper || out.upper < 1e-12 || out.upper <= enough || want.far(out) {
			return out, nil
		}
		if !precise && c.rounding(b.upper, delta) > 0.1*target*max(newSlope, slope)*out.upper {
			precise, most, rounding = true, maxPrecise, guess(2e-14)
			before, lastH = math.Inf(1), math.Inf(1)
			eps = out.upper
			if newSlope > 0.05*slope {
				slope = newSlope
			}
			continue
		}
		flat := func(t float64) float64 { return 1 + 1/(t*(hi-lo)) } // the weights at frequency 0
		unit := 2 * c.errSum / c.peak() / flat(tilt)
		rounding = func(t float64) float64 { return unit * flat(t) }
		if !inside {
			slope, h, before = slope/2, 0, math.Inf(1)
			continue
		}
		if !(newSlope > 0.05*slope) {
			before = math.Inf(1)
			if b.upper >= c.start+float64(c.n)*c.h*(1-1e-9) {
				slope *= 3 // the answer is beyond the window
			} else if h < 1.02*(hi-lo)/float64(most) {
				return out, nil
			} else {
				h /= 8 // the grid is too coarse to show a slope
			}
			continue
		}
		if gap > 0.8*before && round > 2 {
			return out, nil // rounding, not the step, limits it
		}
		eps = out.upper
		if newSlope > 1e-2 {
			slope = newSlope
		}
		// The error is of second order in the step, of first where the grid does not
		// resolve the bulk of rare members yet: go by what the last step did.
		power := 2.0
		if !math.IsInf(before, 1) && h < 0.9*lastH {
			power = min(max(math.Log(before/gap)/math.Log(lastH/h), 0.7), 2)
		}
		before, lastH = gap, h
		shrink := min(math.Pow(0.7*target*out.upper/gap, 1/power), 0.9)
		if precise && power < 1.8 {
			shrink = max(shrink, 1.0/8) // each step costs: none too many, none too fine
		}
		h *= max(shrink, 1.0/64)
	}
	return out, nil
}

func attempt(parts []dp.Part, flip, precise bool, h, tail, total, tilt, lo, hi, sLo, sHi float64) (*composed, error) {
	grids := make([]grid, 0, len(parts))
	for _, p := range parts {
		right := tail
		if flip {
			// Losses far below zero only need to be counted, not resolved.
			right = 1e-8 / total
		}
		c, err := newCells(p, h, tail, right)
		if err != nil {
			return nil, err
		}
		grids = append(grids, newGrid(c, p.Rounds, flip))
	}
	if precise {
		return newPrecise(grids, h, tilt, lo, hi, sLo, sHi)
	}
	return newComposed(grids, h, tilt, lo, hi, sLo, sHi)
}

// rounding is the part of delta at eps that stands for rounding errors.
func (c *composed) rounding(eps, delta float64) float64 {
	norm := 1 / (c.h*c.tilt*(c.tilt+1) + 1e-300)
	end := c.errEnd * math.Exp(-c.tilt*(c.start+float64(c.n)*c.h-eps))
	return (c.errSum + c.errEach*norm + end) * math.Exp(c.logUp-c.tilt*eps) / delta
}

// epsilon solves delta(eps) = delta for both bounds, where known holds it already.
// slope is -d log(delta)/d eps there. inside says that the answer is in the window.
func (c *composed) epsilon(delta float64, known bounds) (b bounds, slope float64, inside bool) {
	top := c.start + float64(c.n)*c.h
	floor := max(c.start, 0)
	// Logarithms of the bounds over delta: every evaluation has both.
	upper := func(e float64) float64 { _, u := c.delta(e); return math.Log(u / delta) }
	lower := func(e float64) float64 { l, _ := c.delta(e); return math.Log(l/delta + 1e-300) }
	from, to := floor, min(max(known.upper, floor), top)
	if known.lower > floor && known.lower < to && upper(known.lower) > 0 {
		from = known.lower
	}
	switch atFrom, atTo := upper(from), upper(to); {
	case atFrom <= 0:
		b.upper = from
	case atTo > 0:
		b.upper = to
	default:
		_, b.upper = crossing(upper, from, to, atFrom, atTo)
	}
	_, u0 := c.delta(b.upper)
	_, u1 := c.delta(b.upper + 4*c.h)
	slope = math.Log(u0/u1) / (4 * c.h)
	inside = floor == 0 || b.upper > floor*(1+1e-9)
	// Far below, the lower bound of delta drowns in rounding and is 0: look for the
	// crossing from above, first where it is when both fall alike.
	atUpper := lower(b.upper)
	step := 1e-6 * b.upper
	if atUpper > -100 && slope > 0 {
		step = max(-1.1*atUpper/slope, 1e-9*b.upper)
	}
	for ; step > 0; step *= 4 {
		at := max(floor, b.upper-step)
		if l := lower(at); l > 0 {
			b.lower, _ = crossing(lower, at, b.upper, l, atUpper)
			break
		}
		if at == floor {
			break
		}
	}
	b.upper += c.slack
	b.lower = max(0, b.lower-c.slack)
	if floor == 0 && upper(0) <= 0 {
		b.upper = 0
	}
	return b, slope, inside
}

// crossing brackets the point where f falls below 0, f(lo) = flo > 0 >= f(hi) = fhi,
// to 1e-9 relative: by secants, kept inside the bracket, and bisection.
func crossing(f func(eps float64) float64, lo, hi, flo, fhi float64) (below, above float64) {
	for i := 0; i < 100 && hi-lo > 1e-9*hi+1e-300; i++ {
		mid := (lo + hi) / 2
		if i%4 != 3 && fhi > -600 {
			mid = lo + (hi-lo)*flo/(flo-fhi)
			// A little to the side of the farther end, which comes close that way.
			edge := max(0.45e-9*hi, 1e-3*(hi-lo))
			if mid-lo < hi-mid {
				mid += edge
			} else {
				mid -= edge
			}
			mid = min(max(mid, lo+0.1*edge), hi-0.1*edge)
		}
		if v := f(mid); v > 0 {
			lo, flo = mid, v
		} else {
			hi, fhi = mid, v
		}
	}
	return lo, hi
}
