package accounting

import (
	"errors"
	"math"
	"math/bits"
)

// errNoBounds means that the grid at hand gives no bound at this delta.
var errNoBounds = errors.New("no bound at this grid")

// grid is one part, discretised: masses under the first distribution of the
// direction at losses base + k*h.
type grid struct {
	rounds   int
	base     float64
	pess     []float64
	opt      []float64
	infinite float64 // mass at infinite loss, pessimistic only
}

// newGrid lays out a part's cells for one direction.
func newGrid(c *cells, rounds int, flip bool) grid {
	g := grid{rounds: rounds, base: c.base, pess: c.pessimistic(), opt: c.optimistic(flip)}
	n := len(g.pess)
	if !flip {
		for _, l := range c.left {
			g.pess[l.node] += l.p // rounded up
		}
		for _, l := range c.right {
			g.infinite += l.p
		}
		return g
	}
	// Loss -node under Q; mass under Q is mass under P times exp(-node).
	for i := range n {
		e := -(c.base + float64(i)*c.h)
		g.pess[i] = scaled(g.pess[i], e)
		g.opt[i] = scaled(g.opt[i], e)
	}
	for i, j := 0, n-1; i < j; i, j = i+1, j-1 {
		g.pess[i], g.pess[j] = g.pess[j], g.pess[i]
		g.opt[i], g.opt[j] = g.opt[j], g.opt[i]
	}
	g.base = -(c.base + float64(n-1)*c.h)
	for _, l := range c.right {
		g.pess[n-1-l.node] += l.q
	}
	for _, l := range c.left {
		g.infinite += l.q
	}
	return g
}

// logMoment is the log of the sum of mass*exp(s*loss).
func (g grid) logMoment(mass []float64, h, s float64) float64 {
	top := math.Inf(-1)
	for i, m := range mass {
		if m > 0 {
			top = max(top, math.Log(m)+s*float64(i)*h)
		}
	}
	if math.IsInf(top, -1) {
		return top
	}
	var sum, carry float64 // Kahan: the result is multiplied by the rounds
	for i, m := range mass {
		if m <= 0 {
			continue
		}
		e := s*float64(i)*h - top
		if e < -800 {
			continue
		}
		y := m*math.Exp(e) - carry
		t := sum + y
		carry = (t - sum) - y
		sum = t
	}
	return top + math.Log(sum) + s*g.base
}

// composed is the distribution of the total loss on a window, tilted by
// exp(tilt*L) and normalised, for the pessimistic and the optimistic grid.
type composed struct {
	h, start float64 // loss of index 0
	n        int
	tilt     float64
	logUp    float64 // log of the tilted mass before it was normalised
	logLow   float64
	y        []complex128 // real: pessimistic, imaginary: optimistic
	errEach  float64      // bound on the inverse transform's error in every entry of either
	errSum   float64      // bound on the weighted sum of the errors made before it, over an endless window
	errEnd   float64      // what the window's end adds to it, times exp(-tilt*distance)
	cellErr  float64      // bound on the relative error of either from the cells, and of the sums
	lost     float64      // pessimistic: probability of a loss above the window or infinite
	wrapped  float64      // optimistic: tilted probability outside the window
	slack    float64      // bound on rounding of the losses themselves
	shift    int64        // index of start, counted from the origin of the transform
	freq     []frequency  // in place of y, for a precise one
	ends     sums         // of freq at the end of the window
	begins   sums         // and at index begun, which was asked for last
	begun    int
}

// cellError bounds the relative error of a cell's masses: quadrature, the
// exponentials in it and the position of x.
const cellError = 4e-13

func newComposed(grids []grid, h, tilt, lo, hi, sLo, sHi float64) (*composed, error) {
	n := 1
	for float64(n)*h < hi-lo {
		n *= 2
		if n > maxCells {
			return nil, errTooFine
		}
	}
	n = max(n, 64)
	c := &composed{h: h, n: n, tilt: tilt}
	var m moments
	if err := m.collect(c, grids, h, tilt, sLo, sHi); err != nil {
		return nil, err
	}
	power := make([]complex128, n)
	var weight []float64                  // prod over parts of (|phi| + rho)^(rounds-1), larger of the two
	rho := 2 * float64(log2(n)) * fftUnit // two sequences of 1-norm 1 in one transform
	for at, g := range grids {
		a := make([]complex128, n)
		for i := range g.pess {
			e := tilt * (g.base + float64(i)*h)
			a[i&(n-1)] += complex(scaled(g.pess[i], e-m.up[at]), scaled(g.opt[i], e-m.low[at]))
		}
		fft(a)
		if at == 0 {
			weight = make([]float64, n)
			for i := range power {
				power[i], weight[i] = 0, 1
			}
		}
		raise(power, weight, a, g.rounds, rho, at == 0)
	}
	c.boundErrors(weight, m.rounds, rho)
	ifft(power)
	c.y = power
	c.finish(grids, &m, lo, hi, sLo, sHi)
	rot := int(c.shift % int64(n))
	if rot < 0 {
		rot += n
	}
	rotate(c.y, rot)
	return c, nil
}

