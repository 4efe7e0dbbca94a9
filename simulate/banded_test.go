package simulate_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/simulate"
)

// inTurn is a simulation with banded noise: three of twenty clients a round, each at most once in six.
func inTurn(t *testing.T, ranks int) simulate.Config {
	cfg := config(t, 20, false)
	j := &cfg.Job
	j.Rounds = 9
	j.Adapter.RankMin = 4 - ranks
	j.Cohort.Sampling, j.Cohort.Size = "fixed", 3
	j.Privacy = job.Privacy{Epsilon: 20, Accountant: "tight", Mechanism: job.MechanismBanded, Separation: 6, Band: 4}
	return cfg
}

// A simulation with banded noise names its observer, and an interrupted one goes on with the noise
// and the cohorts that it would have had.
func TestBandedRunsGoOn(t *testing.T) {
	for _, ranks := range []int{1, 3} {
		cfg := inTurn(t, ranks)
		want := play(t, cfg)
		g := want.Guarantee
		if g.Observer != dp.Participants || g.Epsilon > 20 || g.Rounds != 9 || g.Sampling != "none (q = 1), a device at most once in 6 rounds" {
			t.Errorf("%s", g)
		}
		for i := 0; i < 9; i++ {
			if a, b := want.Rounds[i].Rank, want.Rounds[i/4*4].Rank; a != b {
				t.Errorf("round %d has rank %d, its block %d", i+1, a, b)
			}
		}
		for _, stop := range []int{2, 5, 8} {
			cfg.State = filepath.Join(t.TempDir(), "state")
			ctx, cancel := context.WithCancel(t.Context())
			cfg.Progress = func(r simulate.Round) {
				if r.Number == stop {
					cancel()
				}
			}
			r, err := simulate.New(cfg)
			ok(t, err)
			if _, err := r.Rounds(ctx); !errors.Is(err, context.Canceled) {
				t.Fatalf("stopped after round %d: %v", stop, err)
			}
			ok(t, r.Close())
			cfg.Progress = nil
			if got := play(t, cfg); digest(t, got.Adapter) != digest(t, want.Adapter) || got.Guarantee != want.Guarantee {
				t.Errorf("%d ranks, stopped after round %d: another result", ranks, stop)
			}
		}
	}
}
