package nn

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/model"
)

// imageLogits is the whole classifier of images: [B, classes] of their patches
// [B, P, values], each patch's values by channel and then row by row.
func (e encoder) imageLogits(patches *graph.Node, classes int) *graph.Node {
	dims := patches.Shape().Dimensions
	b, n, values, h := dims[0], dims[1], dims[2], e.cfg.HiddenSize
	v := e.cfg.ViT
	// A convolution whose step is its own width is a product of patches.
	kernel := e.params.frozen(model.ViTPatch+".weight", h, v.Channels, v.PatchSize.Height, v.PatchSize.Width)
	x := linear(graph.Reshape(patches, b*n, values), graph.Reshape(kernel, h, values), e.params.frozen(model.ViTPatch+".bias", h))
	class := graph.BroadcastToDims(e.params.frozen(model.ViTClass, 1, 1, h), b, 1, h)
	x = graph.Concatenate([]*graph.Node{class, graph.Reshape(x, b, n, h)}, 1)
	x = graph.Add(x, graph.BroadcastToDims(e.params.frozen(model.ViTPositions, 1, 1+n, h), b, 1+n, h))
	x = graph.Reshape(x, b*(1+n), h)
	for l := range e.cfg.NumHiddenLayers {
		x = e.preNormLayer(x, nil, b, e.cfg.Layer(l))
	}
	x = graph.Slice(graph.Reshape(x, b, 1+n, h), graph.AxisRange(), graph.AxisRange(0, 1), graph.AxisRange())
	return e.head(e.norm(graph.Reshape(x, b, h), model.ViTNorm), classes)
}

// preNormLayer normalises what attention and feed-forward read, and adds to x as it
// was; x [b*S, h], bias as in attend.
func (e encoder) preNormLayer(x, bias *graph.Node, b int, l model.Layer) *graph.Node {
	h := e.cfg.HiddenSize
	y := e.norm(x, l.AttentionNorm)
	project := func(name string) *graph.Node {
		if !e.cfg.ViT.NoBias {
			return e.dense(y, name, h)
		}
		return e.low(linear(y, e.params.frozen(name+".weight", h, h), nil), y, name)
	}
	a := e.attend(project(l.Query), project(l.Key), project(l.Value), bias, b)
	x = graph.Add(x, e.sublayer(e.dense(a, l.AttentionOutput, h), l.AttentionOutput))
	f := e.activation(e.dense(e.norm(x, l.OutputNorm), l.Intermediate, e.cfg.IntermediateSize), e.cfg.HiddenAct)
	return graph.Add(x, e.sublayer(e.dense(f, l.Output, h), l.Output))
}
