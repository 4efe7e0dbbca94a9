package evaluate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate/answer"
	"github.com/starling-fl/starling/model/evaluate/metric"
)

// Questions scores adapters on questions with known answers, public or held out: the model answers,
// and the answers are compared.
type Questions struct {
	*answer.Responder
	Examples []dataset.Example
	Truths   [][]string
}

var errNoAnswers = errors.New("has a question and no right answers")

// AnswerScore says how well answers fit, each figure 0..1.
type AnswerScore struct {
	ExactMatch float64 `json:"exact_match"`
	TokenF1    float64 `json:"token_f1"`
	ANLS       float64 `json:"anls"`
	Confidence float64 `json:"confidence"` // mean
	// Sources are the scores of each data set's questions, if they name several; the other figures
	// are of all questions together.
	Sources map[string]AnswerScore `json:"sources,omitempty"`
}

// MeanOverSources is the mean over the sources of each one's figure, so that a large data set
// counts no more than a small one; the figure itself if there are no sources.
func (s AnswerScore) MeanOverSources(figure func(AnswerScore) float64) float64 {
	if len(s.Sources) == 0 {
		return figure(s)
	}
	sum := 0.0
	for _, name := range slices.Sorted(maps.Keys(s.Sources)) {
		sum += figure(s.Sources[name])
	}
	return sum / float64(len(s.Sources))
}

// NewQuestions returns one evaluator for each set, nil for a nil set. They share the base.
func NewQuestions(be compute.Backend, b *model.Base, layout *model.Layout, sequence int, sets ...*dataset.Set) ([]*Questions, error) {
	out := make([]*Questions, len(sets))
	var r *answer.Responder
	for i, set := range sets {
		if set == nil {
			continue
		}
		if len(set.Examples) == 0 {
			return nil, fmt.Errorf("no examples to evaluate on")
		}
		a := &Questions{}
		for _, e := range set.Examples {
			if len(e.Answers) == 0 {
				return nil, &dataset.LineError{File: set.Name, Line: e.Line, Err: errNoAnswers}
			}
			a.Examples, a.Truths = append(a.Examples, e), append(a.Truths, e.Answers)
		}
		if r == nil {
			var err error
			if r, err = answer.New(be, b, layout, sequence); err != nil {
				return nil, err
			}
		}
		if err := check(r, set); err != nil {
			return nil, err
		}
		a.Responder = r
		out[i] = a
	}
	return out, nil
}

// check reads a set once, so that what cannot be read is told at once.
func check(r *answer.Responder, set *dataset.Set) error {
	for at := range set.Examples {
		parts, _, err := task.Rows(r.Task, set.Examples[at:at+1])
		if err == nil {
			_, err = task.ReadAll(r.Task, parts)
		}
		if bad := new(dataset.LineError); errors.As(err, &bad) {
			bad.File = set.Name
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Sample returns an evaluator on n documents drawn at random, always the same; a itself if it has
// no more.
func (a *Questions) Sample(n int) *Questions {
	if len(a.Truths) <= n {
		return a
	}
	s := &Questions{Responder: a.Responder}
	for _, i := range drawn(len(a.Truths), n) {
		s.Examples, s.Truths = append(s.Examples, a.Examples[i]), append(s.Truths, a.Truths[i])
	}
	return s
}

// Evaluate returns the exact match at each rank, and no loss. It implements metric.Evaluator.
func (a *Questions) Evaluate(ctx context.Context, adapter *model.Adapter, ranks []int) ([]metric.Score, error) {
	out := make([]metric.Score, len(ranks))
	for i, b := range ranks {
		s, err := a.Score(ctx, adapter, b)
		if err != nil {
			return nil, err
		}
		out[i] = metric.Score{Accuracy: s.ExactMatch, Of: len(a.Truths)}
	}
	return out, nil
}

// Score scores an adapter on all questions, at a rank.
func (a *Questions) Score(ctx context.Context, adapter *model.Adapter, rank int) (AnswerScore, error) {
	replies, err := a.Answer(ctx, adapter.Slice(rank), rank, a.Examples)
	if err != nil {
		return AnswerScore{}, fmt.Errorf("evaluate at rank %d: %w", rank, err)
	}
	return a.Judge(replies), nil
}

// Judge scores replies to all questions, in their order, and those of each source.
func (a *Questions) Judge(replies []answer.Reply) AnswerScore {
	s := ScoreReplies(replies, a.Truths)
	of := map[string][]int{}
	for i, e := range a.Examples {
		of[e.Source] = append(of[e.Source], i)
	}
	if len(of) < 2 {
		return s
	}
	s.Sources = map[string]AnswerScore{}
	for name, at := range of {
		var said []answer.Reply
		var truths [][]string
		for _, i := range at {
			said, truths = append(said, replies[i]), append(truths, a.Truths[i])
		}
		s.Sources[name] = ScoreReplies(said, truths)
	}
	return s
}

// ScoreReplies compares replies with the right answers.
func ScoreReplies(replies []answer.Reply, truths [][]string) (s AnswerScore) {
	n := float64(len(replies))
	for i, r := range replies {
		s.ExactMatch += ExactMatch(r.Text, truths[i]) / n
		s.TokenF1 += TokenF1(r.Text, truths[i]) / n
		s.ANLS += ANLS(r.Text, truths[i]) / n
		s.Confidence += r.Probability / n
	}
	return s
}
