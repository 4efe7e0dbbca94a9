package quant

import (
	"math"
	"testing"
)

// moments integrates over a coordinate Z ~ N(0, 1) of a vector with the full
// clip norm: in grid units it is Z*Q/L, clipped to -Q..Q and rounded
// stochastically between neighbouring symbols. It returns the mean of the
// squared symbol; its standard deviation given the norm of the vector, that
// is, what is left after regression on Z^2 (the norm is fixed, so the sum of
// Z^2 over the coordinates does not vary); and the mean variance of rounding.
func moments(s Scheme) (m, sd, rounding float64) {
	const steps, reach = 200_000, 8.5
	q := float64(s.MaxSymbol())
	var m2, m4, cross float64
	cells := cellsOf(s)
	for i := range steps {
		z := -reach + 2*reach*(float64(i)+0.5)/steps
		w := math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) * 2 * reach / steps
		v := max(min(z*q/s.ClipPoint(), q), -q)
		lo, width := math.Floor(v), 1.0
		if cells != nil {
			c := cells[int(math.Floor(v+q))]
			lo, width = float64(int16(c)), float64(c>>16)
		}
		p := (v - lo) / width
		hi := lo + width
		e2 := (1-p)*lo*lo + p*hi*hi
		m2 += w * e2
		m4 += w * ((1-p)*math.Pow(lo, 4) + p*math.Pow(hi, 4))
		cross += w * e2 * (z*z - 1)
		rounding += w * p * (1 - p) * width * width
	}
	return m2, math.Sqrt(m4 - m2*m2 - cross*cross/2), rounding
}

// TestMoments recomputes the published constants of every scheme to the digits
// published.
func TestMoments(t *testing.T) {
	for _, name := range SchemeNames() {
		s, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		m, sd := s.Moments()
		gotM, gotSD, _ := moments(s)
		if math.Abs(gotM-m) > max(6e-5, 1e-8*m) {
			t.Errorf("%s: m is %v, published %v", name, gotM, m)
		}
		tol := max(6e-4, 1e-5*sd)
		if name == "fixed32" { // the difference of two numbers that agree to nine digits
			tol = 0.02 * sd
		}
		if math.Abs(gotSD-sd) > tol {
			t.Errorf("%s: sd is %v, published %v", name, gotSD, sd)
		}
	}
}

// TestWidths checks the bits and the largest shards of the design's table.
func TestWidths(t *testing.T) {
	for _, c := range []struct {
		scheme  string
		largest int
		bits    int
	}{
		{"nf4", 85, 11}, {"nf4", 42, 10}, {"int4", 73, 10}, {"int5", 68, 11}, {"int3", 85, 9}, {"int3", 42, 8},
		{"tern", 127, 8}, {"tern", 63, 7}, {"fixed16", 128, 16}, {"fixed32", 2048, 32}, {"nf4", 1, 5},
	} {
		s, err := Lookup(c.scheme)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Width(s, c.largest); err != nil || got != c.bits {
			t.Errorf("Width(%s, %d) = %d, %v, want %d", c.scheme, c.largest, got, err, c.bits)
		}
		over, err := Width(s, c.largest+1)
		fixed := s.spec.width != 0
		if fixed && err == nil {
			t.Errorf("Width(%s, %d) = %d, want an error", c.scheme, c.largest+1, over)
		}
		if !fixed && c.largest > 1 && over != c.bits+1 {
			t.Errorf("Width(%s, %d) = %d, want %d", c.scheme, c.largest+1, over, c.bits+1)
		}
	}
	for _, shard := range []int{0, -1, math.MaxInt} {
		if _, err := Width(NF4, shard); err == nil {
			t.Errorf("Width(nf4, %d) has no error", shard)
		}
	}
}

// TestVarianceEffects recomputes the design's table of what a scheme costs in
// variance: the squared sensitivity that the integer norm bound implies,
// relative to that of exact vectors with the same clip norm, counting the
// correction for clipped coordinates.
func TestVarianceEffects(t *testing.T) {
	for _, c := range []struct {
		scheme  string
		percent [3]float64 // at D = 8192, 139264, 1048576
		tol     float64
	}{
		{"nf4", [3]float64{5.0, 2.9, 2.5}, 0.06},
		{"int4", [3]float64{4.6, 3.0, 2.7}, 0.06},
		{"int5", [3]float64{2.0, 1.1, 0.9}, 0.06},
		{"int3", [3]float64{12.6, 9.8, 9.3}, 0.06},
		{"tern", [3]float64{51, 46, 45}, 0.6},
	} {
		s, err := Lookup(c.scheme)
		if err != nil {
			t.Fatal(err)
		}
		for i, size := range []int{8192, 139264, 1048576} {
			exact := math.Pow(float64(s.MaxSymbol())/s.ClipPoint(), 2) * float64(size)
			kept := math.Erf(s.ClipPoint() / math.Sqrt2)
			got := 100 * (float64(normBound(s, size))/(exact*kept*kept) - 1)
			if math.Abs(got-c.percent[i]) > c.tol {
				t.Errorf("%s at D=%d inflates the sensitivity by %.2f%%, design says %.1f%%", c.scheme, size, got, c.percent[i])
			}
		}
	}
}
