package nn

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/model"
)

// readPatches joins the tokens' states x [B*S,h], which are in boxes int32 [B,S,4], and a
// page's patches float32 [B,P,values], as model.Patched says: states [B*(S+P),h] and the bias
// [B,S+P] that masks what nothing attends to.
func (e t5) readPatches(x, bias, boxes, patches *graph.Node) (states, mask *graph.Node) {
	page, h := e.cfg.T5.Patched, e.cfg.HiddenSize
	b, s, p, values := boxes.Shape().Dimensions[0], boxes.Shape().Dimensions[1], page.Patches(), page.PatchValues()
	kernel := e.params.frozen(model.T5PatchMap+".weight", h, page.Channels, page.PatchSize.Height, page.PatchSize.Width)
	seen := linear(graph.Reshape(patches, b*p, values), graph.Reshape(kernel, h, values), e.params.frozen(model.T5PatchMap+".bias", h))

	inside := e.standsIn(boxes)
	taken := graph.ReduceMax(inside, 1) // [B,P]
	if page.Overlap {
		one := graph.ReduceSum(inside, -1)
		one = graph.Max(one, graph.OnesLike(one))
		inside = graph.Div(inside, graph.BroadcastToDims(graph.Reshape(one, b, s, 1), b, s, p))
	}
	looks := graph.DotGeneral(inside, []int{2}, []int{0}, graph.Reshape(seen, b, p, h), []int{1}, []int{0})
	x = graph.Add(x, graph.Reshape(looks, b*s, h))
	if !page.Unplaced {
		at := e.places(graph.Reshape(graph.Const(x.Graph(), page.Places(e.cfg.T5.Boxes)), p, 4))
		seen = graph.Add(seen, graph.Reshape(graph.BroadcastToDims(graph.Reshape(at, 1, p, h), b, p, h), b*p, h))
	}
	parts := []*graph.Node{graph.Reshape(x, b, s, h), graph.Reshape(seen, b, p, h)}
	masks := []*graph.Node{bias, graph.MulScalar(taken, maskedScore)}
	if page.First {
		parts[0], parts[1], masks[0], masks[1] = parts[1], parts[0], masks[1], masks[0]
	}
	return graph.Reshape(graph.Concatenate(parts, 1), b*(s+p), h), graph.Concatenate(masks, 1)
}

// standsIn is 1 where a box is in a patch, [B,S,P].
func (e t5) standsIn(boxes *graph.Node) *graph.Node {
	page, side := e.cfg.T5.Patched, e.cfg.T5.Boxes-1
	b, s, n := boxes.Shape().Dimensions[0], boxes.Shape().Dimensions[1], boxes.Shape().Dimensions[0]*boxes.Shape().Dimensions[1]
	boxes = graph.Reshape(boxes, n, 4)
	edge := func(i int) *graph.Node { return graph.Slice(boxes, graph.AxisRange(), graph.AxisRange(i, i+1)) } // [n,1]
	left, top, right, bottom := edge(0), edge(1), edge(2), edge(3)
	rows, columns := page.Grid()
	across, down := e.within(left, right, columns), e.within(top, bottom, rows)
	inside := graph.Mul(
		graph.BroadcastToDims(graph.Reshape(down, n, rows, 1), n, rows, columns),
		graph.BroadcastToDims(graph.Reshape(across, n, 1, columns), n, rows, columns))
	// Neither what has no box nor what is on the whole page.
	sum := graph.Add(graph.Add(left, top), graph.Add(right, bottom))
	extent := graph.Add(graph.Sub(right, left), graph.Sub(bottom, top))
	placed := graph.Mul(above(sum, 0), above(graph.Neg(extent), -2*side))
	inside = graph.Mul(graph.Reshape(inside, n, rows*columns), graph.BroadcastToDims(placed, n, rows*columns))
	return graph.StopGradient(graph.Reshape(inside, b, s, rows*columns))
}

// within is 1 where what reaches from from to to, int32 [n,1], is in one of some equal
// cells of the page's side: [n,cells].
func (e t5) within(from, to *graph.Node, cells int) *graph.Node {
	side, n := e.cfg.T5.Boxes-1, from.Shape().Dimensions[0]
	over := func(x *graph.Node, limit func(cell int) int) *graph.Node {
		limits := make([]int32, cells)
		for i := range limits {
			limits[i] = int32(limit(i))
		}
		at := graph.BroadcastToDims(graph.MulScalar(x, cells), n, cells)
		return graph.ConvertDType(graph.GreaterThan(at, rowsOf(x.Graph(), limits, n)), dtypes.Float32)
	}
	if e.cfg.T5.Patched.Overlap {
		return graph.Mul(over(to, func(i int) int { return side * i }), over(graph.Neg(from), func(i int) int { return -side * (i + 1) }))
	}
	twice := graph.Add(from, to)
	begun := over(twice, func(i int) int { return 2*side*i - 1 })
	ended := over(twice, func(i int) int {
		if i == cells-1 {
			return math.MaxInt32 // the page's edge is in the last
		}
		return 2*side*(i+1) - 1
	})
	return graph.Sub(begun, ended)
}

// rowsOf repeats a vector for each of n rows.
func rowsOf(g *graph.Graph, v []int32, n int) *graph.Node {
	return graph.BroadcastToDims(graph.Reshape(graph.Const(g, v), 1, len(v)), n, len(v))
}

// above is 1 where x, int32, is greater than a limit.
func above(x *graph.Node, limit int) *graph.Node {
	return graph.ConvertDType(graph.GreaterThan(x, graph.BroadcastToDims(graph.Const(x.Graph(), int32(limit)), x.Shape().Dimensions...)), dtypes.Float32)
}
