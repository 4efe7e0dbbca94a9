package accounting

import (
	"errors"
	"math"

	"github.com/starling-fl/starling/dp"
)

// errTooFine means that a grid of that step would need too many cells.
var errTooFine = errors.New("privacy loss grid too fine")

// maxCells bounds every array of the tight accountant (128 MiB as complex128).
const maxCells = 1 << 22

// cells is the privacy loss of one round on a grid: P the world with the member
// present, Q without, loss l(x) = log(P/Q), increasing in x. Cell k, where the loss
// is between nodes a = base + k*h and b = a + h, is kept as
//
//	above[k] = P(cell) - exp(a)*Q(cell) = integral of Q*exp(a)*g
//	below[k] = exp(b)*Q(cell) - P(cell) = integral of Q*exp(a)*(exp(h)-1-g)
//
// with g = exp(l(x)-a) - 1 in [0, exp(h)-1]: two integrals of positive functions,
// which lose no relative accuracy however fine the grid is. P and Q of the cell
// follow from them without subtraction.
type cells struct {
	h     float64
	base  float64 // loss of node 0
	above []float64
	below []float64

	left, right []lump // mass below a node that no cell has, and mass above one
}

// lump is mass under P and under Q beyond a node.
type lump struct {
	node int
	p, q float64
}

// newCells discretises p with step h. The mass under Q left out on the left and
// that under P on the right (Q, where right is the larger) are about left and right.
func newCells(p dp.Part, h, left, right float64) (*cells, error) {
	all := p.Mixed()
	c, err := cellsOf(all[0], h, left, right, len(all) > 1)
	for _, w := range all[1:] {
		var more *cells
		if err == nil {
			more, err = cellsOf(w, h, left, right, true)
		}
		if err == nil {
			c, err = c.with(more)
		}
	}
	return c, err
}

// with adds other cells of the same step; loss 0 is a node of both.
func (c *cells) with(d *cells) (*cells, error) {
	at, from := math.Round(c.base/c.h), math.Round(d.base/d.h)
	first := min(at, from)
	last := max(at+float64(len(c.above)), from+float64(len(d.above)))
	if !(last-first < maxCells) {
		return nil, errTooFine
	}
	n := int(last - first)
	sum := &cells{h: c.h, base: first * c.h, above: make([]float64, n), below: make([]float64, n)}
	for _, x := range []*cells{c, d} {
		shift := int(math.Round(x.base/x.h) - first)
		for i := range x.above {
			sum.above[shift+i] += x.above[i]
			sum.below[shift+i] += x.below[i]
		}
		for _, l := range x.left {
			sum.left = append(sum.left, lump{l.node + shift, l.p, l.q})
		}
		for _, l := range x.right {
			sum.right = append(sum.right, lump{l.node + shift, l.p, l.q})
		}
	}
	return sum, nil
}

// cells are those of a round without hits; with zeroNode, loss 0 is one of their nodes.
func cellsOf(p dp.Weighted, h, left, right float64, zeroNode bool) (*cells, error) {
	z, z2 := p.Z, p.Z*p.Z
	xMin, xMax := -z*tailPoint(left), 1+z*tailPoint(right)
	if right > left {
		xMax--
	}
	q := p.Q
	c := &cells{h: h}
	// Node k has loss off + shift + k*h; off is the least loss there is.
	var off, shift, ratio float64
	if q < 1 {
		off = math.Log1p(-q)
		ratio = off - math.Log(q)
		shift = bulkShift(q, z, h)
		if p.Seen < 1 || zeroNode {
			shift = math.Mod(-off, h) // loss 0 is a node: of a seen coin's round most of the mass is there
		}
	}
	edge := func(k float64) float64 { // x where the loss is that of node k
		t := shift + k*h
		switch {
		case q == 1:
			return 0.5 + z2*t
		case t <= 0:
			return math.Inf(-1)
		case t > 700:
			return 0.5 + z2*(t+ratio)
		}
		return 0.5 + z2*(math.Log(math.Expm1(t))+ratio)
	}
	index := func(x float64) float64 { // inverse of edge, as a real number
		e := (x - 0.5) / z2
		switch {
		case q == 1:
		case e-ratio > 36:
			e -= ratio
		default:
			e = math.Log1p(math.Exp(e - ratio))
		}
		return (e - shift) / h
	}
	kLo, kHi := math.Floor(index(xMin)), math.Ceil(index(xMax))
	if q < 1 {
		kLo = max(kLo, -1)
	}
	zero := math.Floor((-off - shift) / h) // the cell of loss 0
	if p.Seen < 1 {
		kLo, kHi = min(kLo, zero), max(kHi, zero+1)
	}
	kHi = max(kHi, kLo+2)
	if !(kHi-kLo < maxCells) {
		return nil, errTooFine
	}
	n := int(kHi - kLo)
	c.base = off + shift + kLo*h
	c.above, c.below = make([]float64, n), make([]float64, n)
	scale := p.Seen * p.Weight
	eh := math.Expm1(h)
	x := edge(kLo)
	if math.IsInf(x, -1) {
		x = xMin
	}
	start := x
	for i := range n {
		t := shift + (kLo+float64(i))*h // of the cell's lower node
		la := off + t                   // exp(la)*Q*g is what is integrated
		if q < 1 && kLo+float64(i) < 0 {
			// The first cell: g = exp(-t)*(1 + G) - 1, G = q/(1-q)*exp((2x-1)/(2z^2)).
			lead := math.Exp(-0.5/z2 - ratio - t)
			lift := math.Expm1(-t)
			next := edge(kLo + float64(i) + 1)
			c.above[i], c.below[i] = integrate(x, next, z, eh, la, func(_, x float64) float64 { return lift + lead*math.Exp(x/z2) })
			x = next
		} else {
			next, rho := 0.0, 1.0 // g = rho*expm1((x-edge)/z2)
			switch {
			case q == 1:
				next = edge(kLo + float64(i) + 1)
			case t > 30:
				next = x + z2*h // to 1e-13 of a step
			default:
				rho = -math.Expm1(-t)
				next = x + z2*math.Log1p(math.Exp(t)*eh/math.Expm1(t))
			}
			c.above[i], c.below[i] = integrate(x, next, z, eh, la, func(u, _ float64) float64 { return rho * math.Expm1(u/z2) })
			x = next
		}
		c.above[i] *= scale
		c.below[i] *= scale
	}
	if i, none := int(zero-kLo), (1-p.Seen)*p.Weight; p.Seen < 1 {
		// Without the seen coin the loss is 0.
		c.above[i] += none * max(0, -math.Expm1(off+shift+zero*h))
		c.below[i] += none * max(0, math.Expm1(off+shift+(zero+1)*h))
	}
	pOf := func(t0, t1 float64) float64 { return scale * ((1-q)*upperTail(t0) + q*upperTail(t1)) }
	c.right = []lump{{n, pOf(x/z, (x-1)/z), scale * upperTail(x/z)}}
	c.left = []lump{{0, pOf(-start/z, -(start-1)/z), scale * upperTail(-start/z)}}
	return c, nil
}

