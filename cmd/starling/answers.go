package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/task"
	"github.com/starling-fl/starling/tokenizer"
)

// responder answers questions about documents with an adapter: its base writes the
// answer, or says where it stands.
type responder struct {
	task      task.Reader
	tok       tokenizer.Tokenizer
	generator *nn.Generator // of a base that writes
	span      *task.Span    // of one that finds
	predictor *nn.Predictor
}

// reply is an answer and how sure the model is of it, which is not calibrated.
type reply struct {
	Text        string
	Probability float64
}

func newResponder(be compute.Backend, b *model.Base, layout *model.Layout, sequence int) (*responder, error) {
	t, err := task.New(b, layout, sequence)
	if err != nil {
		return nil, err
	}
	reads, ok := t.(task.Reader)
	if !ok {
		return nil, fmt.Errorf("task %s answers no questions", layout.LoRA.Task)
	}
	r := &responder{task: reads}
	if r.span, ok = t.(*task.Span); ok {
		r.predictor, err = nn.NewPredictor(layout, b, sequence, be)
		return r, err
	}
	if r.tok, err = tokenizer.ParseFor(b.Tokenizer, b.Config.VocabSize, b.Config.PadTokenID); err != nil {
		return nil, err
	}
	r.generator, err = nn.NewGenerator(layout, b, sequence, be)
	return r, err
}

// answer answers the questions of examples in their order; what they know of answers it
// leaves aside.
func (r *responder) answer(ctx context.Context, slice []float32, rank int, examples []dataset.Example) ([]reply, error) {
	parts, of, err := task.Rows(r.task, examples)
	if err != nil {
		return nil, err
	}
	rows, err := task.ReadAll(r.task, parts)
	if err != nil {
		return nil, err
	}
	out := make([]reply, len(examples))
	if r.span != nil {
		return out, r.find(ctx, slice, rank, parts, of, rows, out)
	}
	answers, err := r.generator.Answers(ctx, slice, rank, rows)
	if err != nil {
		return nil, err
	}
	for i, w := range answers {
		out[i] = reply{r.tok.Decode(w.Tokens), w.Probability}
	}
	return out, nil
}

// find replies with the likeliest span of each example's parts.
func (r *responder) find(ctx context.Context, slice []float32, rank int, parts []dataset.Example, of []int, rows task.Batch, out []reply) error {
	logits, err := r.predictor.Outputs(ctx, slice, rank, rows, len(parts))
	if err != nil {
		return err
	}
	for i := range parts {
		text, p, err := r.span.Best(&parts[i], logits[i])
		if err != nil {
			return err
		}
		if was := &out[of[i]]; p > was.Probability {
			*was = reply{text, p}
		}
	}
	return nil
}

// answerer scores adapters on questions with known answers, public or held out: it
// lets the model answer, and compares what it said.
type answerer struct {
	*responder
	examples []dataset.Example
	truths   [][]string
}

// answerScore is how well answers fit, each figure 0..1.
type answerScore struct {
	ExactMatch float64 `json:"exact_match"`
	TokenF1    float64 `json:"token_f1"`
	ANLS       float64 `json:"anls"`
	Confidence float64 `json:"confidence"` // mean
}

// newAnswerers makes one for each set, nil for nil; they share the base.
func newAnswerers(be compute.Backend, b *model.Base, layout *model.Layout, sequence int, sets ...*dataset.Set) ([]*answerer, error) {
	out := make([]*answerer, len(sets))
	var r *responder
	for i, set := range sets {
		if set == nil {
			continue
		}
		if len(set.Examples) == 0 {
			return nil, fmt.Errorf("no examples to evaluate on")
		}
		a := &answerer{}
		for _, e := range set.Examples {
			if len(e.Answers) == 0 {
				return nil, &dataset.LineError{File: set.Name, Line: e.Line, Err: errors.New("has a question and no answers to hold it to")}
			}
			a.examples, a.truths = append(a.examples, e), append(a.truths, e.Answers)
		}
		if r == nil {
			var err error
			if r, err = newResponder(be, b, layout, sequence); err != nil {
				return nil, err
			}
		}
		if err := r.check(set); err != nil {
			return nil, err
		}
		a.responder = r
		out[i] = a
	}
	return out, nil
}

// check reads a set once, so that what cannot be read is told at once.
func (r *responder) check(set *dataset.Set) error {
	for at := range set.Examples {
		parts, _, err := task.Rows(r.task, set.Examples[at:at+1])
		if err == nil {
			_, err = task.ReadAll(r.task, parts)
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

// sample is an answerer on n documents drawn at random, always the same; itself where
// it has no more.
func (a *answerer) sample(n int) *answerer {
	if len(a.truths) <= n {
		return a
	}
	s := &answerer{responder: a.responder}
	for _, i := range drawn(len(a.truths), n) {
		s.examples, s.truths = append(s.examples, a.examples[i]), append(s.truths, a.truths[i])
	}
	return s
}

// Evaluate returns the exact match at each rank, and no loss; it is the coordinator's Evaluator.
func (a *answerer) Evaluate(ctx context.Context, adapter *model.Adapter, ranks []int) ([]coordinator.Score, error) {
	out := make([]coordinator.Score, len(ranks))
	for i, b := range ranks {
		s, err := a.score(ctx, adapter, b)
		if err != nil {
			return nil, err
		}
		out[i].Accuracy = s.ExactMatch
	}
	return out, nil
}

func (a *answerer) score(ctx context.Context, adapter *model.Adapter, rank int) (answerScore, error) {
	replies, err := a.answer(ctx, adapter.Slice(rank), rank, a.examples)
	if err != nil {
		return answerScore{}, fmt.Errorf("evaluate at rank %d: %w", rank, err)
	}
	return scoreReplies(replies, a.truths), nil
}

// scoreReplies holds replies to the right answers.
func scoreReplies(replies []reply, truths [][]string) (s answerScore) {
	n := float64(len(replies))
	for i, r := range replies {
		s.ExactMatch += task.ExactMatch(r.Text, truths[i]) / n
		s.TokenF1 += task.TokenF1(r.Text, truths[i]) / n
		s.ANLS += task.ANLS(r.Text, truths[i]) / n
		s.Confidence += r.Probability / n
	}
	return s
}
