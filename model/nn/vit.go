package nn

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/model"
)

// imageLogits is the whole classifier of images: [B, classes] of their patches
// [B, P, values], each patch's values by channel and then row by row.
func (e encoder) imageLogits(patches *graph.Node, classes int) *graph.Node {
	b, n, h := patches.Shape().Dimensions[0], patches.Shape().Dimensions[1], e.cfg.HiddenSize
	x := graph.Reshape(e.imageStates(patches, ""), b, 1+n, h)
	x = graph.Slice(x, graph.AxisRange(), graph.AxisRange(0, 1), graph.AxisRange())
	return e.head(e.norm(graph.Reshape(x, b, h), model.ViTNorm), classes)
}

// imageStates are the last layer's states of patches [B, P, values], behind that of the image as a whole: [B*(1+P),
// hidden], which nothing has normalised. Tensors have their names behind a prefix.
func (e encoder) imageStates(patches *graph.Node, prefix string) *graph.Node {
	dims := patches.Shape().Dimensions
	b, n, values, h := dims[0], dims[1], dims[2], e.cfg.HiddenSize
	v := e.cfg.ViT
	// A convolution whose step is its own width is a product of patches.
	kernel := e.params.frozen(prefix+model.ViTPatch+".weight", h, v.Channels, v.PatchSize.Height, v.PatchSize.Width)
	x := linear(graph.Reshape(patches, b*n, values), graph.Reshape(kernel, h, values), e.params.frozen(prefix+model.ViTPatch+".bias", h))
	class := graph.BroadcastToDims(e.params.frozen(prefix+model.ViTClass, 1, 1, h), b, 1, h)
	x = graph.Concatenate([]*graph.Node{class, graph.Reshape(x, b, n, h)}, 1)
	if !v.BEiT.NoPositions {
		x = graph.Add(x, graph.BroadcastToDims(e.params.frozen(prefix+model.ViTPositions, 1, 1+n, h), b, 1+n, h))
	}
	x = graph.Reshape(x, b*(1+n), h)
	var near *graph.Node
	if v.BEiT.Relative == model.RelativeShared {
		near = e.patchDistances(x.Graph(), prefix+model.BEiTShared)
	}
	for l := range e.cfg.NumHiddenLayers {
		layer := model.ViTLayer(prefix, l)
		if v.BEiT.Relative == model.RelativeEach {
			near = e.patchDistances(x.Graph(), layer.Distances())
		}
		x = e.preNormLayer(x, near, b, layer)
	}
	return x
}

// pageStates are what a frozen BEiT sees of a page: its last states [B*(1+P), hidden].
func (e encoder) pageStates(patches *graph.Node) *graph.Node {
	x := e.imageStates(patches, model.T5Visual)
	if !e.cfg.ViT.BEiT.NoNorm {
		x = e.norm(x, model.T5Visual+model.ViTNorm)
	}
	return graph.StopGradient(x)
}

// patchDistances is the bias [1, heads, S, S] that attention from state i to state j has by a table: of patches by how many
// rows and columns j is before i, and three rows of the table, from the first state, to it and to itself.
func (e encoder) patchDistances(g *graph.Graph, table string) *graph.Node {
	v, heads := e.cfg.ViT, e.cfg.NumAttentionHeads
	height, width := v.Grid()
	s, n, wide := 1+height*width, v.Distances(), 2*width-1
	at := make([]int32, s) // of patch i: row i - row j and column i - column j make at[i] - at[j]
	for i := range height * width {
		at[1+i] = int32(i/width*wide + i%width)
	}
	const32 := func(x int) *graph.Node { return graph.BroadcastToDims(graph.Const(g, int32(x)), s, s) }
	all := graph.Const(g, at)
	index := graph.Sub(graph.BroadcastToDims(graph.Reshape(all, s, 1), s, s), graph.BroadcastToDims(graph.Reshape(all, 1, s), s, s))
	index = graph.Add(index, const32((height-1)*wide+width-1))
	square := shapes.Make(dtypes.Int32, s, s)
	from, to := graph.Equal(graph.Iota(g, square, 0), const32(0)), graph.Equal(graph.Iota(g, square, 1), const32(0))
	index = graph.Where(from, const32(n-3), index)
	index = graph.Where(to, graph.Where(from, const32(n-1), const32(n-2)), index)
	rows := graph.Gather(e.params.frozen(table, n, heads), graph.Reshape(index, s*s, 1))
	return graph.Reshape(graph.TransposeAllAxes(graph.Reshape(rows, s, s, heads), 2, 0, 1), 1, heads, s, s)
}

// preNormLayer normalises what attention and feed-forward read, and adds to x as it
// was; x [b*S, h], bias as in attend.
func (e encoder) preNormLayer(x, bias *graph.Node, b int, l model.Layer) *graph.Node {
	h := e.cfg.HiddenSize
	y := e.norm(x, l.AttentionNorm)
	project := func(name string) *graph.Node {
		if v := e.cfg.ViT; !v.NoBias && !(v.BEiT.NoKeyBias && name == l.Key) {
			return e.dense(y, name, h)
		}
		return e.low(linear(y, e.params.frozen(name+".weight", h, h), nil), y, name)
	}
	a := e.attend(project(l.Query), project(l.Key), project(l.Value), bias, b)
	scaled := func(y *graph.Node, n int) *graph.Node {
		if !e.cfg.ViT.BEiT.Scaled {
			return y
		}
		return graph.Mul(y, rows(e.params.frozen(l.Scale(n), h), y.Shape().Dimensions[0]))
	}
	x = graph.Add(x, scaled(e.sublayer(e.dense(a, l.AttentionOutput, h), l.AttentionOutput), 1))
	f := e.activation(e.dense(e.norm(x, l.OutputNorm), l.Intermediate, e.cfg.IntermediateSize), e.cfg.HiddenAct)
	return graph.Add(x, scaled(e.sublayer(e.dense(f, l.Output, h), l.Output), 2))
}
