package evaluate

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate/metric"
	"github.com/starling-fl/starling/model/nn"
)

// Labelled scores adapters on a labelled set that is public or held out.
type Labelled struct {
	predictor *nn.Predictor
	task      task.Labeller
	Examples  []dataset.Example
	rows      task.Batch // examples encoded, once for all rounds and ranks; nil if that is too much to hold
	Right     [][]int    // labels of the examples, or of the words that are read, or of the masked tokens
	Classes   int
	names     []string
}

// mostHeld is how many bytes of encoded examples an evaluator holds: a million texts
// of 64 tokens. What is more is encoded again for every rank.
const mostHeld = 256 << 20

// NewLabelled returns one evaluator for each set, nil for a nil set, on a backend. They share the
// base.
func NewLabelled(be compute.Backend, base *model.Base, layout *model.Layout, sequence int, sets ...*dataset.Set) ([]*Labelled, error) {
	t, err := task.New(base, layout, sequence)
	if err != nil {
		return nil, err
	}
	k, ok := t.(task.Labeller)
	if !ok {
		return nil, fmt.Errorf("task %s has no labels", layout.Method.Task)
	}
	out := make([]*Labelled, len(sets))
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
		e := &Labelled{predictor: p, task: k, Examples: set.Examples, Classes: layout.Outputs(), names: set.Labels}
		if e.Examples, _, err = task.Rows(k, set.Examples); err != nil {
			return nil, err
		}
		values := 0
		for _, c := range k.Columns() {
			values += c.Size()
		}
		if 4*values*len(e.Examples) <= mostHeld {
			if e.rows, err = e.encode(0, len(e.Examples)); err != nil {
				return nil, err
			}
		}
		if err := e.truths(); err != nil {
			return nil, err
		}
		out[i] = e
	}
	return out, nil
}

// Sample returns an evaluator on n examples drawn at random, always the same; e itself if it has no
// more.
func (e *Labelled) Sample(n int) *Labelled {
	if len(e.Examples) <= n {
		return e
	}
	s := &Labelled{predictor: e.predictor, task: e.task, Classes: e.Classes, names: e.names}
	chosen := drawn(len(e.Examples), n)
	for _, i := range chosen {
		s.Examples = append(s.Examples, e.Examples[i])
	}
	if e.rows != nil {
		s.rows = e.rows.Pick(chosen)
	}
	if s.truths() != nil {
		return e // which NewLabelled has seen to be encodable
	}
	return s
}

// Beams returns an evaluator that searches for the likeliest text of each recording with n
// prefixes; for a task that does not transcribe it returns e.
func (e *Labelled) Beams(n int) (*Labelled, error) {
	k, transcribes := e.task.(task.Transcriber)
	if !transcribes {
		return e, nil
	}
	with := *e
	var err error
	with.task, err = k.Beams(n)
	return &with, err
}

// Transcribes reports whether labels are the characters of recordings' transcripts.
func (e *Labelled) Transcribes() bool { _, is := e.task.(task.Transcriber); return is }

// drawn are n of so many places at random, always the same.
func drawn(of, n int) []int { return rand.New(rand.NewPCG(1, 1)).Perm(of)[:n] }

// Evaluate returns the accuracy and the loss at each rank. It implements metric.Evaluator.
func (e *Labelled) Evaluate(ctx context.Context, a *model.Adapter, ranks []int) ([]metric.Score, error) {
	out := make([]metric.Score, len(ranks))
	for i, b := range ranks {
		s, err := e.Score(ctx, a, b)
		if err != nil {
			return nil, err
		}
		out[i] = metric.Score{Accuracy: s.Accuracy, Loss: s.Loss, Of: len(e.Examples)}
	}
	return out, nil
}

// Score compares predictions with labels.
type Score = task.Score

// Score scores an adapter on all examples, at a rank.
func (e *Labelled) Score(ctx context.Context, a *model.Adapter, rank int) (Score, error) {
	predicted, loss, err := e.Predict(ctx, a.Slice(rank), rank, 0, len(e.Examples))
	if err != nil {
		return Score{}, err
	}
	return e.Scored(predicted, loss), nil
}

// truths are the labels that predict's are held to, at every place that has some.
func (e *Labelled) truths() error {
	const some = 256 // are encoded at once
	for from := 0; from < len(e.Examples); from += some {
		to := min(from+some, len(e.Examples))
		rows, err := e.encode(from, to)
		if err != nil {
			return err
		}
		for i := from; i < to; i++ {
			e.Right = append(e.Right, e.task.Truths(&e.Examples[i], rows, i-from)...)
		}
	}
	return nil
}

// encode is the examples from..to-1 as the model reads them.
func (e *Labelled) encode(from, to int) (task.Batch, error) {
	if e.rows != nil {
		return e.rows.Cut(from, to), nil
	}
	return task.EncodeAll(e.task, e.Examples[from:to])
}

// Predict returns the labels predicted at each place of the examples from..to-1, and the sum of the
// places' losses.
func (e *Labelled) Predict(ctx context.Context, slice []float32, rank, from, to int) (said [][]int, loss float64, err error) {
	step := nn.RowsOfScores(e.task, e.Classes)
	for ; from < to; from += step {
		some, sum, err := e.predictSome(ctx, slice, rank, from, min(to, from+step))
		if err != nil {
			return nil, 0, err
		}
		said, loss = append(said, some...), loss+sum
	}
	return said, loss, nil
}

func (e *Labelled) predictSome(ctx context.Context, slice []float32, rank, from, to int) (said [][]int, loss float64, err error) {
	rows, err := e.encode(from, to)
	if err != nil {
		return nil, 0, err
	}
	outputs, err := e.predictor.Outputs(ctx, slice, rank, rows, to-from)
	if err != nil {
		return nil, 0, fmt.Errorf("evaluate at rank %d: %w", rank, err)
	}
	choice := e.task.Choice()
	for i, o := range outputs {
		right := e.task.Truths(&e.Examples[from+i], rows, i)
		for k, at := range e.task.Places(rows, i) {
			scores := task.ScoresAt(e.task, o, at, e.Classes)
			said = append(said, choice.Predicted(scores))
			loss += choice.Loss(scores, right[k])
		}
	}
	return said, loss, nil
}

// Scored compares predictions with the labels; loss is the sum of the places' losses.
func (e *Labelled) Scored(said [][]int, loss float64) Score {
	return task.ScoreOf(e.task, said, e.Right, loss, e.Classes, e.names)
}

// Set returns the examples with the names of their classes.
func (e *Labelled) Set() *dataset.Set { return &dataset.Set{Labels: e.names, Examples: e.Examples} }

// MajorityAccuracy is the accuracy of always predicting the most common labels.
func (e *Labelled) MajorityAccuracy() float64 { return task.MajorityAccuracy(e.Right) }
