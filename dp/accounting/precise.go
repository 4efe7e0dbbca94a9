package accounting

import "math"

// Where rare rounds cost much (tiny sampling rate, tiny delta), the composed
// distribution has entries far below the rounding error of a float64 transform times
// the number of rounds. There the characteristic function is computed in
// double arithmetic, which leaves T*1e-28 of that error, its logarithm is multiplied
// by T, and delta is summed over frequencies (Parseval) rather than over losses, so
// that nothing is cancelled.

// maxPrecise bounds the size of a precise transform (64 bytes an entry and more).
const maxPrecise = 1 << 22

// frequency is one point of the product of all parts' characteristic functions,
// times what the weights of delta() have there, for either sequence.
type frequency struct {
	at                int        // position in bit-reversed order
	pessFall, optFall complex128 // times (x1-x2)/((1-x1)*(1-x2)), see preciseSums
	pessRest, optRest complex128 // times 1/(1-x1)
}

// sums are the real parts of all frequencies, turned to one index.
type sums struct{ pessFall, pessRest, optFall, optRest float64 }

// newPrecise is newComposed in double arithmetic.
func newPrecise(grids []grid, h, tilt, lo, hi, sLo, sHi float64) (*composed, error) {
	n := 64
	for float64(n)*h < hi-lo {
		if n *= 2; n > maxPrecise {
			return nil, errTooFine
		}
	}
	c := &composed{h: h, n: n, tilt: tilt}
	size := n/2 + 1
	index := make([]int32, 0, size) // positions with i <= conjugateAt(i)
	for i := range n {
		if conjugateAt(i) >= i {
			index = append(index, int32(i))
		}
	}
	logs := make([][4]float64, len(index)) // log|pess|, arg pess, log|opt|, arg opt
	errs := make([]float64, len(index))    // bound on the relative error of either value
	rho := 2 * float64(log2(n)) * doubleUnit
	var m moments
	if err := m.collect(c, grids, h, tilt, sLo, sHi); err != nil {
		return nil, err
	}
	a := make([]doubleComplex, n)
	for at, g := range grids {
		clear(a)
		mean := 0.0
		for i := range g.pess {
			mean += float64(i) * scaled(g.pess[i], tilt*(g.base+float64(i)*h)-m.up[at])
		}
		origin := int(mean) // index 0 of the transform: phases stay small
		m.first += float64(g.rounds) * float64(origin) * h
		for i := range g.pess {
			e := tilt * (g.base + float64(i)*h)
			x := &a[(i-origin)&(n-1)]
			x.re = x.re.add(double{scaled(g.pess[i], e-m.up[at]), 0})
			x.im = x.im.add(double{scaled(g.opt[i], e-m.low[at]), 0})
		}
		doubleFFT(a)
		r := float64(g.rounds)
		for k, i := range index {
			u, v := split(a[i], a[conjugateAt(int(i))])
			lu, au := logPolar(u)
			lv, av := logPolar(v)
			logs[k][0] += r * lu
			logs[k][1] += r * au
			logs[k][2] += r * lv
			logs[k][3] += r * av
			// The transform's error over the value's size, r times; the logarithm's and
			// the angle's rounding.
			small := math.Exp(min(lu, lv))
			errs[k] += r*rho/max(small, 1e-300) + 4*0x1p-53*r*(math.Abs(lu)+math.Abs(au)+math.Abs(lv)+math.Abs(av))
		}
	}
	c.finish(grids, &m, lo, hi, sLo, sHi)
	d1, d2, r1, gap := c.weightTerms()
	r2 := r1 * math.Exp(-h)
	bound, boundEnd := 0.0, 0.0
	for k, i := range index {
		l := max(logs[k][0], logs[k][2])
		sin, cosHalf := math.Sincos(phaseOf(int(i), n, 1) / 2)
		a1 := math.Sqrt(d1*d1 + 4*r1*sin*sin)
		a2 := math.Sqrt(d2*d2 + 4*r2*sin*sin)
		share := 2.0
		if conjugateAt(int(i)) == int(i) {
			share = 1
		}
		// 40u covers the exponential, the phases and the sum over frequencies.
		err := math.Exp(min(l, 1)) * min(math.Expm1(min(errs[k], 700))+40*0x1p-53, 1e6)
		if l < -90 { // left out
			err += math.Exp(l)
		}
		bound += share * err * (gap/(a1*a2) + h/a1)
		boundEnd += share * err * (gap/(a1*a2) + 1/a1)
		if l < -90 {
			continue
		}
		// x = r*exp(-i*w), 1-x = (1-r) + 2r*sin(w/2)^2 + i*r*sin(w).
		sinW := 2 * sin * cosHalf
		q1 := complex(d1+2*r1*sin*sin, r1*sinW)
		q2 := complex(d2+2*r2*sin*sin, r2*sinW)
		rest := complex(share/float64(n), 0) / q1
		fall := rest * complex(gap*(1-2*sin*sin), -gap*sinW) / q2
		u, v := polar(logs[k][0], logs[k][1]), polar(logs[k][2], logs[k][3])
		c.freq = append(c.freq, frequency{int(i), u * fall, v * fall, u * rest, v * rest})
	}
	c.errSum, c.errEnd = 1.01*bound/float64(n), 1.01*boundEnd/float64(n)
	c.ends = c.turned(c.shift + int64(n))
	c.begun, c.begins = -1, sums{}
	return c, nil
}

