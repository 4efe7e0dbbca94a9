package nn

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/model"
)

// places embeds where words stand: boxes [B,S,4], a linear map of each box in parts of
// the page [B*S, hidden].
func (e encoder) places(boxes *graph.Node) *graph.Node {
	d := boxes.Shape().Dimensions
	at := graph.DivScalar(graph.ConvertDType(graph.Reshape(boxes, d[0]*d[1], 4), dtypes.Float32), model.PageSide)
	return linear(at, e.params.frozen(model.BoxEmbeddings+".weight", e.cfg.HiddenSize, 4), nil)
}

// spanLoss is the weighted mean, over examples and over begin and end, of -log of the
// sum of softmax at the right places: tokens [B,S], logits [B, S*2], right [B,S,2],
// weights [B]. Padding is no place, so that the loss does not depend on how much there
// is of it. Of one right place and no padding it is transformers' loss.
func (e encoder) spanLoss(tokens, logits, right, weights *graph.Node) *graph.Node {
	b, s := right.Shape().Dimensions[0], right.Shape().Dimensions[1]
	rows := func(x *graph.Node) *graph.Node { // [B,S,2] -> [2B,S]
		return graph.Reshape(graph.TransposeAllAxes(graph.Reshape(x, b, s, 2), 0, 2, 1), 2*b, s)
	}
	padding := graph.BroadcastToDims(graph.Const(tokens.Graph(), int32(e.cfg.PadTokenID)), b, s)
	pad := graph.ConvertDType(graph.Equal(tokens, padding), dtypes.Float32)
	pad = graph.Reshape(graph.BroadcastToDims(graph.Reshape(pad, b, 1, s), b, 2, s), 2*b, s)
	z, hit := graph.Add(rows(logits), graph.MulScalar(pad, maskedScore)), rows(right)
	// What is masked away is far below, not at minus infinity: no product with 0.
	masked := graph.Add(z, graph.MulScalar(graph.OneMinus(hit), maskedScore))
	ce := graph.Sub(e.logSumExp(z), e.logSumExp(masked))
	weights = graph.Reshape(graph.BroadcastToDims(graph.Reshape(weights, b, 1), b, 2), 2*b)
	return weightedMean(ce, weights)
}

// logSumExp over the last axis of x [n,k]: [n].
func (f elementary) logSumExp(x *graph.Node) *graph.Node {
	top := graph.StopGradient(graph.ReduceMax(x, -1))
	return graph.Add(graph.Log(graph.ReduceSum(f.exp(graph.Sub(x, spread(top, x))), -1)), top)
}
