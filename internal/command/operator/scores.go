package operator

import (
	"fmt"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/evaluate"
	"github.com/starling-fl/starling/internal/evaluation"
	"github.com/starling-fl/starling/internal/progress"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/wasm/compiler"
)

// scores are the evaluators of a run's public splits; nil for a split there is none
// of. Validation chooses the rank while the job runs, test only reports at its end:
// choose is the one way into a coordinator.
type scores struct{ validation, test *evaluate.Labelled }

func newScores(base *model.Base, layout *model.Layout, sequence int, validation, test *dataset.Set) (scores, error) {
	e, err := evaluate.NewLabelled(compiler.New(), base, layout, sequence, validation, test)
	if err != nil {
		return scores{}, err
	}
	return scores{e[0], e[1]}, nil
}

// choose lets the validation split, and nothing else, measure a coordinator's rounds.
func (s scores) choose(cfg *coordinator.Config) {
	if s.validation != nil {
		cfg.Evaluator, cfg.Live = s.validation, s.validation.Sample(liveTexts)
	}
}

// liveNote says what the rounds' accuracies are measured on.
func (s scores) liveNote() string {
	if s.validation == nil {
		return ""
	}
	return liveNote(s.validation)
}

// learning watches what measures the rounds; nil if nothing does.
func (s scores) learning(rounds int) *progress.Learning {
	if s.validation == nil {
		return nil
	}
	live := s.validation.Sample(liveTexts)
	return progress.NewLearning(live.MajorityAccuracy(), len(live.Right), rounds)
}

// liveTexts is how many validation texts score an adapter while rounds run: the
// standard error of an accuracy is then below 4.5 %, and a round does not wait.
// All of them score the last one.
const liveTexts = 128

// liveNote says what the accuracies of the rounds are measured on; "" where it
// is all there is.
func liveNote(e *evaluate.Labelled) string {
	if len(e.Examples) <= liveTexts {
		return ""
	}
	return fmt.Sprintf("accuracy: on %d of the %d validation %s while rounds run, on all of them at the end", liveTexts, len(e.Examples), evaluation.Called(e.Examples))
}
