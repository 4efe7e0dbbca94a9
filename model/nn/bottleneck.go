package nn

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/model"
)

// sublayer is a module's output y [n, h] through the bottleneck behind it, where the
// graph has one: y + U gelu(D y + b) + c.
func (e encoder) sublayer(y *graph.Node, module string) *graph.Node {
	down, up := module+model.AdapterDown, module+model.AdapterUp
	bias, ok := e.params.byName[down+".bias"]
	if !ok {
		return y
	}
	narrow := e.activation(linear(y, e.params.factored(down), bias), "gelu_new")
	return graph.Add(y, linear(narrow, e.params.factored(up), e.params.byName[up+".bias"]))
}

// factored is a bottleneck's matrix [out, in]: as it is trained, or the sum over i of
// the Kronecker products of A_i [n, n] and s_i t_i^T [out/n, in/n].
func (p *params) factored(name string) *graph.Node {
	if w, ok := p.byName[name+".weight"]; ok {
		return w
	}
	a, s, t := p.byName[model.KroneckerA], p.byName[name+model.FactorLeft], p.byName[name+model.FactorRight]
	n, out, in := s.Shape().Dimensions[0], s.Shape().Dimensions[1], t.Shape().Dimensions[1]
	// s_i t_i^T for every i: [n, out, in].
	outer := graph.Mul(graph.BroadcastToDims(graph.Reshape(s, n, out, 1), n, out, in),
		graph.BroadcastToDims(graph.Reshape(t, n, 1, in), n, out, in))
	sum := graph.DotGeneral(graph.Reshape(a, n, n*n), []int{0}, nil, graph.Reshape(outer, n, out*in), []int{0}, nil)
	// [row of A, column of A, row, column] to [row of A, row, column of A, column].
	return graph.Reshape(graph.TransposeAllAxes(graph.Reshape(sum, n, n, out, in), 0, 2, 1, 3), n*out, n*in)
}
