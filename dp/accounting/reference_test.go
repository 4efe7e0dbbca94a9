package accounting

import (
	"testing"

	"github.com/starling-fl/starling/dp"
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
		parts  []dp.Part
		delta  float64
		want   float64
		source string
	}{
		{[]dp.Part{{Q: 1.4e-4, Z: 0.37, Rounds: 7, Seen: 1}}, 1e-7, 4.2057783077, "nested"},
		{[]dp.Part{{Q: 6.6e-4, Z: 0.425, Rounds: 4, Seen: 1}}, 1e-3, 0.00731030383430, "nested"},
		{[]dp.Part{{Q: 3.9e-5, Z: 17.8, Rounds: 2, Seen: 1}}, 3.3e-9, 8.8874249268764e-06, "nested"},
		{[]dp.Part{{Q: 3e-5, Z: 0.31, Rounds: 92, Seen: 1}}, 7e-4, 0.01811283951, "contour"},
		{[]dp.Part{{Q: 0.0086, Z: 0.887, Rounds: 7519, Seen: 1}, {Q: 7.6e-4, Z: 11.7, Rounds: 3864, Seen: 1}, {Q: 7.7e-5, Z: 25.4, Rounds: 13672, Seen: 1}}, 7e-9, 7.692276464337, "contour"},
		{[]dp.Part{{Q: 1, Z: 1.07, Rounds: 6, Seen: 1}, {Q: 0.0168, Z: 10.3, Rounds: 57, Seen: 1}}, 5e-11, 16.951329954253, "contour"},
		{[]dp.Part{{Q: 0.99, Z: 1.87, Rounds: 79, Seen: 1}}, 0.95, 2.128518893059, "contour"},
		{[]dp.Part{{Q: 6.9e-5, Z: 250, Rounds: 88, Seen: 1}}, 1e-8, 5.9109803425156e-06, "contour"},
		{[]dp.Part{{Q: 0.9, Z: 0.3, Rounds: 1000, Seen: 1}}, 1e-10, 5506.02728703553, "contour"},
		{[]dp.Part{{Q: 0.034, Z: 0.34, Rounds: 10000, Seen: 1}}, 1e-10, 829.18948027946, "contour"},
		{[]dp.Part{{Q: 1e-5, Z: 100, Rounds: 100000, Seen: 1}}, 1e-12, 0.000161202675385, "contour"},
	} {
		g, err := bound(dp.Composition{Parts: c.parts}, c.delta, dp.Tight, query{})
		if err != nil {
			t.Fatal(err)
		}
		if g.EpsilonLower > c.want*(1+1e-9) || g.Epsilon < c.want*(1-1e-9) || g.Epsilon > c.want*(1+1e-4) || g.EpsilonLower < c.want*(1-1e-4) {
			t.Errorf("%+v delta=%v: [%v, %v], %s %v", c.parts, c.delta, g.EpsilonLower, g.Epsilon, c.source, c.want)
		}
	}
}

// A dominated pair of full mass has moments of at least 1 whatever the step (Jensen's
// inequality): less means that mass was rounded down, at a loss of first order in the
// step, rather than merged. Steps run through those that put the bulk of a rare
// member's losses into some three cells.
func TestMergingLosesNoMoment(t *testing.T) {
	for _, p := range []dp.Part{
		{Q: 7.7e-5, Z: 25.4, Rounds: 1, Seen: 1}, {Q: 1e-5, Z: 0.7, Rounds: 1, Seen: 1}, {Q: 6.6e-4, Z: 0.425, Rounds: 1, Seen: 1}, {Q: 1e-4, Z: 3, Rounds: 1, Seen: 1}, {Q: 0.5, Z: 3, Rounds: 1, Seen: 1}, {Q: 1, Z: 10, Rounds: 1, Seen: 1}, {Q: 0.01, Z: 1, Rounds: 1, Seen: 0.1},
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
		m    dp.Mechanism
		want dp.Accountant
	}{
		{dp.Mechanism{SamplingRate: 0.1, NoiseMultiplier: 0.04}, dp.RDP}, // too little noise for a grid
		{dp.Mechanism{SamplingRate: 0.1, NoiseMultiplier: 0.06}, dp.Tight},
		{dp.Mechanism{SamplingRate: 0.1, NoiseMultiplier: 0.6}, dp.Tight},
		{dp.Mechanism{SamplingRate: 1, NoiseMultiplier: 0.01}, dp.Tight},   // a closed form
		{dp.Mechanism{SamplingRate: 1e-5, NoiseMultiplier: 100}, dp.Tight}, // epsilon 0
	} {
		g := tight(t, 1e-3, dp.Rounds(c.m, 20))
		if g.Accountant != c.want || c.want == dp.RDP && g.Epsilon != g.RDPEpsilon {
			t.Errorf("%+v: %v", c.m, g)
		}
	}
}

// Few rounds of rare members: between Google's dp-accounting 0.6.0's optimistic and pessimistic
// estimates at a discretisation of 5e-6, and with bounds as close as elsewhere.
func TestFewRoundsOfRareMembers(t *testing.T) {
	e := dp.Rounds(dp.Mechanism{SamplingRate: 0.00045169618473658656, NoiseMultiplier: 0.3665962200587577}, 6)
	g, err := Epsilon([]dp.Event{e}, 5.721675982336019e-08, dp.Tight)
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
		z, err := CalibrateNoise(c.epsilon, c.delta, c.q, c.rounds, dp.Tight)
		if err != nil {
			t.Fatal(err)
		}
		g, err := Epsilon([]dp.Event{dp.Rounds(dp.Mechanism{SamplingRate: c.q, NoiseMultiplier: z}, c.rounds)}, c.delta, dp.Tight)
		if err != nil || g.Epsilon > c.epsilon || g.Epsilon < c.epsilon*(1-1e-3) {
			t.Errorf("%+v: z = %v gives %v, %v", c, z, g, err)
		}
	}
}
