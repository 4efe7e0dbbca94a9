package nn

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/model"
)

// t5 writes the forward passes of an encoder with a decoder, as Hugging Face's
// T5ForConditionalGeneration computes them: RMSNorm before each sublayer, attention
// without 1/sqrt d, a learned bias by relative distance that the blocks of a stack
// share. Tensors that are not yet parameters of the graph are added as frozen ones.
type t5 struct {
	elementary
	cfg    model.Config
	scale  float64 // of the low-rank products
	params *params

	recompute Recompute
}

// source is what an encoder reads: tokens int32 [B,S]; boxes int32 [B,S,4] (left, top,
// right, bottom) and the page's patches float32 [B,P,values] where the base has them.
type source struct{ tokens, boxes, patches *graph.Node }

// memory is what a decoder attends to: states [B*S, hidden] and bias [B,S], which
// masks padding. S counts the page's states beside the tokens.
type memory struct{ states, bias *graph.Node }

// dense is a linear map without a bias, and the low-rank update of it that the graph
// has.
func (e t5) dense(x *graph.Node, name string, out int) *graph.Node {
	in := x.Shape().Dimensions[1]
	return e.params.adapt(linear(x, e.params.frozen(name+".weight", out, in), nil), x, name, e.scale)
}

// norm is RMSNorm (Zhang and Sennrich 2019): no mean is taken off, no bias added.
func (e t5) norm(x *graph.Node, name string) *graph.Node {
	n, h := x.Shape().Dimensions[0], x.Shape().Dimensions[1]
	square := graph.DivScalar(graph.ReduceSum(graph.Mul(x, x), -1), h)
	inv := graph.Div(graph.OnesLike(square), graph.Sqrt(graph.AddScalar(square, math.Max(e.cfg.LayerNormEps, 1e-12))))
	return graph.Mul(graph.Mul(x, spread(inv, x)), rows(e.params.frozen(name, h), n))
}

// words are the embeddings of tokens int32 [B,S]: [B*S, hidden].
func (e t5) words(tokens *graph.Node) *graph.Node {
	shared := e.params.frozen(model.T5Shared, e.cfg.VocabSize, e.cfg.HiddenSize)
	return graph.Gather(shared, graph.Reshape(tokens, tokens.Shape().Size(), 1))
}

// encode is the encoder.
func (e t5) encode(in source) memory {
	b, s := in.tokens.Shape().Dimensions[0], in.tokens.Shape().Dimensions[1]
	h := e.cfg.HiddenSize
	x := e.words(in.tokens)
	if e.cfg.T5.Boxes > 0 {
		x = graph.Add(x, e.places(graph.Reshape(in.boxes, b*s, 4)))
	}
	pad := graph.Equal(in.tokens, graph.BroadcastToDims(graph.Const(x.Graph(), int32(e.cfg.PadTokenID)), b, s))
	bias := graph.MulScalar(graph.ConvertDType(pad, dtypes.Float32), maskedScore)
	if page := e.cfg.T5.Patched; page.On() {
		x, bias = e.readPatches(x, bias, in.boxes, in.patches)
		s += page.Patches()
	}
	if page := e.cfg.T5.Visual; page.On() {
		p := e.cfg.T5.PageStates()
		v := encoder{cfg: page.Config(), params: e.params, elementary: e.elementary}.pageStates(in.patches)
		v = e.affine(v, model.T5PageMatcher, h)
		x = graph.Concatenate([]*graph.Node{graph.Reshape(x, b, s, h), graph.Reshape(v, b, p, h)}, 1)
		bias = graph.Concatenate([]*graph.Node{bias, graph.BroadcastToDims(graph.Const(x.Graph(), float32(0)), b, p)}, 1)
		s += p
		x = graph.Reshape(x, b*s, h)
	}
	near := e.distances(model.T5EncoderBias, s, true)
	mask := graph.Add(graph.BroadcastToDims(graph.Reshape(near, 1, e.heads(), s, s), b, e.heads(), s, s),
		graph.BroadcastToDims(graph.Reshape(bias, b, 1, 1, s), b, e.heads(), s, s))
	for l := range e.cfg.NumHiddenLayers {
		block := e.cfg.T5Block(false, l)
		y := e.norm(x, block.SelfNorm)
		q, k, v := e.projected(y, block.Self, "q"), e.projected(y, block.Self, "k"), e.projected(y, block.Self, "v")
		x = graph.Add(x, e.attend(q, k, v, mask, block.Self))
		x = e.feedForward(x, block)
	}
	return memory{e.norm(x, model.T5EncoderNorm), bias}
}

