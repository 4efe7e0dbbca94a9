package device

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/accounts"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/program"
)

// benched is a round of a job to time and to try.
type benched struct {
	edge.Trial
	program []byte
}

// fromFile is the round of a job file, or of the defaults over two labels.
func (f *benchFlags) fromFile(_ context.Context, a *command.App) (*benched, error) {
	j := job.Default()
	j.Labels = []string{"a", "b"}
	if f.job != "" {
		var err error
		if j, err = job.Load(f.job); err != nil {
			return nil, err
		}
	}
	if f.base != "" {
		j.Base = f.base
	}
	base, err := command.LoadJobBase(j)
	if err != nil {
		return nil, err
	}
	j = j.ForBase(base.Config)
	ranks := j.Ranks()
	if f.rank == 0 {
		f.rank = slices.Max(ranks)
	}
	if !slices.Contains(ranks, f.rank) {
		return nil, command.Usagef("--rank is %d; the job has %v", f.rank, ranks)
	}
	layout, err := model.NewLayout(base.Config, j.Method(), len(j.Labels))
	if err != nil {
		return nil, err
	}
	code, err := program.Step(program.Spec{Job: j, Base: base, Rank: f.rank, Host: program.Hosts[0]})
	if err != nil {
		return nil, err
	}
	recipe, err := program.Recipe(j)
	if err != nil {
		return nil, err
	}
	t := edge.Trial{
		Name: j.Name, Labels: j.Labels, Recipe: recipe, Base: base, Layout: layout, Rank: f.rank, Sequence: j.Adapter.Sequence,
		Spec: j.Training, Examples: f.leak.examples, Uplink: j.Wire.Uplink, Own: j.Own(j.Privacy.NoiseMultiplier).Multiplier,
	}
	if j.OwnNoise() && j.Privacy.NoiseMultiplier == 0 && f.leak.lasts > 0 {
		fmt.Fprintf(a.Stderr, "note: devices add noise of %v clip norms at least; more, which follows from epsilon, is not counted here\n", t.Own)
	}
	return &benched{t, code}, nil
}

// isCoordinator reports whether a job is given by where its coordinator is.
func isCoordinator(job string) bool {
	_, err := joinToken(job)
	return err == nil
}

// fromCoordinator is the round of the job that a coordinator hands to whoever asks.
func (f *benchFlags) fromCoordinator(ctx context.Context, _ *command.App) (*benched, error) {
	token, err := joinToken(f.job)
	if err != nil {
		return nil, err
	}
	policy, _ := edge.PolicyFor(token)
	policy.Examples = f.leak.examples
	cfg := edge.Config{Token: token, Policy: &policy, AllowPlain: f.plain}
	if cfg.CacheDir, err = accounts.UserPath("", os.UserCacheDir, ""); err != nil {
		return nil, err
	}
	if f.base != "" {
		if cfg.Base, _, err = command.OpenNamed(f.base); err != nil {
			return nil, err
		}
	}
	t, err := edge.Ask(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if f.rank > t.Rank {
		return nil, command.Usagef("--rank is %d; the job's greatest is %d", f.rank, t.Rank)
	}
	if f.rank > 0 {
		t.Rank = f.rank
	}
	return made(ctx, t)
}

// made is an announced round with its program, made again here.
func made(ctx context.Context, t edge.Trial) (*benched, error) {
	trains, err := program.Trains(t.Recipe)
	if err != nil {
		return nil, err
	}
	code, err := program.Remake(ctx, t.Work, t.Name, t.Labels, t.Recipe, t.Base, t.Rank, program.Hosts[0])
	if err != nil {
		return nil, err
	}
	t.LearningRate, t.Arithmetic = trains.LearningRate, trains.Arithmetic
	return &benched{t, code}, nil
}
