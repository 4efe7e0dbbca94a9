package accounting

import "math"

// optimistic returns the mass under P at nodes 0..n of a pair that the true
// one dominates, because it is a post-processing of it: fractions of neighbouring
// cells are merged so that the likelihood ratio of what is merged is exactly
// that of a node. To node i, cell i offers a surplus above[i] and cell i-1 a deficit
// below[i-1]; equal amounts of both make the node. If a cell has a rest that no
// partner takes, the rest is merged with mass of a node further out, and what fits
// nowhere is rounded to the node where it counts less: the lower one in direction
// remove, the upper one (flip) in direction add.
//
// Going up while masses grow and down while they fall keeps the fractions near
// one half: the other way round every deviation would be amplified.
func (c *cells) optimistic(flip bool) []float64 {
	n := len(c.above)
	eh := math.Expm1(c.h)
	m := merger{
		cells: c,
		flip:  flip,
		out:   make([]float64, n+1),
		eh:    eh,
	}
	peak, best := 0, 0.0
	for i := range n {
		if v := c.above[i] + c.below[i]; v > best {
			peak, best = i, v
		}
	}
	// Upwards: nodes 1..peak. rest is the fraction of cell i-1 not yet used.
	rest := 1.0
	for i := 1; i <= peak; i++ {
		deficit := rest * c.below[i-1]
		switch {
		case deficit <= 0: // nothing to merge with: all of cell i goes up
			m.round(i-1, rest)
			rest = 1
		case deficit <= c.above[i]:
			f := deficit / c.above[i]
			m.out[i] += rest*m.mass(i-1) + f*m.mass(i)
			rest = 1 - f
		default:
			f := c.above[i] / c.below[i-1]
			m.out[i] += f*m.mass(i-1) + m.mass(i)
			m.round(i-1, m.lower(i-1, rest-f))
			rest = 0
		}
	}
	left := rest // of the peak's cell
	// Downwards: nodes n-1..peak+1. rest is the fraction of cell i not yet used.
	rest = 1.0
	for i := n - 1; i > peak; i-- {
		avail := 1.0
		if i-1 == peak {
			avail = left
		}
		surplus := rest * c.above[i]
		deficit := avail * c.below[i-1]
		switch {
		case surplus <= 0:
			m.round(i, rest)
			rest = avail
		case surplus <= deficit:
			f := surplus / c.below[i-1]
			m.out[i] += rest*m.mass(i) + f*m.mass(i-1)
			rest = avail - f
		default:
			f := deficit / c.above[i]
			m.out[i] += f*m.mass(i) + avail*m.mass(i-1)
			m.round(i, m.raise(i, rest-f))
			rest = 0
		}
		if i-1 == peak {
			left = rest
		}
	}
	// What is left of the peak's cell has its partners on one side or the other.
	m.round(peak, m.raise(peak, m.lower(peak, left)))
	return m.out
}

type merger struct {
	cells *cells
	flip  bool
	out   []float64
	eh    float64
}

// mass is P of cell i.
func (m *merger) mass(i int) float64 {
	return (m.cells.above[i]*(1+m.eh) + m.cells.below[i]) / m.eh
}

// reach is how many nodes away lower and raise look for partners, where a cell's
// own neighbours are used up.
const reach = 64

// lower merges a fraction f of cell j with mass at nodes below j into node j and
// returns the fraction for which there was none.
func (m *merger) lower(j int, f float64) (rest float64) {
	for k := j - 1; k >= 0 && k >= j-reach && f > 0; k-- {
		// The deficit against node j of unit mass at node k.
		need := f * m.cells.above[j] / math.Expm1(float64(j-k)*m.cells.h)
		if !(need > 0) {
			break
		}
		take := min(need, m.out[k])
		part := f * take / need
		m.out[k] -= take
		m.out[j] += take + part*m.mass(j)
		f -= part
	}
	return f
}

// raise merges a fraction f of cell j with mass at nodes above j+1 into node j+1
// and returns the fraction for which there was none.
func (m *merger) raise(j int, f float64) (rest float64) {
	for k := j + 2; k < len(m.out) && k <= j+1+reach && f > 0; k++ {
		// The surplus against node j+1 of unit mass at node k.
		need := f * m.cells.below[j] / -math.Expm1(-float64(k-j-1)*m.cells.h)
		if !(need > 0) {
			break
		}
		take := min(need, m.out[k])
		part := f * take / need
		m.out[k] -= take
		m.out[j+1] += take + part*m.mass(j)
		f -= part
	}
	return f
}

// round puts a fraction f of cell j at one of its nodes: its mass under P at the
// lower one, or its mass under Q at the upper one.
func (m *merger) round(j int, f float64) {
	switch {
	case !(f > 0):
	case m.flip:
		m.out[j+1] += f * (m.mass(j) + m.cells.below[j]) // exp(upper node)*Q(cell)
	default:
		m.out[j] += f * m.mass(j)
	}
}
