package evaluate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate/answer"
	"github.com/starling-fl/starling/model/nn"
)

// Examined holds a model's outputs on one example, for attacks on privacy.
type Examined struct {
	Right      float64 // 1 where everything that is said is right, else 0
	Similarity float64 // of an answer to the right one (ANLS), else the share of places that are right
	Loss       float64 // mean cross-entropy of what is right, in nats; NaN if a document does not hold it
	Confidence float64 // how sure the model is of what it says: not calibrated
	Answer     string  // an answer; "" of labels
}

// Examiner examines examples one by one, where evaluators compute means.
type Examiner struct {
	task      task.Task
	responder *answer.Responder // of a task that asks
	labels    task.Labeller     // of another
	predictor *nn.Predictor
	classes   int
}

// NewExaminer returns an Examiner for any task, on a backend.
func NewExaminer(be compute.Backend, b *model.Base, layout *model.Layout, sequence int) (*Examiner, error) {
	t, err := task.New(b, layout, sequence)
	if err != nil {
		return nil, err
	}
	e := &Examiner{task: t, classes: layout.Outputs()}
	if layout.Method.Task.Asks() {
		e.responder, err = answer.New(be, b, layout, sequence)
		return e, err
	}
	k, ok := t.(task.Labeller)
	if !ok {
		return nil, fmt.Errorf("task %s has neither answers nor labels", layout.Method.Task)
	}
	e.labels = k
	e.predictor, err = nn.NewPredictor(layout, b, sequence, be)
	return e, err
}

// Asks reports whether examples are questions with answers in words.
func (x *Examiner) Asks() bool { return x.responder != nil }

// Unasked returns an example without its question, or with as little of one as the task can read.
func (x *Examiner) Unasked(e dataset.Example) dataset.Example {
	e.Question = ""
	if x.responder.Finder != nil {
		e.Question = "?" // a pair has to have one
	}
	return e
}

// Replies computes the answers alone, whatever right answers the examples have.
func (x *Examiner) Replies(ctx context.Context, slice []float32, rank int, examples []dataset.Example) ([]answer.Reply, error) {
	return x.responder.Answer(ctx, slice, rank, examples)
}

// Losses computes Examined.Loss alone, which is cheaper.
func (x *Examiner) Losses(ctx context.Context, slice []float32, rank int, examples []dataset.Example) ([]float64, error) {
	if x.Asks() {
		return x.answerLosses(ctx, slice, rank, examples)
	}
	all, err := x.Examine(ctx, slice, rank, examples)
	out := make([]float64, len(all))
	for i, e := range all {
		out[i] = e.Loss
	}
	return out, err
}

// Examine examines each of the examples with an adapter at a rank.
func (x *Examiner) Examine(ctx context.Context, slice []float32, rank int, examples []dataset.Example) ([]Examined, error) {
	if x.Asks() {
		return x.answers(ctx, slice, rank, examples)
	}
	rows, of, err := task.Rows(x.labels, examples)
	if err != nil {
		return nil, err
	}
	out, places := make([]Examined, len(examples)), make([]float64, len(examples))
	for i := range out {
		out[i].Right = 1
	}
	step := nn.RowsOfScores(x.task, x.classes)
	for from := 0; from < len(rows); from += step {
		some := rows[from:min(from+step, len(rows))]
		b, err := task.EncodeAll(x.task, some)
		if err != nil {
			return nil, err
		}
		scores, err := x.predictor.Outputs(ctx, slice, rank, b, len(some))
		if err != nil {
			return nil, err
		}
		for i := range some {
			at := of[from+i]
			x.label(&out[at], &places[at], &some[i], b, i, scores[i])
		}
	}
	for i := range out {
		if places[i] == 0 {
			out[i] = Examined{Loss: math.NaN()}
			continue
		}
		out[i].Similarity /= places[i]
		out[i].Loss /= places[i]
		out[i].Confidence /= places[i]
	}
	return out, nil
}

