// Package answer answers questions about documents with an adapter. It has no right answers to hold
// them to, which is what devices need of package evaluate.
//
//	r, err := answer.New(backend, base, layout, 512)
//	...
//	replies, err := r.Answer(ctx, slice, rank, examples)
package answer

import (
	"context"
	"fmt"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
)

// Responder answers questions about documents with an adapter: its base writes the answer, or marks
// where it stands.
type Responder struct {
	Task      task.Reader
	Generator *nn.Generator // of a base that writes; nil of one that finds
	Finder    task.Finder   // of one that finds; nil of one that writes
	Predictor *nn.Predictor // what a Finder reads
	tok       tokenizer.Tokenizer
}

// Reply is an answer and how sure the model is of it. The probability is not calibrated.
type Reply struct {
	Text        string
	Probability float64
}

// New returns a Responder on a backend; an error if the task answers no questions.
func New(be compute.Backend, b *model.Base, layout *model.Layout, sequence int) (*Responder, error) {
	t, err := task.New(b, layout, sequence)
	if err != nil {
		return nil, err
	}
	reads, ok := t.(task.Reader)
	if !ok {
		return nil, fmt.Errorf("task %s answers no questions", layout.Method.Task)
	}
	r := &Responder{Task: reads}
	if r.Finder, ok = t.(task.Finder); ok {
		r.Predictor, err = nn.NewPredictor(layout, b, sequence, be)
		return r, err
	}
	if r.tok, err = tokenizer.ParseFor(b.Tokenizer, b.Config.VocabSize, b.Config.PadTokenID); err != nil {
		return nil, err
	}
	r.Generator, err = nn.NewGenerator(layout, b, sequence, be)
	return r, err
}

// Answer answers the questions of examples in their order, and ignores the answers that they have.
func (r *Responder) Answer(ctx context.Context, slice []float32, rank int, examples []dataset.Example) ([]Reply, error) {
	parts, of, err := task.Rows(r.Task, examples)
	if err != nil {
		return nil, err
	}
	rows, err := task.ReadAll(r.Task, parts)
	if err != nil {
		return nil, err
	}
	out := make([]Reply, len(examples))
	if r.Finder != nil {
		return out, r.find(ctx, slice, rank, parts, of, rows, out)
	}
	answers, err := r.Generator.Answers(ctx, slice, rank, rows)
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
	logits, err := r.Predictor.Outputs(ctx, slice, rank, rows, len(parts))
	if err != nil {
		return err
	}
	for i := range parts {
		text, p, err := r.Finder.Best(&parts[i], logits[i])
		if err != nil {
			return err
		}
		if was := &out[of[i]]; p > was.Probability {
			*was = Reply{text, p}
		}
	}
	return nil
}
