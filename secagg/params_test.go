package secagg

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"
)

// TestDesignFigures recomputes the figures printed in the protocol's design.
func TestDesignFigures(t *testing.T) {
	const breach, job, failure = "breach", "job", "failure"
	for _, c := range []struct {
		m    Model
		what string
		want float64 // printed
		tol  float64 // of the printed precision
	}{
		{Model{Shard: 64, Threshold: 44, Corrupt: 0.05}, breach, -48.8, 0.05},
		{Model{Shard: 64, Threshold: 44, Corrupt: 0.05, Cohort: 1000, Rounds: 2000}, job, -33.8, 0.05},
		{Model{Shard: 64, Threshold: 44, Dropout: 0.05}, failure, -39, 0.5},
		{Model{Shard: 64, Threshold: 44, Dropout: 0.15}, failure, -12, 0.5},
		{Model{Shard: 64, Threshold: 44, Dropout: 0.30}, failure, -1, 0.5},
		{Model{Shard: 128, Threshold: 81, Dropout: 0.05}, failure, -95, 0.5},
		{Model{Shard: 128, Threshold: 81, Dropout: 0.15}, failure, -31, 0.5},
		{Model{Shard: 128, Threshold: 81, Dropout: 0.30}, failure, -5, 0.5},
		{Model{Shard: 128, Threshold: 46, SemiHonest: true, Dropout: 0.30}, failure, -51, 0.5},
		// "t=43 gives 2^-40" in the design's prose: exactly it is 2^-41.89.
		{Model{Shard: 64, Threshold: 43, Corrupt: 0.05}, breach, -41.89, 0.005},
		{Model{Shard: 128, Threshold: 46, SemiHonest: true, Corrupt: 0.10}, breach, -48.14, 0.005},
		{Model{Shard: 128, Threshold: 81, Corrupt: 0.05}, breach, -50.44, 0.005},
	} {
		p, err := Evaluate(c.m)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{breach: p.Breach, job: p.BreachJob, failure: p.Failure}[c.what]
		if math.Abs(got-c.want) > c.tol {
			t.Errorf("%+v: log2 %s %.3f, want %v", c.m, c.what, got, c.want)
		}
	}
	// t=44 is the default of a cohort of 1,000 at 5% corrupted: 2^-40 over 16 shards.
	p, err := Choose(Model{Shard: 64, Dropout: 0.15, Corrupt: 0.05, Cohort: 1000, Rounds: 2000})
	if err != nil || p.Threshold != 44 || p.Shards != 16 || p.BreachRound > -40 {
		t.Errorf("default: %+v, %v", p, err)
	}
}

func TestChooseRefuses(t *testing.T) {
	for _, c := range []struct {
		m    Model
		says string
	}{
		{Model{Shard: 64, Dropout: 0.3, Corrupt: 0.05, Cohort: 1000}, "larger shards, or the semi-honest"},
		{Model{Shard: 16, Dropout: 0.1, Corrupt: 0.3}, "no threshold"},
		{Model{Shard: 64, Threshold: 40, Corrupt: 0.05}, "take 43"},
		{Model{Shard: 64, Threshold: 30}, "threshold 30 below 33"},
		{Model{Shard: 64, Threshold: 21, SemiHonest: true}, "threshold 21 below 22"},
		{Model{Shard: 1}, "shard 1"},
		{Model{Shard: 64, Dropout: 1.5}, "dropout 1.5"},
		{Model{Shard: 64, Corrupt: math.NaN()}, "corrupt NaN"},
		{Model{Shard: 64, Cohort: 10}, "cohort 10"},
		{Model{Shard: 64, Cohort: 1000, Population: 10}, "population 10"},
		{Model{Shard: 64, Rounds: -1}, "rounds -1"},
	} {
		_, err := Choose(c.m)
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.m, err, c.says)
		}
	}
	p, err := Choose(Model{Shard: 128, Dropout: 0.3, Corrupt: 0.1, Cohort: 1000, SemiHonest: true})
	if err != nil || p.Threshold != 44 || !strings.Contains(p.Explain(), "NOT withstood") {
		t.Errorf("%+v, %v\n%s", p, err, p.Explain())
	}
}

