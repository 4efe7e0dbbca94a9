package nn

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
)

// LogitsName is a forward pass's output: float32 [B, Classes]; [B, S*Classes] for a
// label a word, [B, S*2] for spans, [B, vocabulary] of the token that comes next.
const LogitsName = "logits"

// ForwardSpec describes the forward pass of an adapter at a rank, of which a
// program can be compiled that a device runs without GoMLX. Where GoMLX is, a
// Predictor serves every rank with one graph.
type ForwardSpec struct {
	Config   model.Config
	Method   model.Method
	Classes  int
	Rank     int // 1..r_max; 0: the head alone
	Batch    int // examples, 1..4096
	Sequence int // tokens of a text, 1..max_position_embeddings
}

// Build adds the pass to an empty graph. Parameters are the task's inputs, the tensors
// of the adapter in the layout's order, all of them inputs, and the frozen ones.
func (s ForwardSpec) Build(g *graph.Graph) (params []Param, outputs []Output, err error) {
	lay, err := model.NewLayout(s.Config, s.Method, s.Classes)
	if err != nil {
		return nil, nil, err
	}
	if err := lay.CheckRank(s.Rank); err != nil {
		return nil, nil, err
	}
	switch {
	case s.Batch < 1 || s.Batch > 4096:
		return nil, nil, fmt.Errorf("nn: batch is %d, want 1..4096", s.Batch)
	case !s.Config.Sees() && (s.Sequence < 1 || s.Sequence > s.Config.MaxTokens()):
		return nil, nil, fmt.Errorf("nn: sequence is %d, want 1..%d, the positions of the base", s.Sequence, s.Config.MaxTokens())
	case !lay.Method.Task.Tried():
		return nil, nil, fmt.Errorf("nn: task %s has no predictions for single examples", lay.Method.Task)
	}
	columns, err := task.Columns(lay, s.Sequence)
	if err != nil {
		return nil, nil, err
	}
	err = catch(func() {
		p := newParams(g)
		for _, c := range task.Tried(lay, columns) {
			p.add(c.Name, Input, dtypeOf(c.Type), append([]int{s.Batch}, c.Shape...)...)
		}
		for _, span := range lay.Spans(s.Rank) {
			if span.Len > 0 {
				p.add(span.Name, Input, dtypes.Float32, span.Shape...)
			}
		}
		enc := encoder{cfg: s.Config, task: lay.Method.Task, params: p}
		if s.Rank > 0 {
			enc.scale = s.Method.Scale(s.Rank)
		}
		params, outputs = p.list, []Output{{Name: LogitsName, Node: enc.answer(lay.Outputs())}}
	})
	return params, outputs, err
}
