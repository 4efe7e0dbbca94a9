package nn

import (
	"cmp"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
)

// maskedScore is added to attention scores of padding; exp of it is 0.
const maskedScore = -1e4

// encoder writes the forward pass. Tensors that are not yet parameters of the
// graph are added as frozen ones under their model names.
type encoder struct {
	elementary
	cfg    model.Config
	task   model.TaskKind
	scale  float64 // of the low-rank products
	params *params
	kept   *kept // of a step whose host keeps what convolutions make of recordings; nil: none does

	recompute Recompute
}

// hidden returns the last layer's states [B*S, hidden] and keep [B,S]: 1 for a
// token, 0 for padding. tokens is int32 [B,S].
func (e encoder) hidden(tokens *graph.Node) (x, keep *graph.Node) {
	g := tokens.Graph()
	b, s := tokens.Shape().Dimensions[0], tokens.Shape().Dimensions[1]
	h, n := e.cfg.HiddenSize, b*s

	x = graph.Gather(e.words(), graph.Reshape(tokens, n, 1))
	positions := e.params.frozen("embeddings.position_embeddings.weight", e.cfg.MaxPositions, h)
	if first := e.cfg.FirstPosition(); s < e.cfg.MaxPositions {
		positions = graph.Slice(positions, graph.AxisRange(first, first+s), graph.AxisRange())
	}
	kinds := e.params.byName[task.Types]
	if t := e.cfg.TypeVocabSize; t > 0 {
		types := e.params.frozen("embeddings.token_type_embeddings.weight", t, h)
		switch {
		case kinds != nil:
			x = graph.Add(x, graph.Gather(types, graph.Reshape(kinds, n, 1)))
		case t > 1: // every token of a single text is of type 0
			types = graph.Slice(types, graph.AxisRange(0, 1), graph.AxisRange())
		}
		if kinds == nil {
			positions = graph.Add(positions, graph.BroadcastToDims(types, s, h))
		}
	}
	if boxes := e.params.byName[task.Boxes]; boxes != nil {
		x = graph.Add(x, e.places(boxes))
	}
	positions = graph.BroadcastToDims(graph.Reshape(positions, 1, s, h), b, s, h)
	x = graph.Add(x, graph.Reshape(positions, n, h))
	x = e.norm(x, e.cfg.EmbeddingNorm())

	padding := graph.BroadcastToDims(graph.Const(g, int32(e.cfg.PadTokenID)), b, s)
	pad := graph.ConvertDType(graph.Equal(tokens, padding), dtypes.Float32)
	keep = graph.Sub(graph.OnesLike(pad), pad)
	bias := inMemory(graph.MulScalar(pad, maskedScore))
	// What is multiplied is zeros where padding is, and products leave rows of zeros out. Nothing else reads these rows:
	// attention masks them, pooling leaves them out, and their gradients are zeros.
	blank := func(x *graph.Node) *graph.Node { return graph.Mul(x, spread(graph.Reshape(keep, n), x)) }
	x = blank(x)
	for l := range e.cfg.NumHiddenLayers {
		x = e.layer(x, bias, e.cfg.Layer(l), blank)
	}
	return x, keep
}

// words are the token embeddings [vocabulary, hidden].
func (e encoder) words() *graph.Node {
	return e.params.frozen(WordEmbeddings, e.cfg.VocabSize, e.cfg.HiddenSize)
}

func (e encoder) norm(x *graph.Node, name string) *graph.Node {
	h := e.cfg.HiddenSize
	return layerNorm(x, e.params.frozen(name+".weight", h), e.params.frozen(name+".bias", h), e.cfg.LayerNormEps)
}

// dense is a linear map with its bias, and the low-rank update of it that the graph
// has.
func (e encoder) dense(x *graph.Node, name string, out int) *graph.Node {
	return e.low(linear(x, e.params.frozen(name+".weight", out, x.Shape().Dimensions[1]), e.params.frozen(name+".bias", out)), x, name)
}

// low adds to y, the linear map of x, the low-rank update of it that the graph has.
func (e encoder) low(y, x *graph.Node, name string) *graph.Node {
	return e.params.adapt(y, x, name, e.scale)
}