// TestTailsBruteForce holds the tails against a count of all outcomes.
func TestTailsBruteForce(t *testing.T) {
	const n = 10
	for _, p := range []*big.Rat{big.NewRat(0, 1), big.NewRat(3, 7), big.NewRat(1, 1)} {
		bruteBinomial(t, n, p)
	}
	// All 6-subsets of 12 devices, 5 marked.
	for k := -1; k <= 7; k++ {
		hit, all := int64(0), int64(0)
		for subset := range 1 << 12 {
			s := Set{byte(subset), byte(subset >> 8)}
			if s.Len() != 6 {
				continue
			}
			all++
			if (Set{byte(subset) & 0x1f}).Len() >= k {
				hit++
			}
		}
		x := hypergeometricTail(12, 5, 6, k)
		if got := new(big.Rat).SetFrac(x.num, x.den); got.Cmp(big.NewRat(hit, all)) != 0 {
			t.Errorf("hypergeometric >=%d: %v, want %d/%d", k, got, hit, all)
		}
	}
}

func bruteBinomial(t *testing.T, n int, p *big.Rat) {
	t.Helper()
	q := new(big.Rat).Sub(big.NewRat(1, 1), p)
	for k := -1; k <= n+2; k++ {
		want := new(big.Rat)
		for outcome := range 1 << n {
			prob, ones := big.NewRat(1, 1), 0
			for i := range n {
				if outcome>>i&1 == 1 {
					prob.Mul(prob, p)
					ones++
				} else {
					prob.Mul(prob, q)
				}
			}
			if ones >= k {
				want.Add(want, prob)
			}
		}
		x := binomialTail(n, p, k)
		if got := new(big.Rat).SetFrac(x.num, x.den); got.Cmp(want) != 0 {
			t.Errorf("P[Bin(%d,%v)>=%d] = %v, want %v", n, p, k, got, want)
		}
	}
}

// TestIndependentIsConservative: for the populations and shards we print, drawing
// without replacement breaks less often than independent corruption.
func TestIndependentIsConservative(t *testing.T) {
	for _, shard := range []int{16, 64, 128} {
		for _, population := range []int{200, 1000, 20000} {
			for _, corrupt := range []float64{0.01, 0.05, 0.1} {
				m := Model{Shard: shard, Threshold: shard*11/16 + 1, Corrupt: corrupt}
				a, err := Evaluate(m)
				if err != nil {
					t.Fatal(err)
				}
				m.Population = population
				b, err := Evaluate(m)
				if err != nil {
					t.Fatal(err)
				}
				if b.Breach > a.Breach {
					t.Errorf("%+v: %v drawn, %v independent", m, b.Breach, a.Breach)
				}
			}
		}
	}
}

// TestConfigThreshold: the rule both sides compute, and its minimality.
func TestConfigThreshold(t *testing.T) {
	cfg := Config{CorruptPPM: 50000, BreachBits: 44}
	for n, want := range map[int]int{64: 44, 63: 43, 62: 43} {
		if got, err := cfg.Threshold(n); err != nil || got != want {
			t.Errorf("n=%d: %d, %v, want %d", n, got, err, want)
		}
	}
	if _, err := cfg.Threshold(8); !errors.Is(err, ErrConfig) {
		t.Errorf("8 devices cannot withstand 5%% to 2^-44: %v", err)
	}
	for n := 2; n <= 40; n++ {
		for _, semi := range []bool{false, true} {
			c := Config{CorruptPPM: 100000, BreachBits: 5, SemiHonest: semi}
			got, err := c.Threshold(n)
			if err != nil {
				continue
			}
			p := big.NewRat(1, 10)
			if !binomialTail(n, p, breachCount(n, got, semi)).atMost(5) {
				t.Errorf("n=%d semi=%v: t=%d is too low", n, semi, got)
			}
			if got > leastThreshold(n, semi) && binomialTail(n, p, breachCount(n, got-1, semi)).atMost(5) {
				t.Errorf("n=%d semi=%v: t=%d is not the least", n, semi, got)
			}
			if !semi && 2*got <= n {
				t.Errorf("n=%d: t=%d is no majority", n, got)
			}
		}
	}
	// A third, where nothing is corrupted and the server is honest.
	for n, want := range map[int]int{2: 2, 3: 2, 6: 2, 7: 3, 64: 22, 128: 43} {
		if got, err := (Config{SemiHonest: true}).Threshold(n); err != nil || got != want {
			t.Errorf("a third of %d: %d, %v", n, got, err)
		}
	}
	// The demonstration's profile.
	for n, want := range map[int]int{2: 2, 3: 2, 4: 3, 5: 3, 10: 6} {
		if got, err := (Config{}).Threshold(n); err != nil || got != want {
			t.Errorf("plain majority of %d: %d, %v", n, got, err)
		}
	}
}
