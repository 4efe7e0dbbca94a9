package simulate_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/simulate"
)

// The control of an experiment: no noise is added, and nothing is clipped where asked.
func TestWithoutNoiseAndClipping(t *testing.T) {
	cfg := config(t, 20, false)
	cfg.Job.Privacy = job.Privacy{None: true, Epsilon: 2, Accountant: "tight", ClipNorm: 0.5}
	cfg.Job.Server.Optimizer, cfg.Job.Server.Momentum = "fedavg", 0
	cfg.Job.Wire.Uplink = "fixed16" // whose rounding is far below the difference
	cfg.Trainer = constant(0.05)
	for _, clipped := range []bool{true, false} {
		cfg.Unclipped = !clipped
		result := play(t, cfg)
		if result.Guarantee.Epsilon != 0 || result.NoiseMultiplier != 0 || result.Rho != 0 {
			t.Errorf("a guarantee without noise: %+v", result)
		}
		for _, r := range result.Rounds {
			want := r.MeanNorm // every update is the same, and all take part
			if clipped {
				want = 0.5
			}
			if r.NoiseNorm != 0 || math.Abs(r.SignalNorm-want) > 0.01*want || (r.Clipped == 1) != clipped {
				t.Errorf("clipped %v: signal %v, want %v; noise %v, %v clipped", clipped, r.SignalNorm, want, r.NoiseNorm, r.Clipped)
			}
		}
	}
	cfg.Trainer = constant(1e6)
	r, err := simulate.New(cfg)
	ok(t, err)
	_, err = r.Rounds(t.Context())
	if err = errors.Join(err, r.Close()); !errors.Is(err, simulate.ErrConfig) || !strings.Contains(err.Error(), "diverges") {
		t.Errorf("an update beyond every norm: %v", err)
	}
	cfg.Job = tinyJob(20)
	if _, err := simulate.New(cfg); !errors.Is(err, simulate.ErrConfig) {
		t.Errorf("noise without a clip norm: %v", err)
	}
}
