package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

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
	rows      task.Batch // examples encoded, once for all rounds and ranks; nil where that is too much to hold
	labels    []int
	classes   int
	names     []string
	tells     bool // masked tokens, which are the labels
}

// mostHeld is how many bytes of encoded examples an evaluator holds: a million texts
// of 64 tokens. What is more is encoded again for every rank.
const mostHeld = 256 << 20

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
		e := &evaluator{predictor: p, task: k, examples: set.Examples, classes: layout.Outputs(), names: set.Labels,
			tells: layout.LoRA.Task == model.TaskPretrain}
		if e.examples, _, err = task.Rows(k, set.Examples); err != nil {
			return nil, err
		}
		values := 0
		for _, c := range k.Columns() {
			values += c.Size()
		}
		if 4*values*len(set.Examples) <= mostHeld {
			if e.rows, err = e.encode(0, len(set.Examples)); err != nil {
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
	if len(e.examples) <= n {
		return e
	}
	s := &evaluator{predictor: e.predictor, task: e.task, classes: e.classes, names: e.names, tells: e.tells}
	chosen := drawn(len(e.examples), n)
	for _, i := range chosen {
		s.examples = append(s.examples, e.examples[i])
	}
	if e.rows != nil {
		s.rows = e.rows.Pick(chosen)
	}
	if s.truths() != nil {
		return e // which newEvaluators has seen to be encodable
	}
	return s
}

// drawn are n of so many places at random, always the same.
func drawn(of, n int) []int { return rand.New(rand.NewPCG(1, 1)).Perm(of)[:n] }

// liveNote says what the accuracies of the rounds are measured on; "" where it
// is all there is.
func (e *evaluator) liveNote() string {
	if len(e.examples) <= liveTexts {
		return ""
	}
	return fmt.Sprintf("accuracy: on %d of the %d validation %s while rounds run, on all of them at the end", liveTexts, len(e.examples), called(e.examples))
}

// Evaluate returns the accuracy and the loss at each rank; it is the coordinator's
// Evaluator.
func (e *evaluator) Evaluate(ctx context.Context, a *model.Adapter, ranks []int) ([]coordinator.Score, error) {
	out := make([]coordinator.Score, len(ranks))
	for i, b := range ranks {
		s, err := e.score(ctx, a, b)
		if err != nil {
			return nil, err
		}
		out[i] = coordinator.Score{Accuracy: s.Accuracy, Loss: s.Loss}
	}
	return out, nil
}

// score is how well predictions fit labels.
type score struct {
	Accuracy float64 `json:"accuracy"`
	// MacroF1 is the mean over the classes present of the harmonic mean of
	// precision and recall: it does not let a common class hide a rare one.
	MacroF1 float64 `json:"macro_f1"`
	// TokenF1 is of words whose label is not O; only where words have labels.
	TokenF1 *float64 `json:"token_f1,omitempty"`
	// Perplexity is e^Loss; only where masked words are told.
	Perplexity *float64 `json:"perplexity,omitempty"`
	// Loss is the mean cross-entropy of the right labels, in nats; it is not in the
	// reports, where a diverged one could not be written.
	Loss float64 `json:"-"`
}

func (e *evaluator) score(ctx context.Context, a *model.Adapter, rank int) (score, error) {
	predicted, loss, err := e.predict(ctx, a.Slice(rank), rank, 0, len(e.examples))
	if err != nil {
		return score{}, err
	}
	return e.scored(predicted, loss), nil
}

// tagged says whether each word has a label, where else each example has one.
func (e *evaluator) tagged() bool { return len(e.examples) > 0 && e.examples[0].Tags != nil }

// truths are the labels that predict's are held to: of each example, or of each word
// that the model reads.
func (e *evaluator) truths() error {
	if !e.tagged() && !e.tells {
		for _, ex := range e.examples {
			e.labels = append(e.labels, ex.Label)
		}
		return nil
	}
	rows, err := e.encode(0, len(e.examples))
	if err != nil {
		return err
	}
	for i, ex := range e.examples {
		if e.tells {
			_, was := task.Told(rows, i)
			for _, id := range was {
				e.labels = append(e.labels, int(id))
			}
			continue
		}
		e.labels = append(e.labels, ex.Tags[:len(task.Firsts(rows, i))]...)
	}
	return nil
}

// encode is the examples from..to-1 as the model reads them.
func (e *evaluator) encode(from, to int) (task.Batch, error) {
	if e.rows != nil {
		return e.rows.Cut(from, to), nil
	}
	return task.EncodeAll(e.task, e.examples[from:to])
}

// mostScores is how many scores are held at once: of masked words each has one for
// every token of the vocabulary.
const mostScores = 1 << 25

// rowsOfScores is of how many rows of masked words the scores are held at once.
func rowsOfScores(k task.Task, words int) int {
	places := 1
	for _, c := range k.Columns() {
		if c.Name == task.Places {
			places = c.Size()
		}
	}
	return max(1, mostScores/(places*words))
}

// predict is the best class of each of the examples from..to-1, or of each of their
// words, and the sum of the cross-entropies of the right ones.
func (e *evaluator) predict(ctx context.Context, slice []float32, rank, from, to int) (best []int, loss float64, err error) {
	step := to - from
	if e.tells {
		step = rowsOfScores(e.task, e.classes)
	}
	for ; from < to; from += step {
		some, sum, err := e.predictSome(ctx, slice, rank, from, min(to, from+step))
		if err != nil {
			return nil, 0, err
		}
		best, loss = append(best, some...), loss+sum
	}
	return best, loss, nil
}

func (e *evaluator) predictSome(ctx context.Context, slice []float32, rank, from, to int) (best []int, loss float64, err error) {
	rows, err := e.encode(from, to)
	if err != nil {
		return nil, 0, err
	}
	outputs, err := e.predictor.Outputs(ctx, slice, rank, rows, to-from)
	if err != nil {
		return nil, 0, fmt.Errorf("evaluate at rank %d: %w", rank, err)
	}
	for i, o := range outputs {
		ex := e.examples[from+i]
		if e.tells {
			at, was := task.Told(rows, i)
			for k, id := range was {
				scores := o[at[k]*e.classes : (at[k]+1)*e.classes]
				best = append(best, nn.Best(scores))
				loss += nn.CrossEntropy(scores, int(id))
			}
			continue
		}
		if !e.tagged() {
			best = append(best, nn.Best(o))
			loss += nn.CrossEntropy(o, ex.Label)
			continue
		}
		for word, at := range task.Firsts(rows, i) {
			scores := o[at*e.classes : (at+1)*e.classes]
			best = append(best, nn.Best(scores))
			loss += nn.CrossEntropy(scores, ex.Tags[word])
		}
	}
	return best, loss, nil
}

// bestOfWords is the best class of each word of a row, of the scores of its tokens.
func bestOfWords(rows task.Batch, row int, scores []float32, classes int) []int {
	var best []int
	for _, at := range task.Firsts(rows, row) {
		best = append(best, nn.Best(scores[at*classes:(at+1)*classes]))
	}
	return best
}

// scored holds predictions to the labels; loss is the sum of their cross-entropies.
func (e *evaluator) scored(predicted []int, loss float64) score {
	s := scoreOf(predicted, e.labels, e.classes)
	s.Loss = loss / float64(max(len(predicted), 1))
	if e.tells {
		p := math.Exp(s.Loss)
		s.Perplexity = &p
	}
	if e.tagged() {
		f1 := task.TagF1(predicted, e.labels, slices.Index(e.names, "O"))
		s.TokenF1 = &f1
	}
	return s
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