// moments are sums over the parts that both ways of composing need.
type moments struct {
	rounds      float64
	first, last float64   // lowest and highest total loss
	up, low     []float64 // log of each part's tilted mass, pessimistic and optimistic
	pessHi      float64   // log moments of the total at the exponents of the window
	optHi       float64
	optLo       float64
}

func (m *moments) collect(c *composed, grids []grid, h, tilt, sLo, sHi float64) error {
	for _, g := range grids {
		r := float64(g.rounds)
		kp, ko := g.logMoment(g.pess, h, tilt), g.logMoment(g.opt, h, tilt)
		if math.IsNaN(kp) || math.IsInf(kp, 0) || math.IsNaN(ko) || math.IsInf(ko, 0) {
			return errNoBounds
		}
		m.up, m.low = append(m.up, kp), append(m.low, ko)
		c.logUp += r * kp
		c.logLow += r * ko
		m.pessHi += r * g.logMoment(g.pess, h, sHi)
		m.optHi += r * g.logMoment(g.opt, h, sHi)
		m.optLo += r * g.logMoment(g.opt, h, sLo)
		c.lost += r * g.infinite
		m.rounds += r
		m.first += r * g.base
		m.last += r * (g.base + float64(len(g.pess)-1)*h)
		c.slack += r * math.Abs(g.base) * 0x1p-51
	}
	return nil
}

// finish places the window and counts what is outside of it.
func (c *composed) finish(grids []grid, m *moments, lo, hi, sLo, sHi float64) {
	c.cellErr = 1.01*m.rounds*cellError + 1e-9
	// Residue classes mod n*h: the window [start, start+n*h) has each once.
	c.shift = int64(math.Floor((lo - m.first) / c.h))
	lowest := 0.0
	for _, g := range grids {
		lowest += float64(g.rounds) * g.base
	}
	// Where n leaves room, the window begins at the least loss there is: nothing
	// is outside below.
	least := int64(math.Round((lowest - m.first) / c.h))
	if below := c.shift - least; below < int64(c.n)-int64(math.Ceil((hi-lo)/c.h)) {
		c.shift = least
	}
	c.start = m.first + float64(c.shift)*c.h
	c.slack += 0x1p-50 * (math.Abs(m.first) + math.Abs(c.start) + float64(c.n)*c.h)
	top := c.start + float64(c.n)*c.h
	if m.last > top-c.h {
		c.lost += math.Exp(m.pessHi - sHi*top)
		c.wrapped += math.Exp(min(0, m.optHi-c.logLow-(sHi-c.tilt)*top))
	}
	if least < c.shift {
		c.wrapped += math.Exp(min(0, m.optLo-c.logLow+(c.tilt-sLo)*c.start))
	}
}

// boundErrors fills errEach, errSum and errEnd. Every frequency of the product is off
// by at most (T*rho + 8*T*u)*(|phi|+rho)^(T-1), T the rounds: the transforms' error,
// amplified by the powers, and the powers' own. What of it reaches the weighted
// sum of delta() is found by Parseval's identity: the weights
// exp(-tilt*s)*(1-exp(-s)), s = s0, s0+h, ..., 0 <= s0 < h, have a transform below
// |x1-x2|/(|1-x1|*|1-x2|) + h/|1-x1|, x1 = exp(-tilt*h+i*theta), x2 = x1*exp(-h). That
// they end with the window takes away the same with s0 the distance of its end, which
// is below exp(-tilt*s0)*(|x1-x2|/(|1-x1|*|1-x2|) + 1/|1-x1|).
func (c *composed) boundErrors(weight []float64, total, rho float64) {
	r1, r2 := math.Exp(-c.tilt*c.h), math.Exp(-(c.tilt+1)*c.h)
	d1, d2 := -math.Expm1(-c.tilt*c.h), -math.Expm1(-(c.tilt+1)*c.h)
	gap := r1 * -math.Expm1(-c.h)
	each := total*rho + 8*total*0x1p-53
	sum, weighted, end := 0.0, 0.0, 0.0
	for i, w := range weight {
		sum += w
		if w < 1e-60 {
			weighted += w * (1/(d1*d2) + c.h/d1)
			end += w * (1/(d1*d2) + 1/d1)
			continue
		}
		s := math.Sin(math.Pi * float64(bits.Reverse64(uint64(i))>>11) * 0x1p-53)
		a1 := math.Sqrt(d1*d1 + 4*r1*s*s)
		a2 := math.Sqrt(d2*d2 + 4*r2*s*s)
		weighted += w * (gap/(a1*a2) + c.h/a1)
		end += w * (gap/(a1*a2) + 1/a1)
	}
	n := float64(c.n)
	// Both sequences travel in one, which doubles what an error can do.
	c.errSum, c.errEnd = 2.02*each*weighted/n, 2.02*each*end/n
	c.errEach = 2.02 * rho * sum / n
}

