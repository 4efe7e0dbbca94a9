package simulate_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/simulate"
)

// diverging is a trainer of which every so many calls diverge.
type diverging struct {
	every int64
	calls *atomic.Int64
}

func (d diverging) Train(ctx context.Context, t edge.Task) ([]float32, error) {
	if t.Scores != nil { // everything is right
		t.Scores(0, 1)
		return make([]float32, len(t.Start)), nil
	}
	if d.calls.Add(1)%d.every == 0 {
		return nil, edge.ErrDiverged
	}
	return constant(0.01).Train(ctx, t)
}

func (diverging) Close() error { return nil }

// A client whose training diverges sends zeros, as a device does, and the run goes on.
func TestDivergingClientsSendZeros(t *testing.T) {
	cfg := config(t, 20, false)
	cfg.Trainer = diverging{4, new(atomic.Int64)}
	result := play(t, cfg)
	zeros, of := 0, 0
	for _, r := range result.Rounds {
		zeros, of = zeros+r.Zeros, of+r.Cohort-r.Empty-r.Dropped
	}
	if zeros != of/4 || zeros == 0 {
		t.Errorf("of %d updates %d are zeros, want a quarter", of, zeros)
	}
}

// A run whose clients all send zeros ends after some rounds, and says why.
func TestRunThatComesToNothing(t *testing.T) {
	cfg := config(t, 20, false)
	cfg.Job.Rounds = 10
	rounds := 0
	cfg.Progress = func(simulate.Round) { rounds++ }
	cfg.Trainer = diverging{1, new(atomic.Int64)}
	r, err := simulate.New(cfg)
	ok(t, err)
	_, err = r.Rounds(t.Context())
	if err = errors.Join(err, r.Close()); !errors.Is(err, edge.ErrDiverged) || !strings.Contains(err.Error(), "first 3 rounds") || rounds != 2 {
		t.Errorf("after %d rounds: %v", rounds, err)
	}
}

// What devices find on examples held out has a noised count of those that sent zeros.
func TestSilentAreCounted(t *testing.T) {
	cfg := config(t, 60, false)
	heldOut(&cfg.Job)
	cfg.Trainer = diverging{2, new(atomic.Int64)}
	told := 0
	for _, r := range play(t, cfg).Rounds {
		if r.Fleet == nil {
			continue
		}
		told++
		if s := r.Fleet.Silent; math.Abs(s.Mean-30) > 5*s.Noise || s.Mean < 3*s.Noise || r.Zeros != 30 {
			t.Errorf("round %d: silent %+v, %d of 60 clients sent zeros", r.Number, s, r.Zeros)
		}
	}
	if told == 0 {
		t.Error("no round says anything")
	}
}