// label adds a row's places to what its example shows.
func (x *Examiner) label(to *Examined, places *float64, e *dataset.Example, b task.Batch, row int, scores []float32) {
	choice, right := x.labels.Choice(), x.labels.Truths(e, b, row)
	for k, at := range x.labels.Places(b, row) {
		here := scores[at*x.classes : (at+1)*x.classes]
		said := choice.Predicted(here)
		*places++
		if slices.Equal(said, right[k]) {
			to.Similarity++
		} else {
			to.Right = 0
		}
		to.Loss += choice.Loss(here, right[k])
		to.Confidence += sureness(choice, here)
	}
}

// sureness is the probability of what is said: of one label its own, of several the mean over
// all that each is said or not.
func sureness(choice task.Choice, scores []float32) float64 {
	p := choice.Probabilities(scores)
	if !choice.Several() {
		return slices.Max(p)
	}
	sum := 0.0
	for _, x := range p {
		sum += max(x, 1-x)
	}
	return sum / float64(len(p))
}

// answers are of questions; a loss is of the first of the right answers, which is learnt.
func (x *Examiner) answers(ctx context.Context, slice []float32, rank int, examples []dataset.Example) ([]Examined, error) {
	for _, e := range examples {
		if len(e.Answers) == 0 && x.responder.Finder == nil {
			return nil, &dataset.LineError{Line: e.Line, Err: errNoAnswers}
		}
	}
	replies, err := x.responder.Answer(ctx, slice, rank, examples)
	if err != nil {
		return nil, err
	}
	losses, err := x.answerLosses(ctx, slice, rank, examples)
	if err != nil {
		return nil, err
	}
	out := make([]Examined, len(examples))
	for i, r := range replies {
		out[i] = Examined{Right: ExactMatch(r.Text, examples[i].Answers), Similarity: ANLS(r.Text, examples[i].Answers),
			Loss: losses[i], Confidence: r.Probability, Answer: strings.TrimSpace(r.Text)}
		if len(examples[i].Answers) == 0 && r.Text == "" { // which is right if there is none
			out[i].Right, out[i].Similarity = 1, 1
		}
	}
	return out, nil
}

// answerLosses are the cross-entropies of the right answers, in nats. For a text that is written it
// is the mean over its tokens and its end; for one that is found, the mean of its beginning and its
// end over the document's parts, or NaN if no part has it.
func (x *Examiner) answerLosses(ctx context.Context, slice []float32, rank int, examples []dataset.Example) ([]float64, error) {
	r := x.responder
	if r.Finder != nil {
		return x.spanLosses(ctx, slice, rank, examples)
	}
	out := make([]float64, 0, len(examples))
	for from := 0; from < len(examples); from += nn.MostForced {
		some := examples[from:min(from+nn.MostForced, len(examples))]
		b, err := task.EncodeAll(r.Task, some)
		if err != nil {
			return nil, err
		}
		scores, err := r.Generator.Logits(ctx, slice, rank, b)
		if err != nil {
			return nil, err
		}
		labels, weights := b.Int32(task.Labels), b.Float32(task.Weights)
		places := len(labels) / len(some)
		for i := range some {
			words := len(scores[i]) / places
			sum, n := 0.0, 0.0
			for k := range places {
				if weights[i*places+k] != 0 {
					sum += task.CrossEntropy(scores[i][k*words:(k+1)*words], int(labels[i*places+k]))
					n++
				}
			}
			out = append(out, sum/n)
		}
	}
	return out, nil
}

func (x *Examiner) spanLosses(ctx context.Context, slice []float32, rank int, examples []dataset.Example) ([]float64, error) {
	r := x.responder
	parts, of, err := task.Rows(r.Task, examples)
	if err != nil {
		return nil, err
	}
	rows, err := task.ReadAll(r.Task, parts)
	if err != nil {
		return nil, err
	}
	scores, err := r.Predictor.Outputs(ctx, slice, rank, rows, len(parts))
	if err != nil {
		return nil, err
	}
	out, n := make([]float64, len(examples)), make([]float64, len(examples))
	for i := range parts {
		loss, stands, err := r.Finder.Loss(&parts[i], scores[i])
		if err != nil {
			return nil, err
		}
		if stands {
			out[of[i]] += loss
			n[of[i]]++
		}
	}
	for i := range out {
		out[i] /= n[i] // NaN if it stands nowhere
	}
	return out, nil
}
