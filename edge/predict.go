package edge

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
)

// outputLogits is what a forward pass yields: float32 [1, n], the scores of each class,
// of each token's classes, or of how each token begins and ends an answer.
const outputLogits = "logits"

// A Prediction is one thing that a model says about an example.
type Prediction struct {
	Word        string  // the word that Label is of, where the model labels words
	Label       string  // or the answer as the document has it, "" if it finds none
	Probability float64 // a softmax, not calibrated
}

// PredictOptions says how Predict runs the model.
type PredictOptions struct {
	// Untrained runs the base without what the job has learnt: under an adapter whose head gives
	// every label the same score.
	Untrained bool
	// Written receives the text as it grows, from a model that writes one; an error from it ends
	// the text. It may be nil.
	Written func(text string) error
}

// Predict runs the model on an example, ignoring the example's own label. It returns every label,
// the likeliest first; or the likeliest label of each word that fits (words are what is between
// a text's spaces); or the likeliest answer; or a text that it writes, taking the likeliest token
// each time. The first call prepares the program, which takes a moment.
func (t *Trained) Predict(ctx context.Context, e *dataset.Example, how PredictOptions) ([]Prediction, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.loaded == nil {
		if t.base == nil {
			return nil, ErrNoModel // closed
		}
		b, err := t.load(ctx)
		if err != nil {
			return nil, err
		}
		t.loaded, t.base, t.program = b, nil, nil
	}
	one := *e
	if l, ok := t.task.(task.Labeller); ok {
		one = l.Open(one)
	}
	values := t.values
	if how.Untrained {
		if t.fresh == nil {
			t.fresh = model.NewAdapter(t.layout, 0).Slice(t.Rank)
		}
		values = t.fresh
	}
	if t.layout.Method.Task.Generative() {
		return t.write(ctx, &one, values, how.Written)
	}
	rows, _, err := task.Rows(t.task, []dataset.Example{one})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrData, err)
	}
	var said []Prediction
	for i := range rows {
		part, err := t.say(ctx, &rows[i], values)
		if err != nil {
			return nil, err
		}
		if said == nil || part[0].Probability > said[0].Probability { // of a document's parts
			said = part
		}
	}
	return said, nil
}

// say is Predict for an example that fits a row.
func (t *Trained) say(ctx context.Context, e *dataset.Example, values []float32) ([]Prediction, error) {
	row := task.NewBatch(t.task.Columns(), 1)
	if err := t.task.Encode(e, row, 0); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrData, err)
	}
	each := 1
	if r := t.layout.Method.Task.Reads(); r == model.ReadsTokens || r == model.ReadsFrames {
		each = t.sequence
	}
	scores := make([]float32, each*t.layout.Outputs())
	if err := t.pass(ctx, row, values, scores); err != nil {
		return nil, err
	}
	switch k := t.task.(type) {
	case task.Finder:
		text, probability, err := k.Best(e, scores)
		return []Prediction{{Label: text, Probability: probability}}, err
	case task.Transcriber:
		return transcribed(k, scores)
	case task.Labeller:
		if each > 1 {
			return t.tagged(k, e, row, scores)
		}
		return ranked(k.Choice(), t.Labels, scores)
	}
	return nil, fmt.Errorf("%w: task %s has no predictions", ErrNoModel, t.layout.Method.Task)
}

// columns are the inputs of a pass beside the adapter's tensors.
func (t *Trained) columns() []task.Column { return task.Tried(t.layout, t.task.Columns()) }

// pass runs the program on a row under an adapter's values.
func (t *Trained) pass(ctx context.Context, row task.Batch, values, scores []float32) (err error) {
	in := t.loaded.instance
	for _, c := range t.columns() {
		if c.Type == task.F32 {
			err = in.WriteFloat32(c.Name, row.Float32(c.Name))
		} else {
			err = in.WriteInt32(c.Name, row.Int32(c.Name))
		}
		if err != nil {
			return err
		}
	}
	for _, s := range t.layout.Spans(t.Rank) {
		if s.Len == 0 {
			continue
		}
		if err = in.WriteFloat32(s.Name, values[s.Offset:s.Offset+s.Len]); err != nil {
			return err
		}
	}
	if err = in.Step(ctx); err != nil {
		return err
	}
	return in.ReadFloat32(outputLogits, scores)
}

// transcribed is what is said in a recording, and how likely that text is.
func transcribed(k task.Transcriber, scores []float32) ([]Prediction, error) {
	if err := finite(scores); err != nil {
		return nil, err
	}
	said := k.Choice().Predicted(scores)
	return []Prediction{{Label: k.Text(said), Probability: k.Probability(scores, said)}}, nil
}

// tagged is the likeliest label of each word.
func (t *Trained) tagged(k task.Labeller, e *dataset.Example, row task.Batch, scores []float32) ([]Prediction, error) {
	places := k.Places(row, 0)
	said := make([]Prediction, len(places))
	for word, at := range places {
		labels, err := ranked(k.Choice(), t.Labels, scores[at*len(t.Labels):(at+1)*len(t.Labels)])
		if err != nil {
			return nil, err
		}
		said[word] = labels[0]
		said[word].Word = e.Words[word]
	}
	if len(said) == 0 {
		return nil, fmt.Errorf("%w: its first word is longer than the model reads", ErrData)
	}
	return said, nil
}

// finite refuses scores that are not.
func finite(scores []float32) error {
	for _, v := range scores {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return fmt.Errorf("%w: a score is %v", ErrDiverged, v)
		}
	}
	return nil
}

// ranked is each label with its probability, the likeliest first. It refuses scores that
// are not finite.
func ranked(choice task.Choice, labels []string, scores []float32) ([]Prediction, error) {
	if err := finite(scores); err != nil {
		return nil, err
	}
	out := make([]Prediction, len(scores))
	for i, p := range choice.Probabilities(scores) {
		out[i] = Prediction{Label: labels[i], Probability: p}
	}
	slices.SortStableFunc(out, func(a, b Prediction) int { return cmp.Compare(b.Probability, a.Probability) })
	return out, nil
}
