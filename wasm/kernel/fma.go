package kernel

import (
	"math"
	"unsafe"
)

// FMA returns x*y + z, rounded once: what fused products do for every term. math.FMA would round twice, to float64 and to
// float32. Here the product of two float32 is exact in float64, and the sum is rounded
// to odd: towards the neighbour whose last bit is 1 where it is not exact. That
// keeps it off every midpoint of float32, denormal ones included, as float64 has more
// than two bits to spare, so that the second rounding is right (Boldo and Melquiond,
// "Emulation of a FMA and correctly rounded sums", IEEE Transactions on
// Computers 57, 2008).
func FMA(x, y, z float32) float32 {
	p, c := float64(x)*float64(y), float64(z)
	s := p + c
	// What the sum lacks, exactly (Knuth's TwoSum). NaN where s is infinite or NaN, and no sum overflows float64.
	t := s - p
	lost := (p - (s - t)) + (c - t)
	if bits := math.Float64bits(s); bits&1 == 0 && (lost > 0 || lost < 0) {
		if lost > 0 == (s > 0) {
			bits++
		} else {
			bits--
		}
		s = math.Float64frombits(bits)
	}
	return float32(s)
}

// fusedPlain is tilePlain with one rounding a term.
func fusedPlain(w *words) {
	t := (*tile)(unsafe.Pointer(w))
	c := unsafe.Slice(t.c, t.cols)
	var sum [panel]float32
	if t.add != 0 {
		copy(sum[:], c)
	}
	a, b := t.a, t.b
	for k := t.k; ; {
		x := *a
		for j, y := range (*[panel]float32)(unsafe.Pointer(b))[:t.cols] {
			sum[j] = FMA(x, y, sum[j])
		}
		if k--; k == 0 {
			break
		}
		a, b = at(a, t.term), at(b, 4*panel)
	}
	copy(c, sum[:])
}