// places are the embeddings of boxes int32 [n,4]: [n, hidden].
func (e t5) places(boxes *graph.Node) *graph.Node {
	n, h := boxes.Shape().Dimensions[0], e.cfg.HiddenSize
	if side := e.cfg.T5.Boxes - 1; e.cfg.T5.LinearBoxes {
		return e.affine(graph.DivScalar(graph.ConvertDType(boxes, dtypes.Float32), side), model.T5BoxMatcher, h)
	}
	var sum *graph.Node
	for i, table := range []string{model.T5BoxX, model.T5BoxY, model.T5BoxX, model.T5BoxY} {
		at := graph.Slice(boxes, graph.AxisRange(), graph.AxisRange(i, i+1))
		x := graph.Gather(e.params.frozen(table, e.cfg.T5.Boxes, h), graph.Reshape(at, n, 1))
		if sum == nil {
			sum = x
		} else {
			sum = graph.Add(sum, x)
		}
	}
	name := model.T5BoxNorm
	y := layerNorm(sum, e.params.frozen(name+".weight", h), e.params.frozen(name+".bias", h), e.cfg.LayerNormEps)
	return e.affine(y, model.T5BoxMatcher, h)
}

func (e t5) affine(x *graph.Node, name string, out int) *graph.Node {
	return linear(x, e.params.frozen(name+".weight", out, x.Shape().Dimensions[1]), e.params.frozen(name+".bias", out))
}

func (e t5) heads() int { return e.cfg.NumAttentionHeads }

// projected is a map of x to the queries, keys or values of an attention.
func (e t5) projected(x *graph.Node, module, part string) *graph.Node {
	return e.dense(x, module+"."+part, e.cfg.InnerSize())
}

// attend is multi-head softmax(q k^T + mask) v through the module's last map: q [B*T,
// inner], k and v [B*S, inner], mask [B,heads,T,S] give [B*T, hidden].
func (e t5) attend(q, k, v, mask *graph.Node, module string) *graph.Node {
	of := func(in []*graph.Node) *graph.Node { return e.attendTo(in[0], in[1], in[2], mask) }
	y := of
	if s := mask.Shape().Dimensions; q.Shape().Equal(k.Shape()) && e.recompute.attention(s[0], e.heads(), s[2], e.cfg.NumHiddenLayers) {
		y = func(in []*graph.Node) *graph.Node { return again(of, in...) }
	}
	return e.dense(y([]*graph.Node{q, k, v}), module+".o", e.cfg.HiddenSize)
}

// attendTo is softmax(q k^T + mask) v of all heads: [B*T, inner].
func (e t5) attendTo(q, k, v, mask *graph.Node) *graph.Node {
	dims := mask.Shape().Dimensions
	b, heads, t, s, d := dims[0], dims[1], dims[2], dims[3], e.cfg.T5.KeySize
	split := func(x *graph.Node, n int) *graph.Node { // [B*n, inner] -> [B*heads, n, d]
		x = graph.TransposeAllAxes(graph.Reshape(x, b, n, heads, d), 0, 2, 1, 3)
		return graph.Reshape(x, b*heads, n, d)
	}
	scores := graph.DotGeneral(split(q, t), []int{2}, []int{0}, split(k, s), []int{2}, []int{0})
	y := e.attended(graph.Add(scores, graph.Reshape(mask, b*heads, t, s)), split(v, s))
	y = graph.TransposeAllAxes(graph.Reshape(y, b, heads, t, d), 0, 2, 1, 3)
	return graph.Reshape(y, b*t, heads*d)
}

func (e t5) feedForward(x *graph.Node, block model.T5Block) *graph.Node {
	y, ff := e.norm(x, block.FeedForwardNorm), e.cfg.IntermediateSize
	name := block.FeedForward
	if e.cfg.T5.Gated {
		y = graph.Mul(e.activation(e.dense(y, name+".wi_0", ff), e.cfg.HiddenAct), e.dense(y, name+".wi_1", ff))
	} else {
		y = e.activation(e.dense(y, name+".wi", ff), e.cfg.HiddenAct)
	}
	return graph.Add(x, e.dense(y, name+".wo", e.cfg.HiddenSize))
}

