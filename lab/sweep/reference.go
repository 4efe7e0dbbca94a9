package sweep

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/starling-fl/starling/internal/app/progress"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate/linear"
	"github.com/starling-fl/starling/quant"
)

// References are what a run's accuracy is held to, on the same test part.
type References struct {
	Tests     int     `json:"tests"`     // examples of the test part
	Untouched float64 `json:"untouched"` // accuracy of the base before any training
	// Linear is a linear model over words that is trained on what all clients hold, pooled: only a simulation can have it.
	// nil where the task has none, which NoLinear says.
	Linear   *linear.Score `json:"linear,omitempty"`
	NoLinear string        `json:"no_linear,omitempty"`
	// The same run without noise, and without clipping either, where they were asked for.
	Unnoised  *float64 `json:"unnoised,omitempty"`
	Unclipped *float64 `json:"unclipped,omitempty"`
}

// referenceKey names what a run's references depend on: sets that are read once, and what a test example is.
// No method changes a base before it is trained.
type referenceKey struct {
	train, test any
	base        *model.Base // as it is, or packed
	task        model.TaskKind
	sequence    int
}

// refer computes a run's references, or has those of a run before over the same file.
func (l *Lab) refer(ctx context.Context, s *Setup) (*References, error) {
	key := referenceKey{s.Data.Train, s.Data.Test, s.Config.Base, s.Job.Method().Task, s.Job.Adapter.Sequence}
	if known, ok := l.references[key]; ok {
		return &known, nil
	}
	layout, err := model.NewLayout(s.Config.Base.Config, s.Job.Method(), len(s.Job.Labels))
	if err != nil {
		return nil, err
	}
	before, err := s.Test.Score(ctx, model.NewAdapter(layout, 0), 0)
	if err != nil {
		return nil, err
	}
	out := &References{Tests: len(s.Data.Test.Examples), Untouched: before.Accuracy}
	err = linear.ErrNone
	if layout.Method.Task == model.TaskClassify {
		out.Linear, err = linear.Against(ctx, s.Data.Train, s.Data.Test)
	}
	if errors.Is(err, linear.ErrNone) {
		out.NoLinear = "no linear reference for this task"
	} else if err != nil {
		return nil, err
	}
	if s.Data.Train != nil { // of a file, which is read once
		if l.references == nil {
			l.references = map[referenceKey]References{}
		}
		l.references[key] = *out
	}
	return out, nil
}

// WithoutNoise are the settings of a run's control, which promises nothing: the same without noise, and without clipping if
// that is left out, too. clip is the run's clip norm in its first round.
func (s Settings) WithoutNoise(clip float64, unclipped bool) Settings {
	s.Job = clone(s.Job)
	kept := map[string]any{"none": true, "clip_norm": clip}
	if privacy, ok := s.Job["privacy"].(map[string]any); ok {
		for _, key := range []string{"clip_by_rank", "unit", "groups"} {
			if v, there := privacy[key]; there {
				kept[key] = v
			}
		}
	}
	s.Job["privacy"] = kept
	s.Unclipped = unclipped
	return s
}

// chance is how far two accuracies on so many examples are apart by chance: two standard errors of the difference.
func chance(a, b float64, n int) float64 {
	return 2 * math.Sqrt((a*(1-a)+b*(1-b))/float64(max(1, n)))
}

// leastKept is the cosine between the true mean update and what the grid leaves of it below which the grid is named.
const leastKept = 0.9

