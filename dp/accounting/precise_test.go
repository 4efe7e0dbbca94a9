package accounting

import (
	"math"
	"testing"

	"github.com/starling-fl/starling/dp"
)

// The precise composition and the plain one are twins: where both are accurate
// they give the same bounds.
func TestPreciseIsThePlainComposition(t *testing.T) {
	for _, c := range []struct {
		p    dp.Part
		h    float64
		tilt float64
		lo   float64
		hi   float64
	}{
		{dp.Part{Q: 0.01, Z: 1, Rounds: 2000, Seen: 1}, 1e-3, 4, -3, 12},
		{dp.Part{Q: 0.3, Z: 2, Rounds: 7, Seen: 1}, 1e-3, 4, -4, 9},
		{dp.Part{Q: 1e-3, Z: 1, Rounds: 1000, Seen: 1}, 1e-4, 5, -0.3, 4},
		{dp.Part{Q: 1, Z: 3, Rounds: 5, Seen: 0.2}, 1e-3, 3, -6, 8},
	} {
		cl, err := newCells(c.p, c.h, 1e-20, 1e-20)
		if err != nil {
			t.Fatal(err)
		}
		g := []grid{newGrid(cl, c.p.Rounds, false)}
		a, err := newComposed(g, c.h, c.tilt, c.lo, c.hi, c.tilt-1, c.tilt+1)
		if err != nil {
			t.Fatal(err)
		}
		b, err := newPrecise(g, c.h, c.tilt, c.lo, c.hi, c.tilt-1, c.tilt+1)
		if err != nil {
			t.Fatal(err)
		}
		for eps := 0.0; eps < c.hi*0.6; eps += c.hi / 23 {
			la, ua := a.delta(eps)
			lb, ub := b.delta(eps)
			if la > ub || lb > ua || ua > 1e-6 && (math.Abs(ua/ub-1) > 1e-6 || la > 0 && math.Abs(la/lb-1) > 1e-6) {
				t.Errorf("%+v eps=%v: plain [%v %v], precise [%v %v]", c.p, eps, la, ua, lb, ub)
			}
		}
	}
}

// A window that ends in the middle of the losses counts those above it as certain: the probability of 20 rounds of a
// Gaussian, whose losses are N(10, 20) together, above 11.
func TestFewRoundsInAShortWindow(t *testing.T) {
	p := dp.Part{Q: 1, Z: 1, Rounds: 20, Seen: 1}
	cl, err := newCells(p, 0.25, 1e-20, 1e-20)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newComposed([]grid{newGrid(cl, p.Rounds, false)}, 0.25, 0.5, -5, 11, 0.2, 0.6)
	if err != nil {
		t.Fatal(err)
	}
	if top := c.start + float64(c.n)*c.h; c.lost < upperTail((top-10)/math.Sqrt(20)) {
		t.Errorf("%v is counted above a window to %v", c.lost, top)
	}
}
