package accounting

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/starling-fl/starling/dp"
)

// goldenSearch is what others' code says: lab/bench/dp/search.py.
type goldenSearch struct {
	Epsilons []struct {
		Q, Z    float64
		Rounds  int
		Delta   float64
		Runs    string
		Single  float64
		Epsilon float64
	}
	Distributions []struct {
		Runs  string
		K     []int
		Below []float64 // P[K <= k]
	}
}

func readSearch(t *testing.T) (g goldenSearch) {
	t.Helper()
	b, err := os.ReadFile("testdata/search.json")
	if err == nil {
		err = json.Unmarshal(b, &g)
	}
	if err != nil || len(g.Epsilons) == 0 || len(g.Distributions) == 0 {
		t.Fatal("no golden figures: ", err)
	}
	return g
}

// A search costs what dp-accounting says over whole orders, and hardly less over all orders.
func TestSearchGolden(t *testing.T) {
	for _, c := range readSearch(t).Epsilons {
		s, err := ParseSearch(c.Runs)
		if err != nil {
			t.Fatal(err)
		}
		events := []dp.Event{dp.Rounds(dp.Mechanism{SamplingRate: c.Q, NoiseMultiplier: c.Z}, c.Rounds)}
		g, err := s.Guarantee(Budget{Delta: c.Delta}, events, false)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := dp.Compose(events, dp.View{})
		if err != nil {
			t.Fatal(err)
		}
		if one, _ := renyi(t, dp.Composition{Parts: whole.Parts, IntegerOnly: true}, c.Delta); math.Abs(one/c.Single-1) > 1e-6 {
			t.Errorf("one run of %+v: %v", c, one)
		}
		eps, order := dp.BestOrder(true, s.over(whole.Divergence, true, c.Delta))
		if math.Abs(eps/c.Epsilon-1) > 1e-6 {
			t.Errorf("%+v: epsilon %v at order %v", c, eps, order)
		}
		if off := g.Epsilon/eps - 1; off > 1e-9 || off < -0.1 {
			t.Errorf("%+v: epsilon %v, at whole orders %v", c, g.Epsilon, eps)
		}
		if g.Accountant != dp.RDP || g.Delta != c.Delta || g.Rounds != c.Rounds {
			t.Errorf("%+v: %v", c, g)
		}
	}
}

// Numbers of runs are distributed as scipy says.
func TestSearchDistributions(t *testing.T) {
	for _, c := range readSearch(t).Distributions {
		s, err := ParseSearch(c.Runs)
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range c.K {
			// The quantile passes k where P[K <= k] is passed, and nowhere else.
			for _, d := range []float64{-1e-9, 1e-9} {
				u := c.Below[i] + d
				if u < 0 || u > 1-1e-8 {
					continue
				}
				if got := s.Quantile(u); (got <= k) != (d < 0) {
					t.Errorf("%s: the quantile of %v is %d, and %d runs or fewer have %v", c.Runs, u, got, k, c.Below[i])
				}
			}
		}
		random := rand.NewChaCha8([32]byte{1})
		sum, n := 0.0, 20_000
		for range n {
			k, err := s.Draw(random)
			if err != nil || k < 0 || k == 0 && !s.Poisson {
				t.Fatalf("%s: %d runs, %v", c.Runs, k, err)
			}
			sum += float64(k)
		}
		// Six standard deviations, of which the logarithmic distribution of mean 100 has 278;
		// the stream is fixed, so this fails always or never.
		if got := sum / float64(n); math.Abs(got-s.Mean) > 6*3*s.Mean/math.Sqrt(float64(n)) {
			t.Errorf("%s: %v runs on average", c.Runs, got)
		}
	}
}

// More runs cost more, one Poisson run costs about what it is, and shapes between the named
// ones cost between them. A search of K runs is cheaper than K runs composed.
func TestSearchIsMonotone(t *testing.T) {
	events := []dp.Event{dp.Rounds(dp.Mechanism{SamplingRate: 0.01, NoiseMultiplier: 1.2}, 500)}
	cost := func(text string) float64 {
		t.Helper()
		s, err := ParseSearch(text)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ParseSearch(s.String()); err != nil || again != s {
			t.Errorf("%q is %q, which is %v, %v", text, s, again, err)
		}
		g, err := s.Guarantee(Budget{Delta: 1e-6}, events, false)
		if err != nil {
			t.Fatal(err)
		}
		return g.Epsilon
	}
	one, err := Epsilon(events, 1e-6, dp.RDP)
	if err != nil {
		t.Fatal(err)
	}
	if p := cost("poisson:1"); p < one.Epsilon || p > 1.2*one.Epsilon {
		t.Errorf("one run on average costs %v, one run %v", p, one.Epsilon)
	}
	before := one.Epsilon
	for _, runs := range []string{"logarithmic:5", "negative-binomial:0.5:5", "geometric:5", "geometric:20"} {
		if now := cost(runs); now <= before {
			t.Errorf("%s costs %v, less than %v", runs, now, before)
		} else {
			before = now
		}
	}
	all, err := Epsilon([]dp.Event{dp.Rounds(dp.Mechanism{SamplingRate: 0.01, NoiseMultiplier: 1.2}, 20*500)}, 1e-6, dp.RDP)
	if err != nil || before >= all.Epsilon {
		t.Errorf("the best of 20 costs %v, all of them %v, %v", before, all.Epsilon, err)
	}
	if heavy := cost("negative-binomial:-0.5:5"); heavy <= one.Epsilon {
		t.Errorf("a shape below 0: %v", heavy)
	}
}

