package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/task"
	"github.com/starling-fl/starling/wasm/compiler"
)

// evaluator scores adapters on a labelled set that is public or held out; no
// device's data ever reaches one.
type evaluator struct {
	predictor *nn.Predictor
	task      task.Task
	examples  []dataset.Example
	labels    []int
	classes   int
}

// newEvaluators makes one for each set, on a backend; nil for nil. They share the base.
func newEvaluators(be compute.Backend, base *model.Base, layout *model.Layout, sequence int, sets ...*dataset.Set) ([]*evaluator, error) {
	k, err := task.New(base, layout, sequence)
	if err != nil {
		return nil, err
	}
	out := make([]*evaluator, len(sets))
	var p *nn.Predictor
	for i, set := range sets {
		if set == nil {
			continue
		}
		if len(set.Examples) == 0 {
			return nil, fmt.Errorf("no examples to evaluate on")
		}
		if p == nil {
			if p, err = nn.NewPredictor(layout, base, sequence, be); err != nil {
				return nil, err
			}
		}
		e := &evaluator{predictor: p, task: k, examples: set.Examples, classes: len(set.Labels)}
		for _, ex := range set.Examples {
			e.labels = append(e.labels, ex.Label)
		}
		out[i] = e
	}
	return out, nil
}

// scores are the evaluators of a run's public splits; nil for a split there is none
// of. Validation chooses the rank while the job runs, test only reports at its end:
// choose is the one way into a coordinator.
type scores struct{ validation, test *evaluator }

func newScores(base *model.Base, layout *model.Layout, sequence int, validation, test *dataset.Set) (scores, error) {
	e, err := newEvaluators(compiler.New(), base, layout, sequence, validation, test)
	if err != nil {
		return scores{}, err
	}
	return scores{e[0], e[1]}, nil
}

// choose lets the validation split, and nothing else, measure a coordinator's rounds.
func (s scores) choose(cfg *coordinator.Config) {
	if s.validation != nil {
		cfg.Evaluator, cfg.Live = s.validation, s.validation.sample(liveTexts)
	}
}

// liveNote says what the rounds' accuracies are measured on.
func (s scores) liveNote() string {
	if s.validation == nil {
		return ""
	}
	return s.validation.liveNote()
}

// liveTexts is how many validation texts score an adapter while rounds run: the
// standard error of an accuracy is then below 4.5 %, and a round does not wait.
// All of them score the last one.
const liveTexts = 128

// sample is an evaluator on n texts drawn at random, always the same; itself
// where it has no more.
func (e *evaluator) sample(n int) *evaluator {
	if len(e.labels) <= n {
		return e
	}
	s := &evaluator{predictor: e.predictor, task: e.task, classes: e.classes}
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(len(e.labels))[:n] {
		s.examples, s.labels = append(s.examples, e.examples[i]), append(s.labels, e.labels[i])
	}
	return s
}

// liveNote says what the accuracies of the rounds are measured on; "" where it
// is all there is.
func (e *evaluator) liveNote() string {
	if len(e.labels) <= liveTexts {
		return ""
	}
	return fmt.Sprintf("accuracy: on %d of the %d validation texts while rounds run, on all of them at the end", liveTexts, len(e.labels))
}

// Evaluate returns the accuracy at each rank; it is the coordinator's
// Evaluator.
func (e *evaluator) Evaluate(ctx context.Context, a *model.Adapter, ranks []int) ([]float64, error) {
	out := make([]float64, len(ranks))
	for i, b := range ranks {
		s, err := e.score(ctx, a, b)
		if err != nil {
			return nil, err
		}
		out[i] = s.Accuracy
	}
	return out, nil
}

// score is how well predictions fit labels.
type score struct {
	Accuracy float64 `json:"accuracy"`
	// MacroF1 is the mean over the classes present of the harmonic mean of
	// precision and recall: it does not let a common class hide a rare one.
	MacroF1 float64 `json:"macro_f1"`
}

func (e *evaluator) score(ctx context.Context, a *model.Adapter, rank int) (score, error) {
	predicted, err := e.predict(ctx, a.Slice(rank), rank, e.examples)
	if err != nil {
		return score{}, err
	}
	return scoreOf(predicted, e.labels, e.classes), nil
}

// predict is each example's best class.
func (e *evaluator) predict(ctx context.Context, slice []float32, rank int, examples []dataset.Example) ([]int, error) {
	rows, err := task.EncodeAll(e.task, examples)
	if err != nil {
		return nil, err
	}
	outputs, err := e.predictor.Outputs(ctx, slice, rank, rows, len(examples))
	if err != nil {
		return nil, fmt.Errorf("evaluate at rank %d: %w", rank, err)
	}
	best := make([]int, len(outputs))
	for i, o := range outputs {
		best[i] = nn.Best(o)
	}
	return best, nil
}

func scoreOf(predicted, labels []int, classes int) score {
	hits := make([]int, classes)
	said := make([]int, classes)
	were := make([]int, classes)
	right := 0
	for i, p := range predicted {
		said[p]++
		were[labels[i]]++
		if p == labels[i] {
			hits[p]++
			right++
		}
	}
	f1, present := 0.0, 0
	for c := range classes {
		if were[c] == 0 {
			continue
		}
		present++
		f1 += 2 * float64(hits[c]) / float64(said[c]+were[c])
	}
	return score{Accuracy: float64(right) / float64(len(labels)), MacroF1: f1 / float64(max(present, 1))}
}
