package strength

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/starling-fl/starling/secagg"
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
		if !errors.Is(err, secagg.ErrConfig) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.m, err, c.says)
		}
	}
	p, err := Choose(Model{Shard: 128, Dropout: 0.3, Corrupt: 0.1, Cohort: 1000, SemiHonest: true})
	if err != nil || p.Threshold != 44 || !strings.Contains(p.Explain(), "NOT secure") {
		t.Errorf("%+v, %v\n%s", p, err, p.Explain())
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

// What is reckoned of a draw without replacement, and what cannot happen, is said.
func TestExplain(t *testing.T) {
	p, err := Choose(Model{Shard: 64, Dropout: 0, Corrupt: 0.05, Population: 5000, Cohort: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if text := p.Explain(); !strings.Contains(text, "drawn from 5000") || !strings.Contains(text, "shard fails    0 at 0 dropout") {
		t.Error(text)
	}
}