// bulkShift places the grid of a sampled part: for rare members nearly all mass
// is within a few steps, or far less than one, of loss 0. With a node at t above the
// least loss log(1-q) the two cells beside it together have exactly its likelihood
// ratio, exp(t)*(1-q), so that merging them loses nothing.
func bulkShift(q, z, h float64) float64 {
	at := func(t float64) float64 { // x where the loss is t above the least
		if t <= 0 {
			return math.Inf(-1)
		}
		return 0.5 + z*z*(math.Log(math.Expm1(t))+math.Log1p(-q)-math.Log(q))
	}
	mass := func(a, b float64) float64 { // of N(0,1) between a and b
		if a > 0 {
			return upperTail(a) - upperTail(b)
		}
		return upperTail(-b) - upperTail(-a)
	}
	zero := -math.Log1p(-q)
	lo, hi := max(0, zero-h), zero+h
	for range 60 {
		t := (lo + hi) / 2
		x0, x1 := at(t-h), at(t+h)
		mean := q / (1 - q) * mass((x0-1)/z, (x1-1)/z) / (mass(x0/z, x1/z) + 1e-300)
		if mean > math.Expm1(t) {
			lo = t
		} else {
			hi = t
		}
	}
	return min(max(math.Mod(hi, h), 1e-9*h), (1-1e-9)*h)
}

// Gauss-Legendre nodes and weights on [0, 1].
var (
	gauss2 = legendre{{0.21132486540518712, 0.5}, {0.7886751345948129, 0.5}}
	gauss4 = legendre{
		{0.06943184420297371, 0.17392742256872692}, {0.33000947820757187, 0.3260725774312731},
		{0.6699905217924281, 0.3260725774312731}, {0.9305681557970263, 0.17392742256872692},
	}
	gauss8 = legendre{
		{0.019855071751231884, 0.05061426814518813}, {0.10166676129318664, 0.11119051722668724},
		{0.2372337950418355, 0.15685332293894363}, {0.40828267875217511, 0.18134189168918100},
		{0.59171732124782489, 0.18134189168918100}, {0.7627662049581645, 0.15685332293894363},
		{0.89833323870681336, 0.11119051722668724}, {0.98014492824876812, 0.05061426814518813},
	}
)

type legendre [][2]float64

// integrate returns the integrals of exp(la)*phi_z*g and exp(la)*phi_z*(top-g) over
// [x0, x1], phi_z the density of N(0, z^2). With w the width in units of the scale on which
// the integrand changes, the relative error of the m-point rule is below
// w^(2m)*(m!)^4/((2m+1)*((2m)!)^2*(2m)!): 6e-14 (2 points, w < 0.004), 4e-14 (4, w < 0.3),
// 1e-18 (8, w < 2); wider cells are cut.
func integrate(x0, x1, z, top, la float64, g func(u, x float64) float64) (above, below float64) {
	if !(x1 > x0) {
		return 0, 0
	}
	rate := (1 + max(math.Abs(x0), math.Abs(x1))/z + 1/z) / z
	w := (x1 - x0) * rate
	rule, panels := gauss8, 1
	switch {
	case w < 0.004:
		rule = gauss2
	case w < 0.3:
		rule = gauss4
	case w > 2:
		panels = int(math.Ceil(w / 2))
	}
	width := (x1 - x0) / float64(panels)
	inv := 1 / (2 * z * z)
	for i := range panels {
		start := width * float64(i)
		for _, nw := range rule {
			u := start + width*nw[0]
			x := x0 + u
			f := nw[1] * math.Exp(la-x*x*inv)
			v := g(u, x)
			above += f * v
			below += f * max(top-v, 0)
		}
	}
	norm := width / (z * math.Sqrt(2*math.Pi))
	return above * norm, below * norm
}

// pessimistic returns the mass under P at nodes 0..n of a pair that dominates
// the true one: the mass of each cell is split between its two nodes so that both
// P and Q of the cell are kept ("connect the dots", Doroshenko et al. 2022). Mass under Q
// at a node is mass under P times exp(-loss).
func (c *cells) pessimistic() []float64 {
	n := len(c.above)
	out := make([]float64, n+1)
	eh := math.Expm1(c.h)
	r := (1 + eh) / eh
	for i := range n {
		out[i] += c.below[i] / eh
		out[i+1] += c.above[i] * r
	}
	return out
}
