package nn

import (
	"math"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/model"
)

// rotation turns queries and keys by their positions (Su et al. 2021): cos and sin [S,
// d/2] of each position's angle for each pair of columns.
type rotation struct{ cos, sin *graph.Node }

// rotation is that of s positions. An angle is the sum of that of a multiple of a step and
// that of a rest, so that the graph has constants of some 2 sqrt(S) rows in place of S:
// what is compiled stays small however long a text is.
func (d decoder) rotation(g *graph.Graph, r model.Rope, s int) rotation {
	pairs := d.cfg.Decoder.HeadSize / 2
	step := int(math.Ceil(math.Sqrt(float64(s))))
	table := func(n, by int, f func(float64) float64) *graph.Node { // [n, pairs]
		out := make([]float32, 0, n*pairs)
		for i := range n {
			for _, w := range r.Frequencies(pairs) {
				out = append(out, float32(f(float64(i*by)*w)))
			}
		}
		return graph.Reshape(graph.Const(g, out), n, pairs)
	}
	far := (s + step - 1) / step
	at := func(x *graph.Node, many bool) *graph.Node { // [far, step, pairs]
		if many {
			return graph.BroadcastToDims(graph.Reshape(x, far, 1, pairs), far, step, pairs)
		}
		return graph.BroadcastToDims(graph.Reshape(x, 1, step, pairs), far, step, pairs)
	}
	cosFar, sinFar := at(table(far, step, math.Cos), true), at(table(far, step, math.Sin), true)
	cosNear, sinNear := at(table(step, 1, math.Cos), false), at(table(step, 1, math.Sin), false)
	cut := func(x *graph.Node) *graph.Node {
		return graph.Slice(graph.Reshape(x, far*step, pairs), graph.AxisRange(0, s), graph.AxisRange())
	}
	return rotation{
		cos: cut(graph.Sub(graph.Mul(cosFar, cosNear), graph.Mul(sinFar, sinNear))),
		sin: cut(graph.Add(graph.Mul(sinFar, cosNear), graph.Mul(cosFar, sinNear))),
	}
}

// apply turns x [B*S, heads*d] and gives it as [B, S, heads, d]. A head's pair i is its
// columns i and i + d/2.
func (r rotation) apply(x *graph.Node, b, heads int) *graph.Node {
	s, pairs := r.cos.Shape().Dimensions[0], r.cos.Shape().Dimensions[1]
	x = graph.Reshape(x, b, s, heads, 2*pairs)
	half := func(from int) *graph.Node {
		return graph.Slice(x, graph.AxisRange(), graph.AxisRange(), graph.AxisRange(), graph.AxisRange(from, from+pairs))
	}
	at := func(t *graph.Node) *graph.Node {
		return graph.BroadcastToDims(graph.Reshape(t, 1, s, 1, pairs), b, s, heads, pairs)
	}
	first, second, cos, sin := half(0), half(pairs), at(r.cos), at(r.sin)
	return graph.Concatenate([]*graph.Node{
		graph.Sub(graph.Mul(first, cos), graph.Mul(second, sin)),
		graph.Add(graph.Mul(second, cos), graph.Mul(first, sin)),
	}, -1)
}
