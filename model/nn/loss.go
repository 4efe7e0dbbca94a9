package nn

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
)

// losses are what a step makes smaller, by what its task says that is: of the inputs that
// the graph has, and of the task's outputs.
var losses = map[model.Loss]func(e encoder, s StepSpec, outputs int) aim{
	model.LossLabel:  labelLoss(elementary.surprise, rightLabel),
	model.LossLabels: labelLoss(elementary.binarySurprise, rightLabels),
	model.LossSpan: func(e encoder, _ StepSpec, outputs int) aim {
		in := e.params.byName
		loss := e.spanLoss(in[task.Tokens], e.answer(outputs), in[task.Labels], in[task.Weights])
		return aim{loss: loss, root: loss}
	},
	model.LossSpelling: func(e encoder, s StepSpec, outputs int) aim { return unjudged(e.spellingLoss(outputs)) },
	model.LossMasked:   func(e encoder, _ StepSpec, _ int) aim { return unjudged(e.maskedLoss()) },
	model.LossText: func(e encoder, _ StepSpec, _ int) aim {
		in := e.params.byName
		return unjudged(e.writer().loss(e.document(), in[task.DecoderTokens], in[task.Labels], in[task.Weights]))
	},
}

// writer is the same base as one with a decoder.
func (e encoder) writer() t5 {
	return t5{cfg: e.cfg, scale: e.scale, params: e.params, elementary: e.elementary, recompute: e.recompute}
}

// document is what it reads, of the inputs that the graph has.
func (e encoder) document() source {
	in := e.params.byName
	return source{in[task.Tokens], in[task.Boxes], in[task.Patches]}
}

// aim is a step's loss, what has its gradient, and of a step that scores labels the share that
// is right, else nil.
type aim struct{ loss, root, right *graph.Node }

func unjudged(loss, root *graph.Node) aim { return aim{loss: loss, root: root} }

// labelLoss is the weighted mean of losses that places have by themselves; of several
// clients the sum of theirs. of has the loss of each row of scores [n,outputs] against
// its labels, right the share of them that the scores tell.
func labelLoss(of func(f elementary, logits, labels *graph.Node) *graph.Node,
	right func(logits, labels *graph.Node) *graph.Node) func(e encoder, s StepSpec, outputs int) aim {
	return func(e encoder, s StepSpec, outputs int) aim {
		in := e.params.byName
		logits, labels, weights := e.answer(outputs), in[task.Labels], in[task.Weights]
		if e.task.OfTokens() {
			n := s.rows() * s.Sequence
			logits, labels, weights = graph.Reshape(logits, n, outputs), graph.Reshape(labels, n), graph.Reshape(weights, n)
		}
		if s.Clients == 0 {
			loss := weightedMean(of(e.elementary, logits, labels), weights)
			a := aim{loss: loss, root: loss}
			if s.HeldOut > 0 {
				a.right = weightedMean(right(graph.StopGradient(logits), labels), weights)
			}
			return a
		}
		each := func(x *graph.Node) *graph.Node { return graph.Reshape(x, s.Clients, -1) }
		loss := graph.ReduceSum(weightedMean(each(of(e.elementary, logits, labels)), each(weights)), -1)
		return aim{loss: loss, root: loss}
	}
}

// rightLabel is 1 where the right label's score is above all others, 0 where another's is, and
// where k are equally high 1/k, as somebody who guesses among them is right: a head that has
// learnt nothing scores all alike [n]; logits [n,c], labels [n].
func rightLabel(logits, labels *graph.Node) *graph.Node {
	d := logits.Shape().Dimensions
	class := graph.Iota(logits.Graph(), shapes.Make(dtypes.Int32, d...), 1)
	hit := graph.ConvertDType(graph.Equal(class, spread(labels, logits)), dtypes.Float32)
	top := graph.ConvertDType(graph.GreaterOrEqual(logits, spread(graph.ReduceMax(logits, -1), logits)), dtypes.Float32)
	return graph.Div(graph.ReduceSum(graph.Mul(hit, top), -1), graph.ReduceSum(top, -1))
}

// rightLabels is the share of the classes that logits have on the right side of 0 [n]; both [n,c].
func rightLabels(logits, labels *graph.Node) *graph.Node {
	zero := graph.ZerosLike(logits)
	said := graph.ConvertDType(graph.GreaterThan(logits, zero), dtypes.Float32)
	same := graph.ConvertDType(graph.Equal(said, labels), dtypes.Float32)
	return graph.DivScalar(graph.ReduceSum(same, -1), logits.Shape().Dimensions[1])
}

// binarySurprise is the mean over the classes of -log sigmoid(logits) where the label is
// right, of -log(1-sigmoid(logits)) where it is not [n]; logits and labels [n,c], labels 1
// or 0: transformers' BCEWithLogitsLoss.
func (f elementary) binarySurprise(logits, labels *graph.Node) *graph.Node {
	zero := graph.ZerosLike(logits)
	top := graph.StopGradient(graph.Max(logits, zero))
	both := graph.Add(f.exp(graph.Sub(logits, top)), f.exp(graph.Sub(zero, top)))
	each := graph.Sub(graph.Add(graph.Log(both), top), graph.Mul(labels, logits))
	return graph.DivScalar(graph.ReduceSum(each, -1), logits.Shape().Dimensions[1])
}

// answer is what the task says of the inputs that the graph has, a row an example.
func (e encoder) answer(outputs int) *graph.Node {
	in := e.params.byName
	switch e.task.Reads() {
	case model.ReadsTokens:
		x, keep := e.hidden(in[task.Tokens])
		b, n := keep.Shape().Dimensions[0], keep.Shape().Dimensions[1]
		return graph.Reshape(e.head(x, outputs), b, n*outputs)
	case model.ReadsFrames:
		return graph.Reshape(e.spelt(outputs), in[task.Keep].Shape().Dimensions[0], -1)
	case model.ReadsNext:
		k := in[task.Places].Shape().Dimensions
		return graph.Reshape(e.nextLogits(), k[0], k[1]*outputs)
	case model.ReadsDecoder:
		given, d := in[task.DecoderTokens], e.writer()
		x := d.decode(given, d.encode(e.document()))
		if at := in[task.Places]; at != nil { // of the token behind one place alone
			return linear(rowsAt(x, at), d.head(), nil)
		}
		return graph.Reshape(linear(x, d.head(), nil), given.Shape().Dimensions[0], -1)
	case model.ReadsMasked:
		x := e.maskedStates()
		k := in[task.Places].Shape().Dimensions
		return graph.Reshape(graph.Add(linear(x, e.words(), nil), rows(e.maskedBias(), k[0]*k[1])), k[0], k[1]*outputs)
	}
	if e.cfg.Hears() {
		keep := in[task.Keep]
		return e.head(e.pooled(e.frames(in[task.Samples], keep), keep), outputs)
	}
	if e.cfg.Sees() {
		return e.imageLogits(in[task.Patches], outputs)
	}
	return e.logits(in[task.Tokens], outputs)
}
