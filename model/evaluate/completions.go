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

// Completions writes completions of prompts, and last replies of conversations, that are known, and compares.
type Completions struct {
	writer  *nn.Writer
	task    task.Prompter
	replies []reply
}

// reply is the right text, and the tokens before it.
type reply struct {
	before []int32
	right  string
}

// NewCompletions takes the examples of the set that are prompts with completions or conversations; nil if there are
// none.
func NewCompletions(be compute.Backend, base *model.Base, layout *model.Layout, sequence int, set *dataset.Set) (*Completions, error) {
	t, err := task.New(base, layout, sequence)
	if err != nil {
		return nil, err
	}
	p, writes := t.(task.Prompter)
	c := &Completions{task: p}
	for i := range set.Examples {
		if !writes {
			break
		}
		e := &set.Examples[i]
		before, right, err := p.Reply(e)
		if err != nil {
			return nil, &dataset.LineError{Line: e.Line, Err: err}
		}
		if right != "" {
			c.replies = append(c.replies, reply{before, right})
		}
	}
	if len(c.replies) == 0 {
		return nil, nil
	}
	c.writer, err = nn.NewWriter(layout, base, min(2*sequence, base.Config.MaxTokens()), be)
	return c, err
}

// Len is the number of texts to write.
func (c *Completions) Len() int { return len(c.replies) }

// Score scores an adapter at a rank. each, if not nil, is called after every example. A prompt is
// cut as it is in training.
func (c *Completions) Score(ctx context.Context, adapter []float32, rank int, each func(done int)) (s CompletionScore, err error) {
	n := float64(len(c.replies))
	s.Completions = len(c.replies)
	for i, r := range c.replies {
		said, err := c.write(ctx, adapter, rank, r)
		if err != nil {
			return s, fmt.Errorf("evaluate at rank %d: %w", rank, err)
		}
		s.ExactMatch += ExactText(said, r.right) / n
		s.RougeL += RougeL(said, r.right) / n
		s.SameJSON += SameJSON(said, r.right) / n
		if each != nil {
			each(i + 1)
		}
	}
	return s, nil
}

// write is what the model writes, at most twice as long as what is right.
func (c *Completions) write(ctx context.Context, adapter []float32, rank int, r reply) (string, error) {
	most := min(2*len(c.task.Prompt(r.right))+8, c.writer.Context()-len(r.before))
	text, err := c.writer.Begin(adapter, rank)
	if err != nil {
		return "", err
	}
	defer text.Close()
	var written []int32
	_, err = text.Write(ctx, r.before, most, func(scores []float32) int32 { return int32(task.Best(scores)) }, func(id int32) (bool, error) {
		written = append(written, id)
		return true, nil
	})
	return c.task.Text(written), err
}
