package leak

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job"
)

// A recipe names a learning rate, and a round's plan another: anyone who wants a trial to find
// nothing names one that moves nothing, or too much.
func TestHostileRate(t *testing.T) {
	s := settings(t, smallBase(t), func(j *job.Job) {
		j.Wire.Uplink, j.Adapter.RankMax, j.Adapter.Targets = "fixed32", 8, []string{"query", "key", "value"}
	})
	for _, rate := range []float64{0, -1, 1e-9, 1e-30, 1e9, 1e30, math.Inf(1), math.NaN()} {
		s.LearningRate = rate
		if a := found(t, tries(t, s, Options{Trials: 16}), "layer inputs"); a.Low < 0.1 {
			t.Errorf("at a rate of %v: %+v", rate, a)
		}
	}
}

// still moves nothing, and wild too much.
type (
	still struct{}
	wild  struct{}
)

func (still) Train(_ context.Context, t edge.Task) ([]float32, error) {
	return make([]float32, len(t.Start)), nil
}
func (wild) Train(context.Context, edge.Task) ([]float32, error) { return nil, edge.ErrDiverged }
func (still) Close() error                                       { return nil }
func (wild) Close() error                                        { return nil }

// What moves at no rate has not been tried.
func TestUntried(t *testing.T) {
	s := settings(t, smallBase(t), func(*job.Job) {})
	for _, trainer := range []edge.Trainer{still{}, wild{}} {
		s.Trainer = trainer
		if r, err := Check(watchdog.Context(t), s, Options{}); !errors.Is(err, ErrNotTried) {
			t.Errorf("%T: %+v, %v", trainer, r, err)
		}
	}
}