// Limit says in a sentence what limits a run's accuracy, and what to try; "" of a record without references.
func (r *Record) Limit() string {
	f := r.References
	if f == nil || len(r.Curve) == 0 {
		return ""
	}
	a, clip, norm := r.Accuracy, r.ClipNorm(), 0.0
	for _, round := range r.Curve {
		norm += round.MeanNorm / float64(len(r.Curve))
	}
	behind := func(x *float64) bool { return x != nil && *x-a > chance(*x, a, f.Tests) }
	switch kept := r.kept(); {
	case kept < leastKept && !r.Settings.Unclipped:
		return fmt.Sprintf("Limit: the grid of %s. Clip norm %.3g is %.3g times an update's norm (%.3g), and of the mean update the grid leaves a cosine of %.2f: "+
			"try privacy.clip_norm: %.2g, or wire.uplink: fixed16", r.uplink(), clip, clip/norm, norm, kept, 1.5*norm)
	case f.Unclipped != nil && f.Unnoised != nil && *f.Unclipped-*f.Unnoised > chance(*f.Unclipped, *f.Unnoised, f.Tests):
		return fmt.Sprintf("Limit: clipping. Without it (and without noise) the same run has %.1f %%, with it %.1f %%: try privacy.clip_norm: %.2g",
			100**f.Unclipped, 100**f.Unnoised, norm)
	case behind(f.Unnoised):
		return fmt.Sprintf("Limit: noise. Without it the same run has %.1f %%: try a larger cohort or population, fewer trained values (adapter.rank_max), or more epsilon", 100**f.Unnoised)
	case f.Unclipped == nil && r.Clipped > 0.5 && r.NoiseNorm < r.SignalNorm/2 && !r.Settings.Unclipped:
		return fmt.Sprintf("Limit: clipping. %.0f %% of updates are cut to %.3g, their norm is %.3g, and the noise is %.2g of the mean update: try privacy.clip_norm: %.2g",
			100*r.Clipped, clip, norm, r.NoiseNorm/r.SignalNorm, norm)
	case f.Unnoised == nil && r.NoiseNorm > r.SignalNorm:
		return fmt.Sprintf("Limit: noise, which is %.2g times the mean update: try a larger cohort or population, fewer trained values (adapter.rank_max), or more epsilon", r.NoiseNorm/r.SignalNorm)
	case r.rises():
		return "Limit: rounds. Validation still rises at the end: try more rounds, a larger server.learning_rate or more training.steps"
	case f.Linear != nil && f.Linear.Accuracy-a > chance(f.Linear.Accuracy, a, f.Tests):
		return fmt.Sprintf("Limit: the base or the learning rates. Validation rises no more, and a linear model over words has %.1f %%: "+
			"try another base (starling base fetch), then training.learning_rate and server.learning_rate", 100*f.Linear.Accuracy)
	}
	return fmt.Sprintf("Limit: none is seen beyond what chance makes of %d test examples", f.Tests)
}

// kept estimates the cosine between a round's mean update and its mean after rounding to the uplink's grid, over the rounds.
// A coordinate x between two symbols a step apart is rounded to either at random, with a variance of |x| times the step
// where x is far smaller, and of a sixth of the step's square on average over what is larger.
func (r *Record) kept() float64 {
	scheme, err := quant.Lookup(r.uplink())
	if err != nil {
		return 1
	}
	sum, n := 0.0, 0.0
	for _, round := range r.Curve {
		if round.SignalNorm == 0 || round.Values == 0 || round.Cohort == 0 {
			continue
		}
		d := float64(round.Values)
		step := scheme.ClipPoint() * round.ClipNorm / float64(scheme.MaxSymbol()) / math.Sqrt(d)
		deviation := min(round.MeanNorm, round.ClipNorm) / math.Sqrt(d)
		lost := d * min(step*step/6, math.Sqrt(2/math.Pi)*deviation*step) / float64(round.Cohort)
		sum += round.SignalNorm / math.Sqrt(round.SignalNorm*round.SignalNorm+lost)
		n++
	}
	if n == 0 {
		return 1
	}
	return sum / n
}

// rises reports whether validation rose in the last third of the rounds by more than a standard error.
func (r *Record) rises() bool {
	var seen []float64
	var at []int
	examples := r.Settings.Validation
	for _, round := range r.Curve {
		if best, ok := progress.Best(round.Accuracy); ok {
			seen, at = append(seen, best.Accuracy), append(at, round.Number)
			examples = max(best.Of, examples)
		}
	}
	if n := len(r.Curve); len(at) > 0 && at[len(at)-1] < n {
		seen, at = append(seen, r.Validation), append(at, n)
	}
	if len(seen) < 3 {
		return false
	}
	last := len(seen) - 1
	for i := last; i >= 0; i-- {
		if at[last]-at[i] >= len(r.Curve)/3 {
			return seen[last]-seen[i] > chance(seen[last], seen[i], examples)/2
		}
	}
	return false
}
