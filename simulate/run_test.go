package simulate_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/sim"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate/metric"
	"github.com/starling-fl/starling/simulate"
	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/program"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tinyBase is an encoder of a few thousand weights.
func tinyBase(t testing.TB) *model.Base { return tiny.Base(t, 32, 2, 16) }

var seed = bytes.Repeat([]byte{7}, 32)

// clients makes n sets of a few examples; every fifth is empty where asked.
func clients(n int, holes bool) simulate.Each {
	var out simulate.Each
	for i := range n {
		s := &dataset.Set{Labels: []string{"one", "two"}}
		if !holes || i%5 != 4 {
			for k := range 3 + i%3 {
				s.Examples = append(s.Examples, dataset.Example{Text: fmt.Sprintf("fox %d jumps %d", i, k), Label: (i + k) % 2})
			}
		}
		out = append(out, s)
	}
	return out
}

// tinyJob is one over n devices, of which half take part in a round.
func tinyJob(n int) job.Job {
	j := job.Default()
	j.Name, j.Labels, j.Rounds = "test", []string{"one", "two"}, 5
	j.Adapter = job.Adapter{RankMin: 1, RankMax: 3, Alpha: 2, Sequence: 8}
	j.Training.Steps, j.Training.Batch = 2, 2
	j.Cohort.Population, j.Cohort.SamplingRate, j.Cohort.Floor = n, 1, 3
	j.Shard = job.Shard{Size: 32, Floor: 3}
	j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort = 1_000_000, 10_000
	return j
}

// own has the devices of a job add noise themselves, each for itself: they stand for no others.
func own(j *job.Job, noise string, v float64) {
	j.Privacy.Noise, j.Privacy.OwnNoise, j.Privacy.Epsilon = noise, v, 100
	j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort = 0, 0
}

// heldOut has half of everybody's examples scored in every round, at a price.
func heldOut(j *job.Job) {
	j.Training.HeldOut, j.Training.Scored, j.Privacy.ScoreNoise = 0.5, 2, 1
}

func config(t testing.TB, n int, holes bool) simulate.Config {
	return simulate.Config{Job: tinyJob(n), Base: tinyBase(t), Population: clients(n, holes), Seed: seed, Workers: 1}
}

func play(t testing.TB, cfg simulate.Config) simulate.Result {
	t.Helper()
	r, err := simulate.New(cfg)
	ok(t, err)
	result, err := r.Rounds(t.Context())
	ok(t, errors.Join(err, r.Close()))
	return result
}

func digest(t testing.TB, a *model.Adapter) [32]byte {
	t.Helper()
	b, err := model.EncodeAdapter(a)
	ok(t, err)
	return sha256.Sum256(b)
}

