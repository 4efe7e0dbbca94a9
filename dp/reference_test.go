package dp

import (
	"math"
	"testing"
)

// Epsilons of jobs that are rare, short, mixed, very noisy or hardly noisy, from two
// references outside of this package. "contour": the moment generating function of
// the loss, by a trapezoidal sum over x, integrated along a vertical line
// (testdata/vectors.py, here in float64 with M-1 summed instead of M); two lines and
// steps agree to 5e-11. "nested": delta after n rounds is the integral over x of
// delta after n-1 rounds at eps-l(x), from the closed form for one round, by
// Gauss-Legendre panels; two sets of panels agree to 1e-10, and with 30-digit
// quadrature (mpmath) for two rounds.
func TestOutsideReferences(t *testing.T) {
	for _, c := range []struct {
		parts  []part
		delta  float64
		want   float64
		source string
	}{
		{[]part{{q: 1.4e-4, z: 0.37, rounds: 7, seen: 1}}, 1e-7, 4.2057783077, "nested"},
		{[]part{{q: 6.6e-4, z: 0.425, rounds: 4, seen: 1}}, 1e-3, 0.00731030383430, "nested"},
		{[]part{{q: 3.9e-5, z: 17.8, rounds: 2, seen: 1}}, 3.3e-9, 8.8874249268764e-06, "nested"},
		{[]part{{q: 3e-5, z: 0.31, rounds: 92, seen: 1}}, 7e-4, 0.01811283951, "contour"},
		{[]part{{q: 0.0086, z: 0.887, rounds: 7519, seen: 1}, {q: 7.6e-4, z: 11.7, rounds: 3864, seen: 1}, {q: 7.7e-5, z: 25.4, rounds: 13672, seen: 1}}, 7e-9, 7.692276464337, "contour"},
		{[]part{{q: 1, z: 1.07, rounds: 6, seen: 1}, {q: 0.0168, z: 10.3, rounds: 57, seen: 1}}, 5e-11, 16.951329954253, "contour"},
		{[]part{{q: 0.99, z: 1.87, rounds: 79, seen: 1}}, 0.95, 2.128518893059, "contour"},
		{[]part{{q: 6.9e-5, z: 250, rounds: 88, seen: 1}}, 1e-8, 5.9109803425156e-06, "contour"},
		{[]part{{q: 0.9, z: 0.3, rounds: 1000, seen: 1}}, 1e-10, 5506.02728703553, "contour"},
		{[]part{{q: 0.034, z: 0.34, rounds: 10000, seen: 1}}, 1e-10, 829.18948027946, "contour"},
		{[]part{{q: 1e-5, z: 100, rounds: 100000, seen: 1}}, 1e-12, 0.000161202675385, "contour"},
	} {
		g, err := composition{parts: c.parts}.account(c.delta, Tight, query{})
		if err != nil {
			t.Fatal(err)
		}
		if g.EpsilonLower > c.want*(1+1e-9) || g.Epsilon < c.want*(1-1e-9) || g.Epsilon > c.want*(1+1e-4) || g.EpsilonLower < c.want*(1-1e-4) {
			t.Errorf("%+v delta=%v: [%v, %v], %s %v", c.parts, c.delta, g.EpsilonLower, g.Epsilon, c.source, c.want)
		}
	}
}

// Where a few orders above 1 are best, (1+u)^a and a*u are of one size: the sum of
// both is 1 % too high. Divergences by 30-digit quadrature (mpmath).
func TestRenyiNearOrderOne(t *testing.T) {
	for _, c := range []struct{ q, z, order, want float64 }{
		{0.99, 0.12028913, 1.0778649716, 37.1120329542816},
		{0.0046155169, 0.14738937, 1.143742221, 0.589688808625791},
		{0.0063578173, 0.16866694, 1.2719609595, 1.93822426169443},
	} {
		p := part{q: c.q, z: c.z, rounds: 1, seen: 1}
		if got := p.renyi(c.order); math.Abs(got/c.want-1) > 1e-9 {
			t.Errorf("q=%v z=%v: divergence of order %v is %v, want %v", c.q, c.z, c.order, got, c.want)
		}
	}
}

