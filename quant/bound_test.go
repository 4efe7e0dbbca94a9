package quant

import (
	"math"
	"testing"
)

// Whatever is longer than the clip norm is scaled to it at once, and nothing else is:
// not by drawing again until the integers are short enough.
func TestClippedAtTheNorm(t *testing.T) {
	const d, clip = 2000, 0.5
	for _, name := range SchemeNames() {
		l := mustLattice(t, name, d, clip)
		symbols := make([]int32, l.D())
		for _, length := range []float64{0.1, 0.4999, 0.51, 0.7, 1, 1.9, 2.1, 1e6} {
			x := testVector(3, d)
			norm := math.Sqrt(dot(x, x))
			for i := range x {
				x[i] = float32(float64(x[i]) / norm * length)
			}
			rep, err := l.EncodeInto(symbols, x, newSeeded(5))
			if err != nil {
				t.Fatal(err)
			}
			want := min(1, clip*clipMargin/length)
			if math.Abs(rep.Scale/want-1) > 1e-6 || rep.Draws != 1 {
				t.Errorf("%s: of length %v: scaled by %v in %d draws, want %v in one", name, length, rep.Scale, rep.Draws, want)
			}
		}
	}
}

// The bound on the integers holds to the last unit: what comes to one more is drawn
// again, what comes to exactly the bound is sent.
func TestBoundIsExact(t *testing.T) {
	for _, name := range SchemeNames() {
		l := mustLattice(t, name, 500, 1)
		x, symbols := testVector(2, 500), make([]int32, l.D())
		first, err := l.EncodeInto(symbols, x, newSeeded(9))
		if err != nil || first.Draws != 1 {
			t.Fatal(first, err)
		}
		for less, draws := range map[int64]bool{0: true, 1: false} {
			l.b2 = first.Norm2 - less
			rep, err := l.EncodeInto(symbols, x, newSeeded(9))
			if err != nil {
				t.Fatal(err)
			}
			norm2 := int64(0)
			for _, s := range symbols {
				norm2 += int64(s) * int64(s)
			}
			if (rep.Draws == 1) != draws || norm2 > l.b2 || norm2 != rep.Norm2 {
				t.Errorf("%s: bound %d, first draw %d: sent %d in %d draws", name, l.b2, first.Norm2, norm2, rep.Draws)
			}
		}
	}
}

// A vector that its bound leaves no room for is shrunk, step by step, not drawn again
// for ever and not dropped: what is sent is a little shorter than what was asked for.
func TestShrinksToTheBound(t *testing.T) {
	l := mustLattice(t, "fixed16", 500, 1) // whose rounding moves the norm by next to nothing
	x, symbols := testVector(2, 500), make([]int32, l.D())
	norm := math.Sqrt(dot(x, x))
	for i := range x {
		x[i] /= float32(norm)
	}
	first, err := l.EncodeInto(symbols, x, newSeeded(9))
	if err != nil {
		t.Fatal(err)
	}
	l.b2 = first.Norm2 * 9 / 10
	rep, err := l.EncodeInto(symbols, x, newSeeded(9))
	if err != nil || rep.Dropped || rep.Draws < 6 || rep.Draws > 9 || rep.Norm2 > l.b2 || rep.Norm2 < l.b2*95/100 || math.Abs(rep.Scale-math.Pow(shrink, float64(rep.Draws-2))*clipMargin) > 1e-3 {
		t.Errorf("%+v for a bound of %d, %v", rep, l.b2, err)
	}
}
