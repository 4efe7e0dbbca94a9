package evaluation

import (
	"context"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/outcome"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate"
	"github.com/starling-fl/starling/wasm/compiler"
)

// Completions are the texts that base and adapter write for the test split's prompts.
type Completions struct {
	Before evaluate.CompletionScore // of the base

	test *evaluate.Completions
}

// NewCompletions lets the base write behind the test split's prompts; nil where the layout's task writes nothing.
func NewCompletions(ctx context.Context, b *model.Base, layout *model.Layout, sequence int, test *dataset.Set) (*Completions, error) {
	if layout.Method.Task != model.TaskCausal {
		return nil, nil
	}
	e, err := evaluate.NewCompletions(compiler.New(), b, layout, sequence, test)
	if e == nil || err != nil {
		return nil, err
	}
	c := &Completions{test: e}
	c.Before, err = e.Score(ctx, model.NewAdapter(layout, 0).Slice(0), 0, nil)
	return c, err
}

// Len is the number of prompts.
func (c *Completions) Len() int { return c.test.Len() }

// Report lets the released adapter write behind the same prompts, at r's best rank.
func (c *Completions) Report(ctx context.Context, r outcome.Report, adapter *model.Adapter) (outcome.WrittenReport, error) {
	after, err := c.test.Score(ctx, adapter.Slice(r.BestRank), r.BestRank, nil)
	return outcome.WrittenReport{Report: r, Before: c.Before, After: after}, err
}