// The same seed, over real sockets with masks and in process without: the same
// adapter, bit for bit. Coins decide who takes part, so the order of the roll
// counts, and an adaptive clip norm and providers go the same way.
func TestEqualToAFleetOverSockets(t *testing.T) {
	for name, change := range map[string]func(*job.Job){
		"all": func(*job.Job) {},
		"weighted, averaged": func(j *job.Job) {
			j.Training.WeightCap, j.Training.MeanWeight = 3, 0.75
			j.Server.Average = 3
		},
		"adaptive, fused": func(j *job.Job) {
			j.Clipping.Adaptive = true
			if wasm.Fuses() {
				j.Training.Arithmetic = job.Fused
			}
		},
		"sampled": func(j *job.Job) {
			j.Cohort.SamplingRate = 0.9
			j.Privacy.Delta = 1e-7
			j.Shard.Size = 64 // a group that is full leaves nobody out
		},
		"devices, sampled, dual": func(j *job.Job) {
			own(j, "devices", 0.5)
			j.Training.Dual, j.Server.Optimizer = true, job.FedAvg
			j.Cohort.SamplingRate, j.Privacy.Delta, j.Shard.Size = 0.9, 1e-7, 64
		},
		"fixed, by rank": func(j *job.Job) {
			j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort = 0, 0
			j.Cohort.Sampling, j.Cohort.Size = "fixed", 11
			j.Adapter.Scale, j.Adapter.RankDistribution, j.Privacy.ClipByRank = "constant", "geometric", true
		},
		"silo, dual": func(j *job.Job) {
			own(j, "silo", 3)
			j.Training.Dual, j.Server.Optimizer = true, job.FedAvg
		},
		"falling, dual, started": func(j *job.Job) {
			j.Training.EndFactor, j.Training.Dual, j.Server.Optimizer = 0.1, true, job.FedAvg
			j.Adapter.Start = "elsewhere"
		},
		"groups, devices, adaptive, by rank": func(j *coordinator.Job) {
			own(j, "devices", 0.5)
			j.Privacy.Groups, j.Privacy.ClipByRank, j.Clipping.Adaptive = 4, true, true
		},
		"groups, held out": func(j *coordinator.Job) {
			heldOut(j)
			j.Privacy.Groups = 2
		},
		"groups, silo, dual, weighted ranks": func(j *coordinator.Job) {
			own(j, "silo", 3)
			j.Privacy.Groups, j.Adapter.RankDistribution = 3, "geometric"
			j.Training.Dual, j.Server.Optimizer = true, job.FedAvg
		},
		"held out": heldOut,
		"held out, devices": func(j *job.Job) {
			own(j, "devices", 0.5)
			j.Clipping.Adaptive = true
			heldOut(j)
		},
	} {
		t.Run(name, func(t *testing.T) {
			const n = 40
			cfg := config(t, n, false)
			change(&cfg.Job)
			// Nobody drops because the machine is busy: what a fleet and a simulation make of
			// the same rounds is compared, and then they must be the same.
			for _, d := range []*time.Duration{&cfg.Job.Deadlines.Gather, &cfg.Job.Deadlines.Key, &cfg.Job.Deadlines.Share,
				&cfg.Job.Deadlines.Collect, &cfg.Job.Deadlines.Confirm, &cfg.Job.Deadlines.Unmask, &cfg.Job.Deadlines.Reconnect} {
				*d = 6 * time.Minute
			}
			cfg.Job.Deadlines.Enough = 1
			if cfg.Job.Adapter.Start != "" {
				lay, err := model.NewLayout(cfg.Base.Config, cfg.Job.Method(), len(cfg.Job.Labels))
				ok(t, err)
				cfg.Start = model.NewAdapter(lay, 5)
			}
			inProcess := play(t, cfg)

			ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute) // one processor, the race detector
			defer cancel()
			over, err := sim.Run(ctx, sim.Config{
				Coordinator: coordinator.Config{Job: cfg.Job, Dir: t.TempDir(), Base: cfg.Base, Start: cfg.Start, Seed: seed, Hosts: program.Hosts[:1]},
				Clients:     cfg.Population.(simulate.Each), Seed: seed,
			})
			ok(t, err)
			if over.Dropped != 0 || over.Abandoned != 0 {
				t.Errorf("%d devices dropped and %d rounds were abandoned: these are not the same rounds", over.Dropped, over.Abandoned)
			}
			if held := cfg.Job.Training.HeldOut > 0; held != (over.BestRank > 0) || over.BestRank != inProcess.BestRank || held != (len(inProcess.Fleet) > 0) {
				t.Errorf("the fleet finds rank %d the best, the simulation %d by %v", over.BestRank, inProcess.BestRank, inProcess.Fleet)
			}
			if digest(t, over.Adapter) != digest(t, inProcess.Adapter) {
				t.Error("adapters differ")
			}
			if zero := model.NewAdapter(over.Adapter.Layout(), 0); digest(t, zero) == digest(t, inProcess.Adapter) {
				t.Error("nothing was trained")
			}
		})
	}
}

