package evaluate

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/evaluate/metric"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/task"
)

// Labelled scores adapters on a labelled set that is public or held out; no
// device's data ever reaches one.
type Labelled struct {
	predictor *nn.Predictor
	task      task.Task
	Examples  []dataset.Example
	rows      task.Batch // examples encoded, once for all rounds and ranks; nil where that is too much to hold
	Labels    []int      // of the examples, or of the words that are read
	Classes   int
	names     []string
	tells     bool // masked tokens, which are the labels
}

// mostHeld is how many bytes of encoded examples an evaluator holds: a million texts
// of 64 tokens. What is more is encoded again for every rank.
const mostHeld = 256 << 20

// NewLabelled makes one for each set, on a backend; nil for nil. They share the base.
func NewLabelled(be compute.Backend, base *model.Base, layout *model.Layout, sequence int, sets ...*dataset.Set) ([]*Labelled, error) {
	k, err := task.New(base, layout, sequence)
	if err != nil {
		return nil, err
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
		e := &Labelled{predictor: p, task: k, Examples: set.Examples, Classes: layout.Outputs(), names: set.Labels,
			tells: layout.Method.Task == model.TaskPretrain}
		if e.Examples, _, err = task.Rows(k, set.Examples); err != nil {
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

// Sample is one on n texts drawn at random, always the same; itself
// where it has no more.
func (e *Labelled) Sample(n int) *Labelled {
	if len(e.Examples) <= n {
		return e
	}
	s := &Labelled{predictor: e.predictor, task: e.task, Classes: e.Classes, names: e.names, tells: e.tells}
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

// drawn are n of so many places at random, always the same.
func drawn(of, n int) []int { return rand.New(rand.NewPCG(1, 1)).Perm(of)[:n] }

// Evaluate returns the accuracy and the loss at each rank; it is the coordinator's
// Evaluator.
func (e *Labelled) Evaluate(ctx context.Context, a *model.Adapter, ranks []int) ([]metric.Score, error) {
	out := make([]metric.Score, len(ranks))
	for i, b := range ranks {
		s, err := e.Score(ctx, a, b)
		if err != nil {
			return nil, err
		}
		out[i] = metric.Score{Accuracy: s.Accuracy, Loss: s.Loss}
	}
	return out, nil
}

// Score is how well predictions fit labels.
type Score struct {
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

// Score is of all examples, at a rank.
func (e *Labelled) Score(ctx context.Context, a *model.Adapter, rank int) (Score, error) {
	predicted, loss, err := e.Predict(ctx, a.Slice(rank), rank, 0, len(e.Examples))
	if err != nil {
		return Score{}, err
	}
	return e.Scored(predicted, loss), nil
}

// tagged says whether each word has a label, where else each example has one.
func (e *Labelled) tagged() bool { return len(e.Examples) > 0 && e.Examples[0].Tags != nil }

// truths are the labels that predict's are held to: of each example, or of each word
// that the model reads.
func (e *Labelled) truths() error {
	if !e.tagged() && !e.tells {
		for _, ex := range e.Examples {
			e.Labels = append(e.Labels, ex.Label)
		}
		return nil
	}
	rows, err := e.encode(0, len(e.Examples))
	if err != nil {
		return err
	}
	for i, ex := range e.Examples {
		if e.tells {
			_, was := task.Told(rows, i)
			for _, id := range was {
				e.Labels = append(e.Labels, int(id))
			}
			continue
		}
		e.Labels = append(e.Labels, ex.Tags[:len(task.Firsts(rows, i))]...)
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

// mostScores is how many scores are held at once: of masked words each has one for
// every token of the vocabulary.
const mostScores = 1 << 25

// RowsOfScores is of how many rows of masked words the scores are held at once.
func RowsOfScores(k task.Task, words int) int {
	places := 1
	for _, c := range k.Columns() {
		if c.Name == task.Places {
			places = c.Size()
		}
	}
	return max(1, mostScores/(places*words))
}

// Predict is the best class of each of the examples from..to-1, or of each of their
// words, and the sum of the cross-entropies of the right ones.
func (e *Labelled) Predict(ctx context.Context, slice []float32, rank, from, to int) (best []int, loss float64, err error) {
	step := to - from
	if e.tells {
		step = RowsOfScores(e.task, e.Classes)
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

func (e *Labelled) predictSome(ctx context.Context, slice []float32, rank, from, to int) (best []int, loss float64, err error) {
	rows, err := e.encode(from, to)
	if err != nil {
		return nil, 0, err
	}
	outputs, err := e.predictor.Outputs(ctx, slice, rank, rows, to-from)
	if err != nil {
		return nil, 0, fmt.Errorf("evaluate at rank %d: %w", rank, err)
	}
	for i, o := range outputs {
		ex := e.Examples[from+i]
		if e.tells {
			at, was := task.Told(rows, i)
			for k, id := range was {
				scores := o[at[k]*e.Classes : (at[k]+1)*e.Classes]
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
			scores := o[at*e.Classes : (at+1)*e.Classes]
			best = append(best, nn.Best(scores))
			loss += nn.CrossEntropy(scores, ex.Tags[word])
		}
	}
	return best, loss, nil
}

// BestOfWords is the best class of each word of a row, of the scores of its tokens.
func BestOfWords(rows task.Batch, row int, scores []float32, classes int) []int {
	var best []int
	for _, at := range task.Firsts(rows, row) {
		best = append(best, nn.Best(scores[at*classes:(at+1)*classes]))
	}
	return best
}

// Scored holds predictions to the labels; loss is the sum of their cross-entropies.
func (e *Labelled) Scored(predicted []int, loss float64) Score {
	s := scoreOf(predicted, e.Labels, e.Classes)
	s.Loss = loss / float64(max(len(predicted), 1))
	if e.tells {
		p := math.Exp(s.Loss)
		s.Perplexity = &p
	}
	if e.tagged() {
		f1 := task.TagF1(predicted, e.Labels, slices.Index(e.names, "O"))
		s.TokenF1 = &f1
	}
	return s
}

func scoreOf(predicted, labels []int, classes int) Score {
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
	return Score{Accuracy: float64(right) / float64(len(labels)), MacroF1: f1 / float64(max(present, 1))}
}

// Commonest is the accuracy of always saying the commonest label.
func (e *Labelled) Commonest() float64 {
	count := make([]int, e.Classes)
	most := 0
	for _, l := range e.Labels {
		count[l]++
		most = max(most, count[l])
	}
	return float64(most) / float64(len(e.Labels))
}
