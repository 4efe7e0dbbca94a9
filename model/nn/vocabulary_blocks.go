package nn

import "github.com/gomlx/gomlx/core/graph"

// vocabularyBlock is how many tokens' scores are held at once, where the vocabulary has more.
const vocabularyBlock = 8192

// blockedLoss is vocabularyLoss over words that are not trained, and without a bias, with
// the scores of one block of words at a time in memory: the largest score, the sum of
// exponentials and the gradient's sum of words are carried on from block to block, scaled
// down where a later block has a larger score (Milakov and Gimelshein 2018). What is
// multiplied is as much as without blocks.
func (f elementary) blockedLoss(picked, words, targets, weights *graph.Node, block int) (loss, surrogate *graph.Node) {
	stop := graph.StopGradient
	k, n := picked.Shape().Dimensions[0], words.Shape().Dimensions[0]
	x := stop(picked)
	var top, sum, pull *graph.Node // [k], [k], [k,h]
	for from := 0; from < n; from += block {
		w := stop(graph.Slice(words, graph.AxisRange(from, min(from+block, n)), graph.AxisRange()))
		scores := linear(x, w, nil)
		most := graph.ReduceMax(scores, -1)
		if top != nil {
			most = graph.Max(top, most)
		}
		e := f.value(graph.Sub(scores, spread(most, scores)))
		added, pulled := graph.ReduceSum(e, -1), graph.DotGeneral(e, []int{1}, nil, w, []int{0}, nil)
		if top != nil {
			less := f.value(graph.Sub(top, most))
			added = graph.Add(graph.Mul(sum, less), added)
			pulled = graph.Add(graph.Mul(pull, spread(less, pull)), pulled)
		}
		// In memory after each block: so programs have one block's code, and not sums over several.
		carried := graph.OptimizationBarriers(most, added, pulled)
		top, sum, pull = carried[0], carried[1], carried[2]
	}
	share := graph.Div(weights, graph.BroadcastToDims(graph.AddScalar(graph.ReduceSum(weights, -1), 1e-9), k))
	hit := graph.ReduceSum(graph.Mul(picked, graph.Gather(words, graph.Reshape(targets, k, 1))), -1)
	hit = graph.ReduceSum(graph.Mul(share, hit), -1)
	grad := graph.Mul(pull, spread(graph.Div(share, sum), pull)) // share * softmax * words
	surrogate = graph.Sub(graph.ReduceAllSum(graph.Mul(picked, stop(grad))), hit)
	loss = graph.Sub(graph.ReduceSum(graph.Mul(share, graph.Add(graph.Log(sum), top)), -1), hit)
	return loss, surrogate
}