// Rates that fall are the first round's in the first, and others in all behind it.
func TestFallingRates(t *testing.T) {
	norms := func(factor float64) (of []float64) {
		cfg := config(t, 40, false)
		cfg.Job.Privacy.ClipNorm = 100 // else every update is as long as it may be
		cfg.Job.Training.EndFactor = factor
		for _, r := range play(t, cfg).Rounds {
			of = append(of, r.MeanNorm)
		}
		return of
	}
	stay, fall := norms(0), norms(0.1)
	if stay[0] != fall[0] {
		t.Errorf("the first round's updates have a mean norm of %v, and of %v where rates fall", stay[0], fall[0])
	}
	if last := len(fall) - 1; !(fall[last] < stay[last]/3) {
		t.Errorf("the last round's have %v, and %v at a tenth of the rates", stay[last], fall[last])
	}
}

// A run that begins with an adapter is no run without it, and is not taken up as one
// that begins with another.
func TestStartCounts(t *testing.T) {
	cfg := config(t, 30, false)
	cfg.State = filepath.Join(t.TempDir(), "state")
	lay, err := model.NewLayout(cfg.Base.Config, cfg.Job.Method(), len(cfg.Job.Labels))
	ok(t, err)
	fresh := digest(t, play(t, cfg).Adapter)
	cfg.Job.Adapter.Start = "elsewhere"
	if _, err := simulate.New(cfg); !errors.Is(err, simulate.ErrConfig) {
		t.Errorf("no adapter where the job names one: %v", err)
	}
	cfg.Start = model.NewAdapter(lay, 5)
	if _, err := simulate.New(cfg); !errors.Is(err, simulate.ErrState) {
		t.Errorf("the state of a fresh start: %v", err)
	}
	ok(t, os.Remove(cfg.State))
	if digest(t, play(t, cfg).Adapter) == fresh {
		t.Error("the start changes nothing")
	}
	cfg.Start = model.NewAdapter(lay, 6)
	if _, err := simulate.New(cfg); !errors.Is(err, simulate.ErrState) {
		t.Errorf("the state of another start: %v", err)
	}
}

// Sums of integers do not depend on who adds first.
func TestEqualForAnyNumberOfWorkers(t *testing.T) {
	cfg := config(t, 30, true)
	want := play(t, cfg)
	for _, workers := range []int{2, 3, 8} {
		cfg.Workers = workers
		got := play(t, cfg)
		if digest(t, got.Adapter) != digest(t, want.Adapter) {
			t.Errorf("%d workers: another adapter", workers)
		}
		if a, b := fmt.Sprintf("%+v", got.Rounds), fmt.Sprintf("%+v", want.Rounds); a != b {
			t.Errorf("%d workers:\n%s\n%s", workers, a, b)
		}
	}
	if want.Rounds[0].Empty != 6 || want.Rounds[0].Cohort != 30 {
		t.Errorf("round 1: %+v, want 6 of 30 without examples", want.Rounds[0])
	}
	other := cfg
	other.Seed = bytes.Repeat([]byte{8}, 32)
	if digest(t, play(t, other).Adapter) == digest(t, want.Adapter) {
		t.Error("another seed, the same adapter")
	}
}

// A client without examples is a zero contribution; it is not replaced.
func TestEmptyClientsCountAsZero(t *testing.T) {
	cfg := config(t, 10, true)
	cfg.Job.Rounds, cfg.Job.Wire.Uplink = 1, "fixed16" // whose rounding is far below the difference
	cfg.Trainer = constant(0.001)
	full := cfg
	full.Population = clients(10, false)
	a, b := play(t, cfg).Rounds[0].SignalNorm, play(t, full).Rounds[0].SignalNorm
	if ratio := a / b; ratio < 0.78 || ratio > 0.82 { // 8 of 10; rounding moves it by far less
		t.Errorf("8 of 10 clients have examples: signal %v of %v", a, b)
	}
}

