package nn

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
)

// maskedStates are what the word embeddings are compared with, of the masked places of
// the inputs that the graph has: [B*K, hidden].
func (e encoder) maskedStates() *graph.Node {
	tokens, places := e.params.byName[task.Tokens], e.params.byName[task.Places]
	b, k, s := places.Shape().Dimensions[0], places.Shape().Dimensions[1], tokens.Shape().Dimensions[1]
	x, _ := e.hidden(tokens)
	row := graph.Iota(tokens.Graph(), shapes.Make(dtypes.Int32, b, k), 0)
	at := graph.Add(graph.MulScalar(row, s), places)
	head := e.cfg.MaskedHead()
	x = graph.Gather(x, graph.Reshape(at, b*k, 1))
	x = e.activation(e.dense(x, head.Dense, e.cfg.HiddenSize), head.Activation)
	return e.norm(x, head.Norm)
}

func (e encoder) maskedBias() *graph.Node {
	return e.params.frozen(e.cfg.MaskedHead().Bias, e.cfg.VocabSize)
}

// maskedLoss is the weighted mean cross-entropy of the masked tokens, or of those that come
// next, over the whole vocabulary, and what has its gradient: see vocabularyLoss.
func (e encoder) maskedLoss() (loss, surrogate *graph.Node) {
	in := e.params.byName
	flat := func(name string) *graph.Node { return graph.Reshape(in[name], -1) }
	if e.task.Reads() == model.ReadsNext {
		d := e.decoder()
		tokens := in[task.Tokens].Shape().Dimensions
		if d.recomputes(tokens[0], tokens[1]) {
			return d.recomputedLoss()
		}
		return d.headLoss(d.nextStates(in[task.Tokens], in[task.Places], in[task.Weights]), flat(task.Labels), flat(task.Weights))
	}
	return e.vocabularyLoss(e.maskedStates(), e.words(), e.maskedBias(), flat(task.Labels), flat(task.Weights))
}