// The floors' part of delta is one run's: a search has it for each. And discrete noise
// costs what its distance from a continuous one can.
func TestSearchFloorsAndDiscreteNoise(t *testing.T) {
	s := Search{Poisson: true, Mean: 10}
	events := []dp.Event{dp.Rounds(dp.Mechanism{SamplingRate: 0.01, NoiseMultiplier: 1}, 100)}
	plain, err := s.Guarantee(Budget{Delta: 1e-6}, events, false)
	if err != nil {
		t.Fatal(err)
	}
	floored, err := s.Guarantee(Budget{Delta: 1e-6, Floor: 1e-8}, events, false)
	if err != nil || floored.Epsilon <= plain.Epsilon || floored.Delta != 1e-6 || math.Abs(floored.FloorDelta-1e-7) > 1e-12 {
		t.Errorf("with floors %v, without %v, %v", floored, plain, err)
	}
	if _, err := s.Guarantee(Budget{Delta: 1e-6, Floor: 1e-7}, events, false); !errors.Is(err, ErrSearch) {
		t.Errorf("floors of all of delta: %v", err)
	}
	c := dp.Composition{Parts: []dp.Part{{Q: 1, Z: 3, Rounds: 1, Seen: 1}}}
	bare := c.Divergence(2)
	c.Eta = 0.1
	if got := c.Divergence(2) - bare; math.Abs(got-0.3) > 1e-12 {
		t.Errorf("a ratio of exp(0.1) adds %v at order 2, want 0.3", got)
	}
	c.IntegerOnly = true
	for _, s := range []Search{s, {Shape: 1, Gamma: 0.1, Mean: 10}} {
		if _, order := dp.BestOrder(true, s.over(c.Divergence, true, 1e-6)); order != math.Trunc(order) {
			t.Errorf("order %v of noise that allows integers alone", order)
		}
	}
}

// What is not a distribution is refused by name; a source that ends is an error.
func TestSearchRefuses(t *testing.T) {
	for text, says := range map[string]string{
		"":                           "MEAN being the expected number",
		"poisson":                    "want poisson:MEAN",
		"poisson:x":                  "want poisson:MEAN",
		"geometric:1:2":              "want poisson:MEAN",
		"poisson:0.5":                "a mean of 0.5 runs",
		"poisson:NaN":                "a mean of NaN runs",
		"geometric:1":                "a mean of 1 runs",
		"geometric:1e9":              "at most 10000",
		"negative-binomial:-1:3":     "a shape of -1",
		"negative-binomial:1e9:3":    "a shape of 1e+09",
		"negative-binomial:-.99:9e3": "cannot have a mean of 9000",
	} {
		if _, err := ParseSearch(text); !errors.Is(err, ErrSearch) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := (Search{Mean: 5, Shape: 1}).Guarantee(Budget{Delta: 1e-6}, nil, false); !errors.Is(err, ErrSearch) {
		t.Errorf("without gamma: %v", err)
	}
	ended := errors.New("ended")
	if _, err := (Search{Poisson: true, Mean: 5}).Draw(iotest.ErrReader(ended)); !errors.Is(err, ended) {
		t.Errorf("no randomness: %v", err)
	}
	if k, err := (Search{Poisson: true, Mean: 5}).Draw(bytes.NewReader(bytes.Repeat([]byte{255}, 8))); err != nil || k < 20 || k > 100 {
		t.Errorf("the last quantile is %d, %v", k, err)
	}
	if _, err := (Search{Poisson: true, Mean: 5}).Guarantee(Budget{Delta: 2}, nil, false); !errors.Is(err, dp.ErrDelta) {
		t.Errorf("delta 2: %v", err)
	}
}

// A search that NewSearch did not make has the mean that its shape and gamma have, or none:
// its epsilon would be another search's.
func TestSearchesMeanWhatTheySay(t *testing.T) {
	s, err := NewSearch(1, 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.check(); err != nil {
		t.Error(err)
	}
	for _, wrong := range []Search{{Shape: s.Shape, Gamma: s.Gamma, Mean: 2}, {Shape: s.Shape, Gamma: s.Gamma / 2, Mean: 10}, {Shape: 0.5, Gamma: s.Gamma, Mean: 10}} {
		if err := wrong.check(); !errors.Is(err, ErrSearch) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}