// Each round says how near its start came to the job's bounds: a fresh one stays far below, and what noise carries
// beyond them is taken back to just within.
func TestReachOfStarts(t *testing.T) {
	cfg := config(t, 10, false)
	cfg.Job.Rounds, cfg.Job.Bounds.B, cfg.Job.Privacy.NoiseMultiplier = 3, 0.01, 50
	rounds := play(t, cfg).Rounds
	if r := rounds[0].Reach; r["b"] != 0 || r["a"] <= 0 || r["a"] > 0.2 || len(r) == 0 {
		t.Errorf("a fresh start reaches %v", r)
	}
	if r := rounds[2].Reach; r["b"] < 0.9 || r["b"] > 0.96 {
		t.Errorf("after noise the start reaches %v", r)
	}
}

// constant moves every value by the same amount.
type constant float32

func (c constant) Train(_ context.Context, t edge.Task) ([]float32, error) {
	delta := make([]float32, len(t.Start))
	for i := range delta {
		delta[i] = float32(c)
	}
	return delta, nil
}

func (constant) Close() error { return nil }

// An interruption anywhere leads to the same result: the state of any round, and
// a stop in mid-round.
func TestInterruptedRunsGoOn(t *testing.T) {
	cfg := config(t, 20, false)
	want := play(t, cfg)
	for stop := 1; stop < cfg.Job.Rounds; stop++ {
		cfg.State = filepath.Join(t.TempDir(), "state")
		ctx, cancel := context.WithCancel(t.Context())
		cfg.Progress = func(r simulate.Round) {
			if r.Number == stop {
				cancel() // the next round is broken off in its middle
			}
		}
		r, err := simulate.New(cfg)
		ok(t, err)
		if _, err := r.Rounds(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped after round %d: %v", stop, err)
		}
		ok(t, r.Close())
		cfg.Progress = nil
		r, err = simulate.New(cfg)
		ok(t, err)
		if r.Done() != stop {
			t.Errorf("goes on at round %d, want %d", r.Done(), stop)
		}
		got, err := r.Rounds(t.Context())
		ok(t, errors.Join(err, r.Close()))
		if digest(t, got.Adapter) != digest(t, want.Adapter) || got.Guarantee != want.Guarantee || len(got.Rounds) != len(want.Rounds) {
			t.Errorf("stopped after round %d: another result", stop)
		}
	}
}

