package simulate_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/simulate"
)

// pulled trains a third of the way to as many hundredths as there are examples, and notes who did.
type pulled struct {
	bySize
	who *[]int
}

func (p pulled) Train(ctx context.Context, t edge.Task) ([]float32, error) {
	out, err := p.bySize.Train(ctx, t)
	if err != nil {
		return nil, err
	}
	*p.who = append(*p.who, int(math.Round(float64(out[0])*100)))
	for i := range out {
		out[i] = (out[i] - t.Start[i]) / 3
	}
	return out, nil
}

// dual is a job of six clients that want different adapters, and what is seen of its training.
func dual(t *testing.T, clip float64) (simulate.Config, *[]int) {
	t.Helper()
	cfg := config(t, 6, false)
	j := &cfg.Job
	j.Rounds, j.Cohort.Floor, j.Server.Optimizer = 12, 3, job.FedAvg
	j.Privacy = job.Privacy{None: true, Epsilon: 2, Accountant: "tight", ClipNorm: clip}
	j.Cohort.Sampling, j.Cohort.Size = "fixed", 4
	j.Shard = job.Shard{Size: 8, Floor: 3}
	j.Wire.Uplink, j.Wire.Downlink = "fixed32", "f32"
	j.Training.Steps, j.Training.Batch, j.Training.Dual = 1, 64, true
	cfg.Population = sized{cfg.Population, []int{1, 5, 12, 20, 33, 60}}
	who := new([]int)
	cfg.Trainer = pulled{who: who}
	return cfg, who
}

// Algorithm 2 of Tobaben et al. without noise, in floats of 64 bits, value by value: over
// rounds of several ranks and with clients that are away for some.
func TestDualsAreAlgorithmTwo(t *testing.T) {
	for name, clip := range map[string]float64{"clipped": 0.8, "whole": 100} {
		t.Run(name, func(t *testing.T) {
			cfg, who := dual(t, clip)
			result := play(t, cfg)
			lay := result.Adapter.Layout()
			size := lay.Size(lay.Method.RMax)
			w := make([]float64, size)
			for i, v := range first(t, cfg).Slice(lay.Method.RMax) {
				w[i] = float64(v)
			}
			type client struct {
				lambda, local []float64
				took          []bool
			}
			clients := map[int]*client{}
			cut := 0
			for k, r := range result.Rounds {
				index, err := lay.Index(r.Rank)
				ok(t, err)
				mean := make([]float64, size)
				for _, n := range (*who)[4*k : 4*k+4] {
					c := clients[n]
					if c == nil {
						c = &client{make([]float64, size), make([]float64, size), make([]bool, size)}
						clients[n] = c
					}
					norm := 0.0
					u := make([]float64, size)
					for _, at := range index {
						if c.took[at] {
							c.lambda[at] += w[at] - c.local[at]
						}
						u[at] = (float64(n)/100-w[at])/3 + c.lambda[at]
						norm += u[at] * u[at]
					}
					scale := min(1, clip/math.Sqrt(norm))
					if scale < 1 {
						cut++
					}
					for _, at := range index {
						c.local[at], c.took[at] = w[at]+scale*u[at], true
						mean[at] += scale * u[at] / 4
					}
				}
				for i, v := range mean {
					w[i] += v
				}
			}
			if (cut > 0) != (name == "clipped") {
				t.Errorf("%d updates were clipped", cut)
			}
			worst := 0.0
			for i, v := range result.Adapter.Slice(lay.Method.RMax) {
				worst = max(worst, math.Abs(float64(v)-w[i]))
			}
			if worst > 2e-4 {
				t.Errorf("values differ by up to %v", worst)
			}
		})
	}
}

// first is the adapter that a run begins with: what it has after no round.
func first(t *testing.T, cfg simulate.Config) *model.Adapter {
	t.Helper()
	core, err := core.New(cfg.Job, cfg.Base, cfg.Seed)
	ok(t, err)
	return core.Adapter()
}

// Where clients want different adapters, what each sends stays as long in FedAvg as they
// differ; dual variables make up for it, so that clipping cuts less.
func TestDualsTakeDriftAway(t *testing.T) {
	last := func(dualled bool) float64 {
		cfg, _ := dual(t, 100)
		cfg.Job.Training.Dual = dualled
		cfg.Job.Adapter.RankMin, cfg.Job.Adapter.RankMax = 2, 2
		cfg.Job.Cohort.Size = 6
		rounds := play(t, cfg).Rounds
		return rounds[len(rounds)-1].MeanNorm
	}
	if with, without := last(true), last(false); !(with <= 0.8*without) {
		t.Errorf("updates have a mean norm of %v, and of %v without dual variables", with, without)
	}
}

// An interrupted run goes on with what clients kept.
func TestDualsGoOn(t *testing.T) {
	cfg, _ := dual(t, 0.8)
	whole := digest(t, play(t, cfg).Adapter)
	cfg.State = filepath.Join(t.TempDir(), "state")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg.Progress = func(r simulate.Round) {
		if r.Number == 5 {
			cancel()
		}
	}
	r, err := simulate.New(cfg)
	ok(t, err)
	if _, err := r.Rounds(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: %v", err)
	}
	r, err = simulate.New(cfg)
	ok(t, err)
	if r.Done() != 5 {
		t.Fatalf("%d rounds taken up, want 5", r.Done())
	}
	result, err := r.Rounds(t.Context())
	ok(t, err)
	if digest(t, result.Adapter) != whole {
		t.Error("an interrupted run ends elsewhere")
	}
}

func TestDualsRefused(t *testing.T) {
	for name, change := range map[string]func(*simulate.Config){
		"workers elsewhere":     func(c *simulate.Config) { c.Collect = simulate.InProcess(c.Trainer, 1) },
		"simulate fewer":        func(c *simulate.Config) { many(c, 90_000); c.Job.Adapter.RankMax = 8 },
		"the limit is":          func(c *simulate.Config) { many(c, 100_001) },
		"providers.max":         func(c *simulate.Config) { c.Job.Providers.Max, c.Job.Providers.Expected = 2, 1 },
		"server.optimizer":      func(c *simulate.Config) { c.Job.Server.Optimizer = "fedadam" },
		"training.weight_cap":   func(c *simulate.Config) { c.Job.Training.WeightCap, c.Job.Training.MeanWeight = 3, 0.5 },
		"server.learning_rate ": func(c *simulate.Config) { c.Job.Server.LearningRate = 0.5 },
	} {
		cfg, _ := dual(t, 1)
		change(&cfg)
		if _, err := simulate.New(cfg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// many has n clients.
func many(c *simulate.Config, n int) {
	c.Population, c.Job.Cohort.Population = crowd{c.Population, n}, n
}

// crowd is a population that is asked for nobody.
type crowd struct {
	simulate.Population
	n int
}

func (c crowd) Len() int { return c.n }
