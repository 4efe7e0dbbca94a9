package nn

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/trainer"
)

// Names of a MaskedStep's inputs besides its tokens, their weights, [trainer.InputRate] and
// [trainer.InputStep]; Predicted is the number of each one's values.
const (
	MaskedPlaces    = "places"      // int32: which of the step's tokens are predicted
	MaskedRows      = "rows"        // int32: the rows that they are of
	MaskedTargets   = "targets"     // int32: what they are
	MaskedRowWeight = "row_weights" // float32: how much each counts in the prediction from its row
)

// Names of what a MaskedStep trains besides the encoder, and endings of its moments' names.
const (
	WordEmbeddings = "embeddings.word_embeddings.weight"
	MaskedBias     = "cls.predictions.bias"
	RowDense       = "row.dense" // of the prediction from the row's mean
	AdamMean       = ".adam_m"
	AdamVariance   = ".adam_v"
)

// MaskedStep is a step of pretraining an encoder by masked-language modelling. Each token is
// predicted twice: from its own state, and from the mean of all states of its row through a linear
// layer. The softmax runs over the step's own vocabulary. Optimizer: AdamW.
type MaskedStep struct {
	Config      model.Config
	Batch       int // rows
	Sequence    int // tokens of a row
	Predicted   int // tokens, of all rows together
	Candidates  int // size of the step's vocabulary
	WeightDecay float64
}

// Trained lists the tensors of a step that change, over the step's vocabulary
// of n tokens: all but the pooler, and what only pretraining needs.
func (s MaskedStep) Trained(n int) []model.TensorSpec {
	c := s.Config
	c.VocabSize = n
	all := c.BaseTensors()
	return append(all[:len(all)-2:len(all)-2],
		model.TensorSpec{Name: MaskedBias, Shape: []int{n}},
		model.TensorSpec{Name: RowDense + ".weight", Shape: []int{c.HiddenSize, c.HiddenSize}},
		model.TensorSpec{Name: RowDense + ".bias", Shape: []int{c.HiddenSize}})
}

// Build writes the step. Token ids are indices into the step's vocabulary,
// whose first is padding.
func (s MaskedStep) Build(g *graph.Graph) ([]Param, []Output, error) {
	p := newParams(g)
	k := s.Predicted
	tokens := p.add(task.Tokens, Input, dtypes.Int32, s.Batch, s.Sequence)
	places := p.add(MaskedPlaces, Input, dtypes.Int32, k)
	rowOf := p.add(MaskedRows, Input, dtypes.Int32, k)
	targets := p.add(MaskedTargets, Input, dtypes.Int32, k)
	weights := p.add(task.Weights, Input, dtypes.Float32, k)
	rowW := p.add(MaskedRowWeight, Input, dtypes.Float32, k)
	lr := p.add(trainer.InputRate, Input, dtypes.Float32)
	step := p.add(trainer.InputStep, Input, dtypes.Float32)

	specs := s.Trained(s.Candidates)
	vars := make([]*graph.Node, len(specs))
	for i, t := range specs {
		vars[i] = p.add(t.Name, State, dtypes.Float32, t.Shape...)
	}
	m := make([]*graph.Node, len(specs))
	v := make([]*graph.Node, len(specs))
	for i, t := range specs {
		m[i] = p.add(t.Name+AdamMean, State, dtypes.Float32, t.Shape...)
		v[i] = p.add(t.Name+AdamVariance, State, dtypes.Float32, t.Shape...)
	}
	cfg := s.Config
	cfg.VocabSize = s.Candidates
	e := encoder{cfg: cfg, params: p, elementary: elementary{smooth: true}}
	x, keep := e.hidden(tokens)
	words, bias := p.byName[WordEmbeddings], p.byName[MaskedBias]
	predict := func(state, at, w *graph.Node) (loss, surrogate *graph.Node) {
		picked := graph.Gather(state, graph.Reshape(at, k, 1))
		return e.vocabularyLoss(picked, words, bias, targets, w)
	}
	own, ownGrad := predict(x, places, weights)
	_, rowGrad := predict(e.dense(e.pooled(x, keep), RowDense, cfg.HiddenSize), rowOf, rowW)
	grads := graph.Gradient(graph.Add(ownGrad, rowGrad), vars...)
	outputs := []Output{{Name: trainer.OutputLoss, Node: own}}
	for i, t := range specs {
		dir, newM, newV := adamDirection(grads[i], step, m[i], v[i])
		if s.WeightDecay > 0 && len(t.Shape) == 2 {
			dir = graph.Add(dir, graph.MulScalar(vars[i], s.WeightDecay))
		}
		outputs = append(outputs,
			Output{State: t.Name, Node: graph.Sub(vars[i], scaleBy(dir, lr))},
			Output{State: t.Name + AdamMean, Node: newM},
			Output{State: t.Name + AdamVariance, Node: newV})
	}
	return p.list, outputs, nil
}

// PooledStates writes an encoder's masked mean of each of some rows' states [rows, hidden]; its
// first parameter is the rows' tokens.
func PooledStates(c model.Config, rows, sequence int) func(*graph.Graph) ([]Param, []Output, error) {
	return func(g *graph.Graph) ([]Param, []Output, error) {
		p := newParams(g)
		tokens := p.add(task.Tokens, Input, dtypes.Int32, rows, sequence)
		e := encoder{cfg: c, params: p}
		x, keep := e.hidden(tokens)
		return p.list, []Output{{Name: "pooled", Node: e.pooled(x, keep)}}, nil
	}
}
