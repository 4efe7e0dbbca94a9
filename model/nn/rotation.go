package nn

import (
	"math"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/model"
)

// rotation turns queries and keys by their positions (Su et al. 2021): cos and sin [S,
// d/2] of each position's angle for each pair of columns.
type rotation struct{ cos, sin *graph.Node }

// turnTables are the cosines and sines of an angle's two parts, each [rows, d/2]: of
// position p row p/step of far and row p%step of near.
type turnTables struct {
	cosFar, sinFar, cosNear, sinNear *graph.Node
	step                             int
}

// turnStep is a table's step for so many positions.
func turnStep(positions int) int { return int(math.Ceil(math.Sqrt(float64(positions)))) }

// turnTables are for s positions. An angle is the sum of that of a multiple of a step and
// that of a rest, so that the graph has constants of some 2 sqrt(S) rows in place of S:
// what is compiled stays small however long a text is.
func (d decoder) turnTables(g *graph.Graph, r model.Rope, s int) turnTables {
	pairs := d.cfg.Decoder.HeadSize / 2
	step, turns := turnStep(s), r.Frequencies(pairs)
	table := func(n, by int, f func(float64) float64) *graph.Node { // [n, pairs]
		out := make([]float32, 0, n*pairs)
		for i := range n {
			for _, w := range turns {
				out = append(out, float32(f(float64(i*by)*w)))
			}
		}
		return graph.Reshape(graph.Const(g, out), n, pairs)
	}
	far := (s + step - 1) / step
	return turnTables{table(far, step, math.Cos), table(far, step, math.Sin), table(step, 1, math.Cos), table(step, 1, math.Sin), step}
}

// rotation is that of positions 0..s-1.
func (d decoder) rotation(g *graph.Graph, r model.Rope, s int) rotation {
	t := d.turnTables(g, r, s)
	far, step, pairs := t.cosFar.Shape().Dimensions[0], t.step, d.cfg.Decoder.HeadSize/2
	at := func(x *graph.Node, many bool) *graph.Node { // [far, step, pairs]
		if many {
			return graph.BroadcastToDims(graph.Reshape(x, far, 1, pairs), far, step, pairs)
		}
		return graph.BroadcastToDims(graph.Reshape(x, 1, step, pairs), far, step, pairs)
	}
	t.cosFar, t.sinFar, t.cosNear, t.sinNear = at(t.cosFar, true), at(t.sinFar, true), at(t.cosNear, false), at(t.sinNear, false)
	cut := func(x *graph.Node) *graph.Node {
		return graph.Slice(graph.Reshape(x, far*step, pairs), graph.AxisRange(0, s), graph.AxisRange())
	}
	sum := t.sum()
	return rotation{cos: cut(sum.cos), sin: cut(sum.sin)}
}

// sum is the rotation by the two parts' sum, row by row.
func (t turnTables) sum() rotation {
	return rotation{
		cos: graph.Sub(graph.Mul(t.cosFar, t.cosNear), graph.Mul(t.sinFar, t.sinNear)),
		sin: graph.Add(graph.Mul(t.sinFar, t.cosNear), graph.Mul(t.cosFar, t.sinNear)),
	}
}

// at is the rotation of places whose parts are given: int32 [n,1] each.
func (t turnTables) at(far, near *graph.Node) rotation {
	return turnTables{graph.Gather(t.cosFar, far), graph.Gather(t.sinFar, far), graph.Gather(t.cosNear, near), graph.Gather(t.sinNear, near), t.step}.sum()
}

// apply turns x [B*S, heads*d] and gives it as [B, S, heads, d]. A head's pair i is its
// columns i and i + d/2.
func (r rotation) apply(x *graph.Node, b, heads int) *graph.Node {
	if r.cos == nil { // positions turn nothing
		n, columns := x.Shape().Dimensions[0], x.Shape().Dimensions[1]
		return graph.Reshape(x, b, n/b, heads, columns/heads)
	}
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
