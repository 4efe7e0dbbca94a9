package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/accounts"
	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/wasm/program"
)

// Round is a round of a job to time and to try.
type Round struct {
	edge.Trial
	program []byte
}

// FromFile is the round of a job file, or of the defaults over two labels.
func (f *Config) FromFile(_ context.Context, told io.Writer) (*Round, error) {
	j := job.Default()
	j.Labels = []string{"a", "b"}
	if f.Job != "" {
		var err error
		if j, err = job.Load(f.Job); err != nil {
			return nil, err
		}
	}
	if f.Base != "" {
		j.Base = f.Base
	}
	base := f.Read
	if base == nil {
		var err error
		if base, err = bases.ForJob(j); err != nil {
			return nil, err
		}
	}
	j = j.ForBase(base.Config)
	ranks := j.Ranks()
	if f.Rank == 0 {
		f.Rank = slices.Max(ranks)
	}
	if !slices.Contains(ranks, f.Rank) {
		return nil, usage.Errorf("--rank is %d; the job has %v", f.Rank, ranks)
	}
	layout, err := model.NewLayout(base.Config, j.Method(), len(j.Labels))
	if err != nil {
		return nil, err
	}
	code, err := program.Step(program.Spec{Job: j, Base: base, Rank: f.Rank, Host: program.Hosts[0]})
	if err != nil {
		return nil, err
	}
	recipe, err := program.Recipe(j)
	if err != nil {
		return nil, err
	}
	bounds := contract.Bounds(wire.Bounds{A: j.Bounds.A, B: j.Bounds.B, Head: j.Bounds.Head, Bias: j.Bounds.Bias, Whole: j.Bounds.Whole, Modules: j.Bounds.Modules})
	t := edge.Trial{
		Name: j.Name, Labels: j.Labels, Recipe: recipe, Base: base, Layout: layout, Rank: f.Rank, Sequence: j.Adapter.Sequence,
		Spec: j.Training, Examples: f.Examples, Uplink: j.Wire.Uplink, Own: j.Own(j.Privacy.NoiseMultiplier).Multiplier, Rounds: uint64(j.Rounds), Units: j.Providers.Max,
		Groups:  j.Privacy.Groups,
		Project: func(l *model.Layout, rank int, start []float32) { contract.ProjectStart(l, rank, start, bounds) },
	}
	if j.OwnNoise() && j.Privacy.NoiseMultiplier == 0 && f.LeakTime > 0 {
		fmt.Fprintf(told, "note: devices add noise of %v clip norms at least; more, which follows from epsilon, is not counted here\n", t.Own)
	}
	return &Round{t, code}, nil
}

// isCoordinator reports whether a job is given by where its coordinator is.
func isCoordinator(job string) bool {
	_, err := edge.JoinToken(job)
	return err == nil
}

// fromCoordinator is the round of the job that a coordinator hands to anyone who asks.
func (f *Config) fromCoordinator(ctx context.Context, _ io.Writer) (*Round, error) {
	token, err := edge.JoinToken(f.Job)
	if err != nil {
		return nil, err
	}
	policy := edge.DefaultPolicy()
	policy.Examples = f.Examples
	cfg := edge.Config{Token: token, Policy: &policy, AllowPlain: f.Plain}
	if cfg.CacheDir, err = accounts.UserPath("", os.UserCacheDir, ""); err != nil {
		return nil, err
	}
	if f.Base != "" {
		if cfg.Base, _, err = bases.OpenNamed(f.Base); err != nil {
			return nil, err
		}
	}
	t, err := edge.Ask(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if f.Rank > t.Rank {
		return nil, usage.Errorf("--rank is %d; the job's greatest is %d", f.Rank, t.Rank)
	}
	if f.Rank > 0 {
		t.Rank = f.Rank
	}
	return Announced(ctx, t)
}

// Announced returns an announced round, with its program compiled on this machine.
func Announced(ctx context.Context, t edge.Trial) (*Round, error) {
	trains, err := program.TrainingOf(t.Recipe)
	if err != nil {
		return nil, err
	}
	code, err := program.Remake(ctx, t.Work, t.Name, t.Labels, t.Recipe, t.Base, t.Rank, program.Hosts[0])
	if err != nil {
		return nil, err
	}
	t.LearningRate, t.Arithmetic = trains.LearningRate, trains.Arithmetic
	return &Round{t, code}, nil
}