// A dominated pair of full mass has moments of at least 1 whatever the step (Jensen's
// inequality): less means that mass was rounded down, at a loss of first order in the
// step, rather than merged. Steps run through those that put the bulk of a rare
// member's losses into some three cells.
func TestMergingLosesNoMoment(t *testing.T) {
	for _, p := range []part{
		{q: 7.7e-5, z: 25.4, rounds: 1, seen: 1}, {q: 1e-5, z: 0.7, rounds: 1, seen: 1}, {q: 6.6e-4, z: 0.425, rounds: 1, seen: 1}, {q: 1e-4, z: 3, rounds: 1, seen: 1}, {q: 0.5, z: 3, rounds: 1, seen: 1}, {q: 1, z: 10, rounds: 1, seen: 1}, {q: 0.01, z: 1, rounds: 1, seen: 0.1},
	} {
		for h := 4e-3; h > 2e-6; h /= 1.7 {
			c, err := newCells(p, h, 1e-16, 1e-16)
			if err != nil || len(c.above) > 300_000 {
				break
			}
			if k := newGrid(c, 1, false).optMoment(h, 4); k < -1e-10 {
				t.Errorf("%+v step %v: log moment %v", p, h, k)
			}
		}
	}
}

func (g grid) optMoment(h, s float64) float64 { return g.logMoment(g.opt, h, s) }

// The guarantee names the accountant that its epsilon is from.
func TestAccountantIsTheOneUsed(t *testing.T) {
	for _, c := range []struct {
		m    Mechanism
		want Accountant
	}{
		{Mechanism{0.1, 0.04}, RDP}, // too little noise for a grid
		{Mechanism{0.1, 0.06}, Tight},
		{Mechanism{0.1, 0.6}, Tight},
		{Mechanism{1, 0.01}, Tight},   // a closed form
		{Mechanism{1e-5, 100}, Tight}, // epsilon 0
	} {
		g := tight(t, 1e-3, Rounds(c.m, 20))
		if g.Accountant != c.want || c.want == RDP && g.Epsilon != g.RDPEpsilon {
			t.Errorf("%+v: %v", c.m, g)
		}
	}
}

// Few rounds of rare members: between Google's dp-accounting 0.6.0's optimistic and pessimistic
// estimates at a discretisation of 5e-6, and with bounds as close as elsewhere.
func TestFewRoundsOfRareMembers(t *testing.T) {
	e := Rounds(Mechanism{0.00045169618473658656, 0.3665962200587577}, 6)
	g, err := Epsilon([]Event{e}, 5.721675982336019e-08, Tight)
	if err != nil {
		t.Fatal(err)
	}
	const optimistic, pessimistic = 6.5838221783618875, 6.583838245148276
	if g.Epsilon < optimistic || g.Epsilon > pessimistic*(1+2e-5) || g.EpsilonLower > pessimistic {
		t.Errorf("%v, want between %v and %v", g, optimistic, pessimistic)
	}
	if gap := g.Epsilon/g.EpsilonLower - 1; gap > 3e-5 {
		t.Errorf("bounds are %v apart", gap)
	}
}

// Calibration for few rounds of rare members, where the tight bound was far slower
// to find once.
func TestCalibrateFewRounds(t *testing.T) {
	for _, c := range []struct {
		epsilon, delta, q float64
		rounds            int
	}{{2, 1e-6, 1e-3, 2}, {1, 1e-8, 1e-4, 20}} {
		z, err := CalibrateNoise(c.epsilon, c.delta, c.q, c.rounds, Tight)
		if err != nil {
			t.Fatal(err)
		}
		g, err := Epsilon([]Event{Rounds(Mechanism{c.q, z}, c.rounds)}, c.delta, Tight)
		if err != nil || g.Epsilon > c.epsilon || g.Epsilon < c.epsilon*(1-1e-3) {
			t.Errorf("%+v: z = %v gives %v, %v", c, z, g, err)
		}
	}
}
