package simulate_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/edge"
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

// A cross-silo study may train one of three clients a round; nothing hides it, and nothing
// is to be hidden: each round moves by that client's update, whole.
func TestOneClientARound(t *testing.T) {
	cfg := config(t, 3, false)
	j := &cfg.Job
	j.Privacy = job.Privacy{None: true, Epsilon: 2, Accountant: "tight", ClipNorm: 0.5}
	j.Shard, j.Cohort.Floor = job.Shard{Size: 32}, 0
	j.Cohort.Sampling, j.Cohort.Size = "fixed", 1
	j.Wire.Uplink = "fixed16"
	cfg.Trainer, cfg.Unclipped = constant(0.05), true
	for _, r := range play(t, cfg).Rounds {
		if r.Cohort != 1 || r.NoiseOnly || math.Abs(r.SignalNorm-r.MeanNorm) > 1e-3*r.MeanNorm {
			t.Errorf("round %d: a cohort of %d moves by %v of its update's %v", r.Number, r.Cohort, r.SignalNorm, r.MeanNorm)
		}
	}
	j.Privacy, cfg.Unclipped = job.Privacy{Epsilon: 2, Accountant: "tight", ClipNorm: 0.5}, false
	if _, err := simulate.New(cfg); !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), "cohort.size") {
		t.Errorf("with a promise of privacy: %v", err)
	}
}

// Updates weigh by their clients' examples: where all take part it is FedAvg's mean with
// n_k/n.
func TestWeightedMean(t *testing.T) {
	cfg := config(t, 6, false)
	j := &cfg.Job
	j.Privacy = job.Privacy{None: true, Epsilon: 2, Accountant: "tight", ClipNorm: 0.5}
	j.Wire.Uplink = "fixed16"
	sizes := []int{1, 2, 3, 4, 9, 9}
	cfg.Population = sized{cfg.Population, sizes}
	j.Training.WeightCap, j.Training.MeanWeight = 9, 28.0/9/6
	j.Training.Steps, j.Training.Batch = 1, 9
	cfg.Trainer, cfg.Unclipped = bySize{}, true
	want := 0.0
	for _, n := range sizes { // a client's update is its number of examples, in hundredths
		want += float64(n) / 28 * float64(n) / 100
	}
	for _, r := range play(t, cfg).Rounds {
		if got := r.SignalNorm / math.Sqrt(float64(r.Values)); r.Cohort != 6 || math.Abs(got-want) > 1e-3*want {
			t.Errorf("round %d: %d clients move by %v, want %v", r.Number, r.Cohort, got, want)
		}
	}
	j.Training.MeanWeight = 0
	if _, err := simulate.New(cfg); !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), "mean_weight") {
		t.Errorf("weights without their mean: %v", err)
	}
}

// sized is a population whose clients have so many examples.
type sized struct {
	simulate.Population
	of []int
}

func (s sized) Client(n int) (*dataset.Set, error) {
	set, err := s.Population.Client(n)
	if err != nil {
		return nil, err
	}
	out := &dataset.Set{Labels: set.Labels}
	for range s.of[n] {
		out.Examples = append(out.Examples, set.Examples[0])
	}
	return out, nil
}

// bySize trains to as many hundredths as there are examples.
type bySize struct{}

func (bySize) Train(_ context.Context, t edge.Task) ([]float32, error) {
	n := 0
	for b, err := range t.Batches {
		if err != nil {
			return nil, err
		}
		rows := 0
		for _, w := range b.Float32(task.Weights) {
			if w != 0 {
				rows++
			}
		}
		n = max(n, rows)
	}
	out := make([]float32, len(t.Start))
	for i := range out {
		out[i] = float32(n) / 100
	}
	return out, nil
}

func (bySize) Close() error { return nil }

// Dropouts count as zero in a mean whose denominator stays, by a coin that is the same
// in any order of the clients, and are told apart from those without examples.
func TestDropouts(t *testing.T) {
	cfg := config(t, 60, true)
	cfg.Job.Wire.Uplink = "fixed16"
	cfg.Trainer = constant(0.001)
	whole := play(t, cfg)
	cfg.Dropout = 0.3
	some := play(t, cfg)
	cfg.Workers = 3
	if digest(t, play(t, cfg).Adapter) != digest(t, some.Adapter) {
		t.Error("another number of workers, another adapter")
	}
	dropped, drawn := 0, 0
	for i, r := range some.Rounds {
		dropped, drawn = dropped+r.Dropped, drawn+r.Cohort
		if r.Empty+r.Dropped < whole.Rounds[i].Empty || r.Empty > whole.Rounds[i].Empty {
			t.Errorf("round %d: %d empty, %d dropped; %d empty without dropouts", r.Number, r.Empty, r.Dropped, whole.Rounds[i].Empty)
		}
		trained := float64(r.Cohort - r.Empty - r.Dropped)
		if want := whole.Rounds[i].SignalNorm * trained / float64(whole.Rounds[i].Cohort-whole.Rounds[i].Empty); math.Abs(r.SignalNorm-want) > 0.02*want {
			t.Errorf("round %d: signal %v, want %v", r.Number, r.SignalNorm, want)
		}
	}
	// 300 coins: six standard deviations; the seed is fixed.
	if want := 0.3 * float64(drawn); math.Abs(float64(dropped)-want) > 6*math.Sqrt(want*0.7) {
		t.Errorf("%d of %d dropped", dropped, drawn)
	}
	cfg.Dropout = 1
	if _, err := simulate.New(cfg); !errors.Is(err, simulate.ErrConfig) {
		t.Errorf("all drop out: %v", err)
	}
}