// split separates the transforms of two real sequences that were packed as
// re + i*im, in double arithmetic. y is the value at the opposite frequency.
func split(x, y doubleComplex) (u, v doubleComplex) {
	half := func(d double) double { return double{d.hi / 2, d.lo / 2} }
	u = doubleComplex{half(x.re.add(y.re)), half(x.im.add(y.im.neg()))}
	// (x - conj(y))/(2i)
	v = doubleComplex{half(x.im.add(y.im)), half(y.re.add(x.re.neg()))}
	return u, v
}

// logPolar returns log|x| and arg x; log|x| to relative accuracy near |x| = 1.
func logPolar(x doubleComplex) (logAbs, arg float64) {
	e := x.re.mul(x.re).add(double{-1, 0}).add(x.im.mul(x.im))
	m := e.hi + e.lo
	if m <= -1 {
		return math.Inf(-1), 0
	}
	return math.Log1p(m) / 2, math.Atan2(x.im.hi, x.re.hi)
}

func polar(l, arg float64) complex128 {
	if l < -700 {
		return 0
	}
	s, c := math.Sincos(arg)
	e := math.Exp(l)
	return complex(e*c, e*s)
}

// weightTerms are the constants of the weights' transform: 1-|x1|, 1-|x2|, |x1| and
// |x1-x2|, with x1 = exp(-tilt*h), x2 = exp(-(tilt+1)*h).
func (c *composed) weightTerms() (d1, d2, r1, gap float64) {
	r1 = math.Exp(-c.tilt * c.h)
	return -math.Expm1(-c.tilt * c.h), -math.Expm1(-(c.tilt + 1) * c.h), r1, r1 * -math.Expm1(-c.h)
}

// preciseSums are the weighted sums of delta(): over k from first to the end of
// the window of y[k]*exp(-tilt*d)*(1-exp(-d)), d = s + (k-first)*h. y[k] is the inverse
// transform, so the sum over k is a geometric series for every frequency:
//
//	a/(1-x1) - b/(1-x2) = b*(x1-x2)/((1-x1)*(1-x2)) + (a-b)/(1-x1),
//
// a = exp(-tilt*s), b = a*exp(-s), less the same from the end of the window on.
func (c *composed) preciseSums(first int, s float64) (up, low float64) {
	if first >= c.n {
		return 0, 0
	}
	if c.begun != first { // the sums are the same all over a cell
		c.begun, c.begins = first, c.turned(c.shift+int64(first))
	}
	add := func(t sums, d, sign float64) {
		a := sign * math.Exp(-c.tilt*d)
		b, rest := a*math.Exp(-d), -a*math.Expm1(-d)
		up += b*t.pessFall + rest*t.pessRest
		low += b*t.optFall + rest*t.optRest
	}
	add(c.begins, s, 1)
	add(c.ends, s+float64(c.n-first)*c.h, -1)
	return up, low
}

// turned sums the frequencies as they are at index k of the losses.
func (c *composed) turned(k int64) sums {
	var t, carry sums
	add := func(sum, carry *float64, x float64) {
		y := x - *carry
		t := *sum + y
		*carry = (t - *sum) - y
		*sum = t
	}
	for _, f := range c.freq {
		sin, cos := math.Sincos(phaseOf(f.at, c.n, k))
		add(&t.pessFall, &carry.pessFall, real(f.pessFall)*cos+imag(f.pessFall)*sin)
		add(&t.pessRest, &carry.pessRest, real(f.pessRest)*cos+imag(f.pessRest)*sin)
		add(&t.optFall, &carry.optFall, real(f.optFall)*cos+imag(f.optFall)*sin)
		add(&t.optRest, &carry.optRest, real(f.optRest)*cos+imag(f.optRest)*sin)
	}
	return t
}