// layer is one post-norm encoder layer; bias [B,S] masks padding in attention, blank makes its rows zeros.
func (e encoder) layer(x, bias *graph.Node, l model.Layer, blank func(x *graph.Node) *graph.Node) *graph.Node {
	h := e.cfg.HiddenSize
	q := e.dense(x, l.Query, h)
	k := e.dense(x, l.Key, h)
	v := e.dense(x, l.Value, h)
	a := blank(e.attention(q, k, v, bias))
	x = blank(e.norm(graph.Add(x, e.sublayer(e.dense(a, l.AttentionOutput, h), l.AttentionOutput)), l.AttentionNorm))
	f := e.dense(x, l.Intermediate, e.cfg.IntermediateSize)
	active := func(in []*graph.Node) *graph.Node { return blank(e.activation(in[0], e.cfg.HiddenAct)) }
	if d := bias.Shape().Dimensions; e.recompute.attention(d[0], e.cfg.NumAttentionHeads, d[1], e.cfg.NumHiddenLayers) {
		f = again(active, f)
	} else {
		f = active([]*graph.Node{f})
	}
	return blank(e.norm(graph.Add(x, e.sublayer(e.dense(f, l.Output, h), l.Output)), l.OutputNorm))
}

// attention is multi-head softmax(q k^T / sqrt d + bias) v; q, k, v [B*S, h].
func (e encoder) attention(q, k, v, bias *graph.Node) *graph.Node {
	return e.attend(q, k, v, bias, bias.Shape().Dimensions[0])
}

// attend is attention in b sequences; bias is that of the states seen [B,S] or of every two [1,heads,S,S], and without
// one every state sees all.
func (e encoder) attend(q, k, v, bias *graph.Node, b int) *graph.Node {
	of := func(in []*graph.Node) *graph.Node { return e.attendTo(in[0], in[1], in[2], bias, b) }
	if e.recompute.attention(b, e.cfg.NumAttentionHeads, q.Shape().Dimensions[0]/b, e.cfg.NumHiddenLayers) {
		return again(of, q, k, v)
	}
	return of([]*graph.Node{q, k, v})
}

func (e encoder) attendTo(q, k, v, bias *graph.Node, b int) *graph.Node {
	s := q.Shape().Dimensions[0] / b
	heads := e.cfg.NumAttentionHeads
	d := e.cfg.HiddenSize / heads
	split := func(x *graph.Node) *graph.Node { // [B*S, h] -> [B*heads, S, d]
		x = graph.TransposeAllAxes(graph.Reshape(x, b, s, heads, d), 0, 2, 1, 3)
		return graph.Reshape(x, b*heads, s, d)
	}
	scores := graph.DotGeneral(split(graph.MulScalar(q, 1/math.Sqrt(float64(d)))), []int{2}, []int{0},
		split(k), []int{2}, []int{0})
	if bias != nil {
		if bias.Rank() == 2 {
			bias = graph.Reshape(bias, b, 1, 1, s)
		}
		mask := graph.BroadcastToDims(bias, b, heads, s, s)
		scores = graph.Add(scores, graph.Reshape(mask, b*heads, s, s))
	}
	y := e.attended(scores, split(v))
	y = graph.TransposeAllAxes(graph.Reshape(y, b, heads, s, d), 0, 2, 1, 3)
	return graph.Reshape(y, b*s, heads*d)
}

// pooled is the mean of the token states, padding left out: [B, h].
func (e encoder) pooled(x, keep *graph.Node) *graph.Node {
	b, s := keep.Shape().Dimensions[0], keep.Shape().Dimensions[1]
	// 1e-9 vanishes beside a count and keeps 0/0 away from an empty row.
	share := graph.Div(keep, graph.AddScalar(lastSum(keep), 1e-9))
	x = graph.Reshape(x, b, s, e.cfg.HiddenSize)
	y := graph.DotGeneral(graph.Reshape(share, b, 1, s), []int{2}, []int{0}, x, []int{1}, []int{0})
	return graph.Reshape(y, b, e.cfg.HiddenSize)
}

// state is what of the last layer the head reads: [B, h].
func (e encoder) state(x, keep *graph.Node) *graph.Node {
	if p := e.cfg.Pooling; p == model.PoolMean || p == model.PoolMeanAffine {
		return e.pooled(x, keep)
	}
	b, s, h := keep.Shape().Dimensions[0], keep.Shape().Dimensions[1], e.cfg.HiddenSize
	x = graph.Slice(graph.Reshape(x, b, s, h), graph.AxisRange(), graph.AxisRange(0, 1), graph.AxisRange())
	return graph.Reshape(x, b, h)
}

// logits is the whole classifier: [B, classes].
func (e encoder) logits(tokens *graph.Node, classes int) *graph.Node {
	return e.head(e.state(e.hidden(tokens)), classes)
}

// head maps what the task reads of the last layer [n, h] to its outputs [n, outputs].
func (e encoder) head(x *graph.Node, classes int) *graph.Node {
	head := e.cfg.HeadFor(e.task)
	for i, d := range head {
		out := cmp.Or(d.Out, e.cfg.HiddenSize)
		if i == len(head)-1 {
			out = classes
		}
		x = e.dense(x, d.Name, out)
		if d.Activation != "" {
			x = e.activation(x, d.Activation)
		}
	}
	return x
}