func log2(n int) int {
	k := 0
	for 1<<k < n {
		k++
	}
	return k
}

// scaled is m*exp(e) without overflow on the way.
func scaled(m, e float64) float64 {
	if m <= 0 {
		return 0
	}
	if e < 700 && e > -700 {
		return m * math.Exp(e)
	}
	return math.Exp(math.Log(m) + e)
}

// rotate moves index k to the front.
func rotate(a []complex128, k int) {
	if k == 0 {
		return
	}
	b := append(append(make([]complex128, 0, len(a)), a[k:]...), a[:k]...)
	copy(a, b)
}

// raise multiplies power by the part's transform to the rounds-th power,
// pessimistic and optimistic apart: the transform of re + i*im of two real
// sequences is split by its symmetry.
func raise(power []complex128, weight []float64, a []complex128, rounds int, rho float64, first bool) {
	for i := range a {
		j := conjugateAt(i)
		if j < i {
			continue
		}
		x, y := a[i], complex(real(a[j]), -imag(a[j]))
		u := (x + y) / 2
		v := (x - y) / 2
		v = complex(imag(v), -real(v)) // divided by i
		pu, wu := powered(u, rounds, rho)
		pv, wv := powered(v, rounds, rho)
		if !first {
			// power holds u + i*v of the parts before at both positions.
			bx, by := power[i], complex(real(power[j]), -imag(power[j]))
			bu := (bx + by) / 2
			bv := (bx - by) / 2
			bv = complex(imag(bv), -real(bv))
			pu *= bu
			pv *= bv
		}
		w := max(wu, wv)
		weight[i] *= w
		power[i] = pu + complex(-imag(pv), real(pv))
		if j != i {
			weight[j] *= w
			cu := complex(real(pu), -imag(pu))
			cv := complex(real(pv), -imag(pv))
			power[j] = cu + complex(-imag(cv), real(cv))
		}
	}
}

// powered returns x^n and (|x|+rho)^(n-1).
func powered(x complex128, n int, rho float64) (complex128, float64) {
	mag := math.Hypot(real(x), imag(x)) + rho
	w := 1.0
	if n > 1 {
		e := float64(n-1) * math.Log(mag)
		if e < -200 {
			return 0, math.Exp(-200)
		}
		w = math.Exp(e)
	}
	r := complex(1, 0)
	for b := x; n > 0; n >>= 1 {
		if n&1 == 1 {
			r *= b
		}
		b *= b
	}
	return r, w
}

// peak is the largest of the weights exp(-tilt*d)*(1-exp(-d)).
func (c *composed) peak() float64 {
	if c.tilt <= 0 {
		return 1
	}
	return math.Exp(c.tilt*math.Log(c.tilt) - (c.tilt+1)*math.Log1p(c.tilt))
}

// delta bounds the composed delta at eps.
func (c *composed) delta(eps float64) (lower, upper float64) {
	first := max(0, int(math.Ceil((eps-c.start)/c.h)))
	s := c.start + float64(first)*c.h - eps // distance of the first node
	if s < 0 {
		first++
		s += c.h
	}
	begin := min(first, c.n)
	var up, low, norm float64
	if c.freq != nil {
		up, low = c.preciseSums(first, s)
		first = c.n
	}
	step, stepF := math.Exp(-c.tilt*c.h), math.Exp(-c.h)
	for i := first; i < c.n; {
		// Weights by recurrence, anew every 256 nodes.
		d := s + float64(i-first)*c.h
		e := math.Exp(-c.tilt * d)
		f := math.Exp(-d)
		if e < 1e-60 {
			// What follows weighs less than this in all; it counts as an error.
			norm += e / -math.Expm1(-c.tilt*c.h)
			up += e
			break
		}
		for end := min(c.n, i+256); i < end; i++ {
			w := e * (1 - f)
			y := c.y[i]
			up += w * real(y)
			low += w * imag(y)
			norm += w
			e *= step
			f *= stepF
		}
	}
	missed := norm*c.errEach + c.errSum + c.errEnd*math.Exp(-c.tilt*(s+float64(c.n-begin)*c.h))
	up = max(up, 0) + missed
	low -= missed + c.wrapped*c.peak()
	upper = up*math.Exp(c.logUp-c.tilt*eps)*(1+c.cellErr) + c.lost
	if low > 0 {
		lower = low * math.Exp(c.logLow-c.tilt*eps) * (1 - c.cellErr)
	}
	if math.IsNaN(upper) {
		upper = 1
	}
	if math.IsNaN(lower) {
		lower = 0
	}
	return min(lower, 1), min(upper, 1)
}
