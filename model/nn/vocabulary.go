package nn

import "github.com/gomlx/gomlx/core/graph"

// vocabularyLoss is the weighted mean cross-entropy of softmax(picked words^T + bias)
// at targets; picked [k,h], words [u,h], bias [u] or nil, targets int32 [k], weights
// [k]. No weight at all gives 0. The second result has the loss's gradient, not its
// value: with the derivative of log-sum-exp written out, nothing of size [k,u] is left
// to autodiff, and there is no one-hot of that size.
func (f elementary) vocabularyLoss(picked, words, bias, targets, weights *graph.Node) (loss, surrogate *graph.Node) {
	stop := graph.StopGradient
	k := picked.Shape().Dimensions[0]
	share := graph.Div(weights, graph.BroadcastToDims(graph.AddScalar(graph.ReduceSum(weights, -1), 1e-9), k))
	logits := linear(stop(picked), stop(words), nil)
	if bias != nil {
		logits = graph.Add(logits, rows(stop(bias), k))
	}
	top := graph.ReduceMax(logits, -1)
	e := f.value(graph.Sub(logits, spread(top, logits)))
	sum := graph.ReduceSum(e, -1)
	pull := graph.Mul(e, spread(graph.Div(share, sum), e)) // share * softmax

	at := graph.Reshape(targets, k, 1)
	hit := graph.ReduceSum(graph.Mul(picked, graph.Gather(words, at)), -1)
	if bias != nil {
		hit = graph.Add(hit, graph.Reshape(graph.Gather(graph.Reshape(bias, -1, 1), at), k))
	}
	hit = graph.ReduceSum(graph.Mul(share, hit), -1)
	dot := func(x, grad *graph.Node) *graph.Node { return graph.ReduceAllSum(graph.Mul(x, stop(grad))) }
	surrogate = graph.Add(
		dot(picked, graph.DotGeneral(pull, []int{1}, nil, stop(words), []int{0}, nil)),
		dot(words, graph.DotGeneral(pull, []int{0}, nil, stop(picked), []int{0}, nil)))
	if bias != nil {
		surrogate = graph.Add(surrogate, dot(bias, graph.DotGeneral(graph.OnesLike(weights), []int{0}, nil, pull, []int{0}, nil)))
	}
	surrogate = graph.Sub(surrogate, hit)
	loss = graph.Sub(graph.ReduceSum(graph.Mul(share, graph.Add(graph.Log(sum), top)), -1), hit)
	return loss, surrogate
}

// value is e^x where no gradient is taken.
func (f elementary) value(x *graph.Node) *graph.Node {
	if !f.smooth {
		return graph.Exp(x)
	}
	return graph.AddScalar(graph.Expm1(x), 1)
}
