package evaluate

import (
	"context"
	"fmt"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
)

// CompletionScore says how well greedily written completions fit the right ones, each figure 0..1.
type CompletionScore struct {
	Completions int     `json:"completions"`
	ExactMatch  float64 `json:"exact_match"` // but for outer space
	RougeL      float64 `json:"rouge_l"`
	SameJSON    float64 `json:"json_match"` // both are JSON of one value
}

// Completions completes prompts whose completions are known, and compares.
type Completions struct {
	writer   *nn.Writer
	task     task.Prompter
	examples []dataset.Example
}

// NewCompletions takes the examples of the set that are prompts with completions; nil if there are
// none.
func NewCompletions(be compute.Backend, base *model.Base, layout *model.Layout, sequence int, set *dataset.Set) (*Completions, error) {
	t, err := task.New(base, layout, sequence)
	if err != nil {
		return nil, err
	}
	p, writes := t.(task.Prompter)
	c := &Completions{task: p}
	for _, e := range set.Examples {
		if e.Completion != "" {
			c.examples = append(c.examples, e)
		}
	}
	if !writes || len(c.examples) == 0 {
		return nil, nil
	}
	c.writer, err = nn.NewWriter(layout, base, min(2*sequence, base.Config.MaxTokens()), be)
	return c, err
}

// Len is the number of prompts.
func (c *Completions) Len() int { return len(c.examples) }

// Score scores an adapter at a rank. each, if not nil, is called after every example. A prompt is
// cut as it is in training.
func (c *Completions) Score(ctx context.Context, adapter []float32, rank int, each func(done int)) (s CompletionScore, err error) {
	n := float64(len(c.examples))
	s.Completions = len(c.examples)
	for i, e := range c.examples {
		said, err := c.write(ctx, adapter, rank, e)
		if err != nil {
			return s, fmt.Errorf("evaluate at rank %d: %w", rank, err)
		}
		s.ExactMatch += ExactText(said, e.Completion) / n
		s.RougeL += RougeL(said, e.Completion) / n
		s.SameJSON += SameJSON(said, e.Completion) / n
		if each != nil {
			each(i + 1)
		}
	}
	return s, nil
}

// write is what is behind an example's prompt, at most twice as long as what is right.
func (c *Completions) write(ctx context.Context, adapter []float32, rank int, e dataset.Example) (string, error) {
	prompt, err := c.task.Before(&e)
	if err != nil {
		return "", err
	}
	most := min(2*len(c.task.Prompt(e.Completion))+8, c.writer.Context()-len(prompt))
	text, err := c.writer.Begin(adapter, rank)
	if err != nil {
		return "", err
	}
	defer text.Close()
	var written []int32
	_, err = text.Write(ctx, prompt, most, func(scores []float32) int32 { return int32(task.Best(scores)) }, func(id int32) (bool, error) {
		written = append(written, id)
		return true, nil
	})
	return c.task.Text(written), err
}
