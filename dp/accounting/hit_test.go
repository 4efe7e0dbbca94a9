package accounting

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/starling-fl/starling/dp"
)

// hitCases were computed outside of this package, by Fourier transform of the
// mixture's losses on a grid of 2e-4: q = .01, T = 200, z = .8375, delta = 1e-6.
var hitCases = []struct {
	tqh     float64 // T*q*h
	epsilon float64
	noise   float64 // that brings epsilon back to 2.02; 0: not given
}{
	{0, 2.02, 0}, {1.55e-5, 2.24, 0.875}, {9.3e-5, 3.02, 1.12}, {2.06e-3, 4.33, 1.56}, {5.4e-2, 6.49, 2.16},
}

func TestHitEpsilon(t *testing.T) {
	for _, c := range hitCases {
		e := dp.Rounds(dp.Mechanism{SamplingRate: 0.01, NoiseMultiplier: 0.8375}, 200)
		e.Hit = c.tqh / (200 * 0.01)
		g, err := Epsilon([]dp.Event{e}, 1e-6, dp.Tight)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(c.tqh, g)
		if math.Abs(g.Epsilon-c.epsilon) > 0.03 || g.Epsilon-g.EpsilonLower > 1e-3*g.Epsilon || g.Accountant != dp.Tight {
			t.Errorf("T q h = %v: %v, want about %v", c.tqh, g, c.epsilon)
		}
		if want := c.tqh > 0; (g.Adjacency != dp.AdjacencyAddRemove) != want {
			t.Errorf("T q h = %v: adjacency %q", c.tqh, g.Adjacency)
		}
		if g.RDPEpsilon < g.EpsilonLower {
			t.Errorf("T q h = %v: the Rényi bound %v is below %v", c.tqh, g.RDPEpsilon, g.EpsilonLower)
		}
		if c.noise != 0 {
			e.NoiseMultiplier = c.noise
			if g, err := Epsilon([]dp.Event{e}, 1e-6, dp.Tight); err != nil || math.Abs(g.Epsilon-2.02) > 0.03 {
				t.Errorf("T q h = %v: at z = %v %v, want about 2.02, %v", c.tqh, c.noise, g, err)
			}
		}
	}
}

// The mixture by its definition: how many rounds are hit is binomial and known to
// the adversary, and delta is the mean over it.
func TestHitByDefinition(t *testing.T) {
	const q, z, rounds, h = 0.05, 0.9, 2, 0.02
	e := dp.Rounds(dp.Mechanism{SamplingRate: q, NoiseMultiplier: z}, rounds)
	e.Hit = h
	for _, delta := range []float64{1e-5} {
		g, err := Epsilon([]dp.Event{e}, delta, dp.Tight)
		if err != nil {
			t.Fatal(err)
		}
		mean := 0.0
		for hits := 0; hits <= rounds; hits++ {
			w := math.Exp(lchoose(rounds, hits) + float64(hits)*math.Log(h) + float64(rounds-hits)*math.Log1p(-h))
			c := dp.Composition{}
			if n := rounds - hits; n > 0 {
				c.Add(dp.Part{Q: q, Z: z, Rounds: n, Seen: 1})
			}
			if hits > 0 {
				c.Add(dp.Part{Q: 1, Z: z, Rounds: hits, Seen: q})
			}
			mean += w * deltaOf(t, c, g.Epsilon)
		}
		if mean > delta*(1+1e-3) || mean < delta*(1-2e-3) {
			t.Errorf("delta %v: at epsilon %v the mixture has %v", delta, g.Epsilon, mean)
		}
	}
}

// deltaOf finds the delta at which a composition has an epsilon, by bisection.
func deltaOf(t *testing.T, c dp.Composition, eps float64) float64 {
	lo, hi := math.Log(1e-30), 0.0
	for range 35 {
		mid := (lo + hi) / 2
		g, err := bound(c, math.Exp(mid), dp.Tight, query{})
		if err != nil {
			t.Fatal(err)
		}
		if g.Epsilon > eps {
			lo = mid
		} else {
			hi = mid
		}
	}
	return math.Exp(hi)
}

