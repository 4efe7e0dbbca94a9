package main

import (
	"context"
	"fmt"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/task"
	"github.com/starling-fl/starling/tokenizer"
)

// answerer scores adapters on questions with known answers, public or held out: it
// lets the model write, and compares what it wrote.
type answerer struct {
	generator *nn.Generator
	tok       tokenizer.Tokenizer
	documents task.Batch
	truths    [][]string
}

// answerScore is how well answers fit, each figure 0..1.
type answerScore struct {
	ExactMatch float64 `json:"exact_match"`
	TokenF1    float64 `json:"token_f1"`
	ANLS       float64 `json:"anls"`
	Confidence float64 `json:"confidence"` // mean
}

// newAnswerers makes one for each set; they share the base.
func newAnswerers(be compute.Backend, b *model.Base, layout *model.Layout, sequence int, sets ...*dataset.Set) ([]*answerer, error) {
	t, err := task.New(b, layout, sequence)
	if err != nil {
		return nil, err
	}
	tok, err := tokenizer.ParseFor(b.Tokenizer, b.Config.VocabSize, b.Config.PadTokenID)
	if err != nil {
		return nil, err
	}
	g, err := nn.NewGenerator(layout, b, sequence, be)
	if err != nil {
		return nil, err
	}
	out := make([]*answerer, len(sets))
	for i, set := range sets {
		if len(set.Examples) == 0 {
			return nil, fmt.Errorf("no examples to evaluate on")
		}
		documents, err := task.EncodeAll(t, set.Examples)
		if err != nil {
			return nil, err
		}
		a := &answerer{generator: g, tok: tok, documents: documents}
		for _, e := range set.Examples {
			a.truths = append(a.truths, e.Answers)
		}
		out[i] = a
	}
	return out, nil
}

// sample is an answerer on n documents drawn at random, always the same; itself where
// it has no more.
func (a *answerer) sample(n int) *answerer {
	if len(a.truths) <= n {
		return a
	}
	s := *a
	chosen := drawn(len(a.truths), n)
	s.documents, s.truths = a.documents.Pick(chosen), nil
	for _, i := range chosen {
		s.truths = append(s.truths, a.truths[i])
	}
	return &s
}

// Evaluate returns the exact match at each rank; it is the coordinator's Evaluator.
func (a *answerer) Evaluate(ctx context.Context, adapter *model.Adapter, ranks []int) ([]float64, error) {
	out := make([]float64, len(ranks))
	for i, b := range ranks {
		s, err := a.score(ctx, adapter, b)
		if err != nil {
			return nil, err
		}
		out[i] = s.ExactMatch
	}
	return out, nil
}

func (a *answerer) score(ctx context.Context, adapter *model.Adapter, rank int) (answerScore, error) {
	answers, err := a.generator.Answers(ctx, adapter.Slice(rank), rank, a.documents)
	if err != nil {
		return answerScore{}, fmt.Errorf("evaluate at rank %d: %w", rank, err)
	}
	var s answerScore
	n := float64(len(answers))
	for i, w := range answers {
		text := a.tok.Decode(w.Tokens)
		s.ExactMatch += task.ExactMatch(text, a.truths[i]) / n
		s.TokenF1 += task.TokenF1(text, a.truths[i]) / n
		s.ANLS += task.ANLS(text, a.truths[i]) / n
		s.Confidence += w.Probability / n
	}
	return s, nil
}
