package main

import (
	"context"
	"fmt"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/tokenizer"
	"github.com/starling-fl/starling/wasm/compiler"
)

// evaluator scores adapters on a labelled set that is public or held out; no
// device's data ever reaches one.
type evaluator struct {
	predictor *nn.Predictor
	tokens    [][]int32
	labels    []int
	classes   int
}

func newEvaluator(base *model.Base, layout *model.Layout, set *dataset.Set, sequence int) (*evaluator, error) {
	tok, err := tokenizer.Parse(base.Tokenizer)
	if err != nil {
		return nil, err
	}
	if len(set.Examples) == 0 {
		return nil, fmt.Errorf("no examples to evaluate on")
	}
	p, err := nn.NewPredictor(layout, base, sequence, compiler.New())
	if err != nil {
		return nil, err
	}
	e := &evaluator{predictor: p, classes: len(set.Labels)}
	for _, ex := range set.Examples {
		e.tokens = append(e.tokens, tok.EncodeFixed(ex.Text, sequence))
		e.labels = append(e.labels, ex.Label)
	}
	return e, nil
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
	predicted, err := e.predictor.Predict(ctx, a.Slice(rank), rank, e.tokens)
	if err != nil {
		return score{}, fmt.Errorf("evaluate at rank %d: %w", rank, err)
	}
	return scoreOf(predicted, e.labels, e.classes), nil
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