// A hit shows a coin; where it is seen anyhow, or where every round is hit, nothing
// else is left to show.
func TestHitIsBounded(t *testing.T) {
	e := dp.Rounds(dp.Mechanism{SamplingRate: 0.01, NoiseMultiplier: 1}, 100)
	visible, err := VisibleEpsilon([]dp.Event{e}, 1e-6, dp.Tight)
	if err != nil {
		t.Fatal(err)
	}
	e.Hit = 0.999999
	g, err := Epsilon([]dp.Event{e}, 1e-6, dp.Tight)
	if err != nil || math.Abs(g.Epsilon/visible.Epsilon-1) > 1e-3 {
		t.Errorf("nearly always hit: %v, visible %v, %v", g, visible, err)
	}
	v, err := VisibleEpsilon([]dp.Event{e}, 1e-6, dp.Tight)
	if err != nil || v.Epsilon != visible.Epsilon {
		t.Errorf("visible with hits %v, without %v, %v", v, visible, err)
	}
	p := dp.GroupSampling{ClientRate: 0.25, ProviderRate: 0.2, Hidden: false}.Rounds(1, 50)
	before, err := Epsilon([]dp.Event{p}, 1e-6, dp.Tight)
	if err != nil {
		t.Fatal(err)
	}
	p.Hit = 0.1
	if after, err := Epsilon([]dp.Event{p}, 1e-6, dp.Tight); err != nil || after.Epsilon != before.Epsilon {
		t.Errorf("providers of a device whose coin shows: %v, without hits %v, %v", after, before, err)
	}
	p.Hidden = true
	hidden, err := Epsilon([]dp.Event{p}, 1e-6, dp.Tight)
	if err != nil || hidden.Epsilon >= before.Epsilon || hidden.Adjacency != dp.ZeroOut(dp.AdjacencyProvider) {
		t.Errorf("a device's only provider: %v, of a coin that shows %v, %v", hidden, before, err)
	}
	for _, bad := range []float64{-0.1, 1, math.NaN(), math.Copysign(0, -1), math.Inf(1)} {
		e.Hit = bad
		if err := e.Check(); !errors.Is(err, dp.ErrEvent) {
			t.Errorf("hit probability %v: %v", bad, err)
		}
	}
	e.Hit, e.SamplingRate = 0.1, 1
	if err := e.Check(); !errors.Is(err, dp.ErrEvent) {
		t.Errorf("a hit without a coin: %v", err)
	}
}

// hitGolden was computed outside by lab/bench/dp/hits.py: every outcome of a small
// fleet's coins and dropouts enumerated, and the exact pair of one round composed.
type hitGolden struct {
	Delta float64
	Small []struct {
		Ready                int
		Rate, Dropout, Noise float64
		Floor, Rounds        int
		Thresholds           string
		Tip, Epsilon         float64
		WithoutHits          float64 `json:"without_hits"`
		thresholds           []int
	}
	Before []struct {
		Members               int
		Dropout, Tqh, Epsilon float64
	}
}

func readHits(t *testing.T) hitGolden {
	t.Helper()
	b, err := os.ReadFile("testdata/hits.json")
	if err != nil {
		t.Fatal(err)
	}
	var g hitGolden
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	for i := range g.Small {
		for _, f := range strings.Fields(g.Small[i].Thresholds) {
			n, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			g.Small[i].thresholds = append(g.Small[i].thresholds, n)
		}
	}
	return g
}

// TestHitCoversTheExactRound: what is accounted is no less than what a small fleet's
// round really shows, enumerated; and without hits it is less.
func TestHitCoversTheExactRound(t *testing.T) {
	g := readHits(t)
	if len(g.Small) < 5 {
		t.Fatalf("%d cases", len(g.Small))
	}
	for _, c := range g.Small {
		a := dp.Attendance{Ready: c.Ready, Rate: c.Rate, Groups: 1, Dropout: c.Dropout, Floor: c.Floor, Most: c.Ready,
			Threshold: func(n int) int { return c.thresholds[n] }}
		hit := a.Hit()
		if hit < c.Tip || hit > 12*c.Tip {
			t.Errorf("%+v: hit %v, exactly %v", a, hit, c.Tip)
		}
		e := dp.Rounds(dp.Mechanism{SamplingRate: c.Rate, NoiseMultiplier: c.Noise}, c.Rounds)
		sold, err := Epsilon([]dp.Event{e}, g.Delta, dp.Tight)
		if err != nil {
			t.Fatal(err)
		}
		e.Hit = hit
		covered, err := Epsilon([]dp.Event{e}, g.Delta, dp.Tight)
		if err != nil {
			t.Fatal(err)
		}
		e.Hit = c.Tip
		exact, err := Epsilon([]dp.Event{e}, g.Delta, dp.Tight)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d ready: sold %v, exactly %v, with the exact hits %v, accounted %v", c.Ready, sold.Epsilon, c.Epsilon, exact.Epsilon, covered.Epsilon)
		// The grid of the golden is 2e-4 wide, over as many rounds.
		if slack := 1e-3 * float64(c.Rounds) / 50; covered.Epsilon < c.Epsilon-slack || exact.Epsilon < c.Epsilon-slack || c.Epsilon-c.WithoutHits > 0.05 && sold.Epsilon > c.Epsilon-0.05 {
			t.Errorf("%d ready: sold %v, exactly %v, with the exact hits %v, accounted %v", c.Ready, sold.Epsilon, c.Epsilon, exact.Epsilon, covered.Epsilon)
		}
	}
}

// What jobs delivered before: the table in docs/privacy/proofs.md.
func TestHitsBefore(t *testing.T) {
	g := readHits(t)
	for _, c := range g.Before {
		e := dp.Rounds(dp.Mechanism{SamplingRate: 0.01, NoiseMultiplier: 0.83751}, 200)
		e.Hit = c.Tqh / 2
		got, err := Epsilon([]dp.Event{e}, g.Delta, dp.Tight)
		if err != nil || math.Abs(got.Epsilon-c.Epsilon) > 0.01 {
			t.Errorf("%d members, dropout %v: %v, outside %v, %v", c.Members, c.Dropout, got, c.Epsilon, err)
		}
	}
}
