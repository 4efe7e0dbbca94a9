package evaluate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/evaluate/metric"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/task"
	"github.com/starling-fl/starling/tokenizer"
)

// Responder answers questions about documents with an adapter: its base writes the answer, or marks
// where it stands.
type Responder struct {
	task      task.Reader
	tok       tokenizer.Tokenizer
	generator *nn.Generator // of a base that writes
	span      task.Finder   // of one that finds
	predictor *nn.Predictor
}

// Reply is an answer and how sure the model is of it. The probability is not calibrated.
type Reply struct {
	Text        string
	Probability float64
}

// NewResponder returns a Responder on a backend.
func NewResponder(be compute.Backend, b *model.Base, layout *model.Layout, sequence int) (*Responder, error) {
	t, err := task.New(b, layout, sequence)
	if err != nil {
		return nil, err
	}
	reads, ok := t.(task.Reader)
	if !ok {
		return nil, fmt.Errorf("task %s answers no questions", layout.Method.Task)
	}
	r := &Responder{task: reads}
	if r.span, ok = t.(task.Finder); ok {
		r.predictor, err = nn.NewPredictor(layout, b, sequence, be)
		return r, err
	}
	if r.tok, err = tokenizer.ParseFor(b.Tokenizer, b.Config.VocabSize, b.Config.PadTokenID); err != nil {
		return nil, err
	}
	r.generator, err = nn.NewGenerator(layout, b, sequence, be)
	return r, err
}

// Answer answers the questions of examples in their order, and ignores the answers that they have.
func (r *Responder) Answer(ctx context.Context, slice []float32, rank int, examples []dataset.Example) ([]Reply, error) {
	parts, of, err := task.Rows(r.task, examples)
	if err != nil {
		return nil, err
	}
	rows, err := task.ReadAll(r.task, parts)
	if err != nil {
		return nil, err
	}
	out := make([]Reply, len(examples))
	if r.span != nil {
		return out, r.find(ctx, slice, rank, parts, of, rows, out)
	}
	answers, err := r.generator.Answers(ctx, slice, rank, rows)
	if err != nil {
		return nil, err
	}
	for i, w := range answers {
		out[i] = Reply{r.tok.Decode(w.Tokens), w.Probability}
	}
	return out, nil
}

// find replies with the likeliest span of each example's parts.
func (r *Responder) find(ctx context.Context, slice []float32, rank int, parts []dataset.Example, of []int, rows task.Batch, out []Reply) error {
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
			*was = Reply{text, p}
		}
	}
	return nil
}

// Questions scores adapters on questions with known answers, public or held out: the model answers,
// and the answers are compared.
type Questions struct {
	*Responder
	Examples []dataset.Example
	Truths   [][]string
}

var errNoAnswers = errors.New("has a question and no answers to hold it to")

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
	var r *Responder
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
			if r, err = NewResponder(be, b, layout, sequence); err != nil {
				return nil, err
			}
		}
		if err := r.check(set); err != nil {
			return nil, err
		}
		a.Responder = r
		out[i] = a
	}
	return out, nil
}

// check reads a set once, so that what cannot be read is told at once.
func (r *Responder) check(set *dataset.Set) error {
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

// Evaluate returns the exact match at each rank, and no loss. It implements coordinator.Evaluator.
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
func (a *Questions) Judge(replies []Reply) AnswerScore {
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
		var said []Reply
		var truths [][]string
		for _, i := range at {
			said, truths = append(said, replies[i]), append(truths, a.Truths[i])
		}
		s.Sources[name] = ScoreReplies(said, truths)
	}
	return s
}

// ScoreReplies compares replies with the right answers.
func ScoreReplies(replies []Reply, truths [][]string) (s AnswerScore) {
	n := float64(len(replies))
	for i, r := range replies {
		s.ExactMatch += task.ExactMatch(r.Text, truths[i]) / n
		s.TokenF1 += task.TokenF1(r.Text, truths[i]) / n
		s.ANLS += task.ANLS(r.Text, truths[i]) / n
		s.Confidence += r.Probability / n
	}
	return s
}