func TestStatesThatDoNotFit(t *testing.T) {
	cfg := config(t, 10, false)
	cfg.State = filepath.Join(t.TempDir(), "state")
	cfg.Job.Rounds = 2
	play(t, cfg)
	good, err := os.ReadFile(cfg.State)
	ok(t, err)
	refused := func(what string, cfg simulate.Config) {
		t.Helper()
		if _, err := simulate.New(cfg); !errors.Is(err, simulate.ErrState) {
			t.Errorf("%s: %v", what, err)
		}
	}
	other := cfg
	other.Job.Training.LearningRate = 0.0123
	refused("another job", other)
	other = cfg
	other.Seed = bytes.Repeat([]byte{9}, 32)
	refused("another seed", other)
	other = cfg
	other.Data = "another file"
	refused("other data", other)
	for _, at := range []int{0, 40, len(good) - 1} {
		bad := bytes.Clone(good)
		bad[at] ^= 1
		ok(t, os.WriteFile(cfg.State, bad, 0o600))
		refused(fmt.Sprintf("bit %d of a byte turned", at), cfg)
	}
	ok(t, os.WriteFile(cfg.State, good[:20], 0o600))
	refused("a short file", cfg)
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	for what, change := range map[string]func(*simulate.Config){
		"no population":    func(c *simulate.Config) { c.Population = nil },
		"another size":     func(c *simulate.Config) { c.Population = clients(9, false) },
		"no workers":       func(c *simulate.Config) { c.Workers = 0 },
		"a short seed":     func(c *simulate.Config) { c.Seed = []byte("short") },
		"a rank too large": func(c *simulate.Config) { c.Ranks = []int{4} },
		"a negative pace":  func(c *simulate.Config) { c.Every = -1 },
	} {
		cfg := config(t, 10, false)
		change(&cfg)
		if _, err := simulate.New(cfg); !errors.Is(err, simulate.ErrConfig) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// A budget that the rounds cannot keep is refused before the first of them.
	cfg := config(t, 10, false)
	cfg.Job.Privacy.NoiseMultiplier = 0.3
	if _, err := simulate.New(cfg); !errors.Is(err, job.ErrInvalid) {
		t.Errorf("too little noise: %v", err)
	}
}

// A million registered clients stay within 300 MB, and take a share of the coins.
func TestAMillionClients(t *testing.T) {
	const n = 1_000_000
	set := &dataset.Set{Labels: []string{"one", "two"}}
	parts := make([][]int, n)
	for i := range 2 * n {
		set.Examples = append(set.Examples, dataset.Example{Text: "fox", Label: i % 2})
		parts[i%n] = append(parts[i%n], i)
	}
	before := heap()
	population, err := simulate.NewPartition(set, parts)
	ok(t, err)
	parts = nil
	cfg := config(t, 10, false)
	cfg.Job = tinyJob(n)
	cfg.Job.Rounds = 2
	cfg.Job.Cohort.SamplingRate, cfg.Job.Cohort.Floor = 1e-4, 20
	cfg.Population, cfg.Trainer = population, constant(0.001)
	r, err := simulate.New(cfg)
	ok(t, err)
	result, err := r.Rounds(t.Context())
	ok(t, errors.Join(err, r.Close()))
	if grown := heap() - before; grown > 100<<20 {
		t.Errorf("a million clients take %d MB beside their examples", grown>>20)
	}
	runtime.KeepAlive(r)
	for _, round := range result.Rounds {
		if round.Cohort < 50 || round.Cohort > 160 || round.Empty != 0 { // mean 100, standard deviation 10
			t.Errorf("%+v", round)
		}
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Noise has the norm that rho says.
func TestNoiseNorm(t *testing.T) {
	cfg := config(t, 20, false)
	cfg.Job.Adapter.RankMin, cfg.Job.Adapter.RankMax = 3, 3
	cfg.Job.Wire.Uplink = "fixed16" // whose grid is finer than the noise
	cfg.Trainer = constant(0)
	result := play(t, cfg)
	for _, r := range result.Rounds {
		// d is some hundred, so the norm of the noise stays within a few percent of
		// its expectation.
		if ratio := r.NoiseNorm / (result.Rho * r.ClipNorm); ratio < 0.8 || ratio > 1.25 {
			t.Errorf("noise norm %v, rho says %v", r.NoiseNorm, result.Rho*r.ClipNorm)
		}
	}
	if e := result.Guarantee.Epsilon; !(e > 0 && e <= cfg.Job.Privacy.Epsilon) {
		t.Errorf("epsilon %v of a budget of %v", e, cfg.Job.Privacy.Epsilon)
	}
}

// scored is an evaluator that finds nothing out.
type scored struct{ ranks []int }

func (s *scored) Evaluate(_ context.Context, _ *model.Adapter, ranks []int) ([]metric.Score, error) {
	s.ranks = append(s.ranks, ranks...)
	return make([]metric.Score, len(ranks)), nil
}

// What may take long besides training is announced: the first step at each rank, and each rank that is scored.
func TestLongWorkIsAnnounced(t *testing.T) {
	cfg := config(t, 6, false)
	var e scored
	cfg.Evaluator, cfg.Every = &e, 2
	compiled, scoring := 0, 0
	cfg.Doing = func(what string) {
		switch {
		case strings.HasPrefix(what, "compiling the step of rank "):
			compiled++
		case strings.HasPrefix(what, "scoring rank "):
			scoring++
		}
	}
	ranks := map[int]bool{}
	for _, r := range play(t, cfg).Rounds {
		ranks[r.Rank] = true
	}
	if compiled != len(ranks) || scoring != len(e.ranks) || scoring != 2+3 {
		t.Errorf("%d compilations of %d ranks, %d scores of %v announced", compiled, len(ranks), scoring, e.ranks)
	}
}