// distances is the bias [heads,S,S] of the attention from place i to place j. There is
// no constant of S x S in it: the 2S-1 distances pick their rows of the table, and
// j - i + S - 1 picks among those.
func (e t5) distances(table string, s int, bidirectional bool) *graph.Node {
	rows := e.byDistance(table, 2*s-1, func(i int) int { return e.bucket(i-(s-1), bidirectional) })
	g := rows.Graph()
	place := shapes.Make(dtypes.Int32, s, s)
	at := graph.AddScalar(graph.Sub(graph.Iota(g, place, 1), graph.Iota(g, place, 0)), s-1)
	picked := graph.Gather(rows, graph.Reshape(at, s*s, 1))
	return graph.TransposeAllAxes(graph.Reshape(picked, s, s, e.heads()), 2, 0, 1)
}

// byDistance is the bias [n, heads] of n distances, each with its row of the table.
func (e t5) byDistance(name string, n int, row func(i int) int) *graph.Node {
	table := e.params.frozen(name, e.cfg.T5.Buckets, e.heads())
	picked := make([]int32, n)
	for i := range picked {
		picked[i] = int32(row(i))
	}
	return graph.Gather(table, graph.Reshape(graph.Const(table.Graph(), picked), n, 1))
}

// bucket is the row of the table for a distance (T5Attention._relative_position_bucket):
// half of a side's rows for a distance each, the rest by its logarithm. In float32, as
// there: the rounding decides at the borders.
func (e t5) bucket(distance int, bidirectional bool) int {
	n, row := e.cfg.T5.Buckets, 0
	if bidirectional {
		n /= 2
		if distance > 0 {
			row = n
		}
		distance = max(distance, -distance)
	} else {
		distance = max(0, -distance)
	}
	exact := n / 2
	if distance < exact {
		return row + distance
	}
	part := float32(math.Log(float64(float32(distance)/float32(exact)))) /
		float32(math.Log(float64(e.cfg.T5.MaxDistance)/float64(exact))) * float32(n-exact)
	return row + min(n-1, exact+int(part))
}

// decode is the decoder over whole answers: tokens int32 [B,T], each place seeing
// those before it, give states [B*T, hidden].
func (e t5) decode(tokens *graph.Node, m memory) *graph.Node {
	b, t := tokens.Shape().Dimensions[0], tokens.Shape().Dimensions[1]
	s, heads := m.bias.Shape().Dimensions[1], e.heads()
	x := e.words(tokens)
	g := x.Graph()
	place := shapes.Make(dtypes.Int32, t, t)
	later := graph.ConvertDType(graph.GreaterThan(graph.Iota(g, place, 1), graph.Iota(g, place, 0)), dtypes.Float32)
	near := e.distances(model.T5DecoderBias, t, false)
	near = graph.Add(near, graph.BroadcastToDims(graph.Reshape(graph.MulScalar(later, maskedScore), 1, t, t), heads, t, t))
	mask := graph.BroadcastToDims(graph.Reshape(near, 1, heads, t, t), b, heads, t, t)
	keys := graph.BroadcastToDims(graph.Reshape(m.bias, b, 1, 1, s), b, heads, t, s)
	for l := range e.cfg.T5.DecoderLayers {
		block := e.cfg.T5Block(true, l)
		y := e.norm(x, block.SelfNorm)
		q, k, v := e.projected(y, block.Self, "q"), e.projected(y, block.Self, "k"), e.projected(y, block.Self, "v")
		x = graph.Add(x, e.attend(q, k, v, mask, block.Self))
		q = e.projected(e.norm(x, block.CrossNorm), block.Cross, "q")
		k, v = e.projected(m.states, block.Cross, "k"), e.projected(m.states, block.Cross, "v")
		x = graph.Add(x, e.attend(q, k, v, keys, block.Cross))
		x = e.feedForward(x, block)
	}
	return e.scaled(e.norm(x, model.T5DecoderNorm))
}

// scaled is what the head reads of the decoder's last states.
func (e t5) scaled(x *graph.Node) *graph.Node {
	if !e.cfg.T5.Scaled {
		return x
	}
	return graph.MulScalar(x, 1/math.Sqrt(float64(e.cfg.HiddenSize)))
}

// head is the map [V, hidden] from states to the vocabulary.
func (e t5) head() *graph.Node {
	name := model.T5Shared
	if e.cfg.T5.OwnHead {
		name = model.T5Head
	}
	return e.params.frozen(name, e.cfg.VocabSize, e.cfg.HiddenSize)
}

// loss is the weighted mean of -log softmax at labels int32 [B,T], weights [B,T]; and
// what has its gradient.
func (e t5) loss(in source, decoderTokens, labels, weights *graph.Node) (loss, surrogate *graph.Node) {
	x := e.decode(decoderTokens, e.encode(in))
	n := labels.Shape().Size()
	return e.vocabularyLoss(x, e.head(), nil, graph.Reshape(labels, n), graph.Reshape(weights, n))
}
