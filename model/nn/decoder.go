package nn

import (
	"math"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
)

// decoder writes the forward pass of a model that sees nothing later, as Hugging Face's
// LlamaModel and those in its shape compute it. Tensors that are not yet parameters of the
// graph are added as frozen ones.
type decoder struct {
	elementary
	cfg    model.Config
	scale  float64 // of the low-rank products
	params *params

	recompute Recompute
}

func (e encoder) decoder() decoder {
	return decoder{cfg: e.cfg, scale: e.scale, params: e.params, elementary: e.elementary, recompute: e.recompute}
}

// nextStates are what the head reads of the places whose next token is told: [B*K,
// hidden], zeros where weights, which may be nil, are 0.
func (d decoder) nextStates(tokens, places, weights *graph.Node) *graph.Node {
	keep := d.read(tokens, places)
	x, stages := d.embedded(tokens, keep), d.layers(tokens, keep)
	for l := range d.cfg.NumHiddenLayers {
		x = throughout(stages(l), x)
	}
	return d.picked(d.last(x), places, weights)
}

// last is the norm behind the last layer.
func (d decoder) last(x *graph.Node) *graph.Node {
	_, _, name := d.cfg.DecoderTables()
	return d.norm(x, name)
}

// read is 1 for every token [B*S] up to the last that is told the next one of, else 0: what
// is behind is read by none of them, and products leave rows of zeros out.
func (d decoder) read(tokens, places *graph.Node) *graph.Node {
	b, s := tokens.Shape().Dimensions[0], tokens.Shape().Dimensions[1]
	last := graph.ReduceMax(graph.ConvertDType(places, dtypes.Float32), -1) // [B]
	place := graph.ConvertDType(graph.Iota(tokens.Graph(), shapes.Make(dtypes.Int32, b, s), 1), dtypes.Float32)
	return graph.Reshape(graph.ConvertDType(graph.GreaterOrEqual(spread(last, place), place), dtypes.Float32), b*s)
}

// picked are the rows of x [B*S, hidden] at places [B,K], zeros where weights are 0.
func (d decoder) picked(x, places, weights *graph.Node) *graph.Node {
	b, k := places.Shape().Dimensions[0], places.Shape().Dimensions[1]
	x = rowsAt(x, places)
	if weights != nil {
		counts := graph.GreaterThan(weights, graph.ZerosLike(weights))
		x = graph.Mul(x, spread(graph.Reshape(graph.ConvertDType(counts, dtypes.Float32), b*k), x))
	}
	return x
}

// rowsAt are the rows of x [B*S, hidden] at places int32 [B,K] of its B parts: [B*K, hidden].
func rowsAt(x, places *graph.Node) *graph.Node {
	b, k := places.Shape().Dimensions[0], places.Shape().Dimensions[1]
	row := graph.MulScalar(graph.Iota(x.Graph(), shapes.Make(dtypes.Int32, b, k), 0), x.Shape().Dimensions[0]/b)
	return graph.Gather(x, graph.Reshape(graph.Add(row, places), b*k, 1))
}

// embedded is what the first layer reads [B*S, hidden] of tokens int32 [B,S].
func (d decoder) embedded(tokens, keep *graph.Node) *graph.Node {
	x := d.looked(tokens)
	if d.cfg.Decoder.Learned {
		b, s := tokens.Shape().Dimensions[0], tokens.Shape().Dimensions[1]
		x = d.placed(x, graph.Reshape(graph.Iota(tokens.Graph(), shapes.Make(dtypes.Int32, b, s), 1), b*s, 1))
	}
	return graph.Mul(x, spread(keep, x))
}

// looked are the token embeddings of tokens [n, hidden].
func (d decoder) looked(tokens *graph.Node) *graph.Node {
	x := graph.Gather(d.words(), graph.Reshape(tokens, tokens.Shape().Size(), 1))
	if d.cfg.Decoder.ScaledWords {
		x = graph.MulScalar(x, float64(float32(math.Sqrt(float64(d.cfg.HiddenSize)))))
	}
	return x
}

// placed adds what is learned of places, int32 [n,1], to x [n, hidden].
func (d decoder) placed(x, places *graph.Node) *graph.Node {
	_, name, _ := d.cfg.DecoderTables()
	return graph.Add(x, graph.Gather(d.params.frozen(name, d.cfg.MaxPositions, d.cfg.HiddenSize), places))
}

// layers are the stages of layer l; rows where keep [B*S] is 0 are zeros within.
func (d decoder) layers(tokens, keep *graph.Node) func(l int) []stage {
	b, s := tokens.Shape().Dimensions[0], tokens.Shape().Dimensions[1]
	blank := func(x *graph.Node) *graph.Node { return graph.Mul(x, spread(keep, x)) }
	masks, turns := map[bool]*graph.Node{}, map[model.Rope]rotation{}
	return func(l int) []stage {
		windowed, rope := d.cfg.Decoder.Windowed(l) && d.cfg.Decoder.Window < s, d.cfg.Decoder.RopeOf(l)
		if masks[windowed] == nil {
			masks[windowed] = d.mask(tokens.Graph(), s, windowed)
		}
		if turns[rope].cos == nil && !d.cfg.Decoder.Learned {
			turns[rope] = d.rotation(tokens.Graph(), rope, s)
		}
		return d.stages(b, d.cfg.DecoderLayer(l), masks[windowed], turns[rope], blank, nil)
	}
}

// words are the token embeddings [vocabulary, hidden].
func (d decoder) words() *graph.Node {
	name, _, _ := d.cfg.DecoderTables()
	return d.params.frozen(name, d.cfg.VocabSize, d.cfg.HiddenSize)
}

// head is the map [vocabulary, hidden] from states to the vocabulary.
func (d decoder) head() *graph.Node {
	if d.cfg.Decoder.OwnHead {
		return d.params.frozen(model.DecoderHead, d.cfg.VocabSize, d.cfg.HiddenSize)
	}
	return d.words()
}

// headLoss is the loss of picked states [n, hidden] and what has its gradient.
func (d decoder) headLoss(picked, labels, weights *graph.Node) (loss, surrogate *graph.Node) {
	head := d.head()
	if d.frozenHead() && d.cfg.VocabSize > vocabularyBlock {
		return d.blockedLoss(picked, head, labels, weights, vocabularyBlock)
	}
	return d.vocabularyLoss(picked, head, nil, labels, weights)
}

// frozenHead reports whether the head is not trained.
func (d decoder) frozenHead() bool {
	name, _, _ := d.cfg.DecoderTables()
	if d.cfg.Decoder.OwnHead {
		name = model.DecoderHead
	}
	_, trained := d.params.byName[name+model.DeltaSuffix]
	return !trained
}

// mask is added to scores [S,S]: what comes later is out of sight, and what is before
// the window where there is one.
func (d decoder) mask(g *graph.Graph, s int, windowed bool) *graph.Node {
	shape := shapes.Make(dtypes.Int32, s, s)
	return inMemory(d.hide(graph.Iota(g, shape, 1), graph.Iota(g, shape, 0), windowed))
}

// hide is added to the scores of places seen by places by, int32 of one shape.
func (d decoder) hide(seen, by *graph.Node, windowed bool) *graph.Node {
	hidden := graph.ConvertDType(graph.GreaterThan(seen, by), dtypes.Float32)
	if windowed {
		far := graph.GreaterOrEqual(graph.Sub(by, seen), graph.AddScalar(graph.ZerosLike(by), d.cfg.Decoder.Window))
		hidden = graph.Add(hidden, graph.ConvertDType(far, dtypes.Float32))
	}
	return graph.MulScalar(hidden, maskedScore)
}

// stages are those of one layer, whose x is [B*S, hidden]. cache, which may be nil, gives the keys [B,N,groups,d] and
// values [B*N, groups*d] that queries see for those of x itself.
func (d decoder) stages(b int, l model.DecoderLayer, mask *graph.Node, turn rotation, blank func(*graph.Node) *graph.Node,
	cache func(k, v *graph.Node) (keys, values *graph.Node)) []stage {
	c := d.cfg
	return []stage{
		{[]string{l.BeforeAttention, l.Query, l.Key, l.Value}, func(x []*graph.Node) []*graph.Node {
			return slices.Concat(x, d.queries(blank(d.norm(x[0], l.BeforeAttention+".weight")), l))
		}},
		{[]string{l.QueryNorm, l.KeyNorm, l.AttentionOutput, l.BehindAttention}, func(in []*graph.Node) []*graph.Node {
			x, q, k, v := in[0], in[1], in[2], in[3]
			if c.Decoder.HeadNorms {
				q, k = d.headNorm(q, l.QueryNorm), d.headNorm(k, l.KeyNorm)
			}
			q, k = turn.apply(q, b, c.NumAttentionHeads), turn.apply(k, b, c.Decoder.KVHeads)
			if cache != nil {
				k, v = cache(k, v)
			}
			a := blank(d.attend(q, k, v, mask, b))
			return []*graph.Node{graph.Add(x, d.outer(d.dense(a, l.AttentionOutput, c.HiddenSize, c.Decoder.OutputBias), l.BehindAttention))}
		}},
		{[]string{l.BeforeForward, l.Gate, l.Up}, func(x []*graph.Node) []*graph.Node {
			return slices.Concat(x, d.middle(blank(d.norm(x[0], l.BeforeForward+".weight")), l))
		}},
		{[]string{l.Down, l.BehindForward}, func(in []*graph.Node) []*graph.Node {
			f := d.activation(in[1], c.HiddenAct)
			if len(in) > 2 {
				f = graph.Mul(f, in[2])
			}
			return []*graph.Node{graph.Add(in[0], d.outer(d.dense(blank(f), l.Down, c.HiddenSize, c.Decoder.ForwardBiases), l.BehindForward))}
		}},
	}
}

// queries are those of y, its keys and its values.
func (d decoder) queries(y *graph.Node, l model.DecoderLayer) []*graph.Node {
	c := d.cfg
	if !c.Decoder.Learned {
		return []*graph.Node{d.dense(y, l.Query, c.QuerySize(), c.Decoder.Biases), d.dense(y, l.Key, c.KeySize(), c.Decoder.Biases),
			d.dense(y, l.Value, c.KeySize(), c.Decoder.Biases)}
	}
	h := c.HiddenSize
	all := d.dense(y, l.Query, 3*h, true)
	part := func(i int) *graph.Node { return graph.Slice(all, graph.AxisRange(), graph.AxisRange(i*h, (i+1)*h)) }
	return []*graph.Node{part(0), part(1), part(2)}
}

// middle is what the feed-forward makes of y: what is activated, and what that is multiplied by where there is such.
func (d decoder) middle(y *graph.Node, l model.DecoderLayer) []*graph.Node {
	up := func(name string) *graph.Node {
		return d.dense(y, name, d.cfg.IntermediateSize, d.cfg.Decoder.ForwardBiases)
	}
	if d.cfg.Decoder.Learned {
		return []*graph.Node{up(l.Up)}
	}
	return []*graph.Node{up(l.Gate), up(l.Up)}
}

// outer is the norm behind a sublayer, where there is one.
func (d decoder) outer(x *graph.Node, name string) *graph.Node {
	if name == "" {
		return x
	}
	return d.norm(x, name+".weight")
}

// dense is a linear map and the low-rank update of it that the graph has.
func (d decoder) dense(x *graph.Node, name string, out int, biased bool) *graph.Node {
	var bias *graph.Node
	if biased {
		bias = d.params.frozen(name+".bias", out)
	}
	return d.params.adapt(linear(x, d.params.frozen(name+".weight", out, x.Shape().Dimensions[1]), bias), x, name, d.scale)
}

// norm is RMSNorm over the last axis of x [n,k], or LayerNorm.
func (d decoder) norm(x *graph.Node, tensor string) *graph.Node {
	n, k := x.Shape().Dimensions[0], x.Shape().Dimensions[1]
	if d.cfg.Decoder.Learned {
		return layerNorm(x, d.params.frozen(tensor, k), d.params.frozen(strings.TrimSuffix(tensor, "weight")+"bias", k), d.cfg.LayerNormEps)
	}
	square := graph.DivScalar(graph.ReduceSum(graph.Mul(x, x), -1), k)
	inv := graph.Div(graph.OnesLike(square), graph.Sqrt(graph.AddScalar(square, math.Max(d.cfg.LayerNormEps, 1e-12))))
	gain := d.params.frozen(tensor, k)
	if d.cfg.Decoder.GainsFromOne {
		gain = graph.AddScalar(gain, 1)
	}
	return graph.Mul(graph.Mul(x, spread(inv, x)), rows(gain, n))
}

// headNorm is the norm of each head by itself; x [n, heads*d].
func (d decoder) headNorm(x *graph.Node, name string) *graph.Node {
	n, size := x.Shape().Dimensions[0], x.Shape().Dimensions[1]
	return graph.Reshape(d.norm(graph.Reshape(x, n*size/d.cfg.Decoder.HeadSize, d.cfg.Decoder.HeadSize), name+".weight"), n, size)
}

// attend is softmax(q k^T / sqrt scale + mask) v: q [B,S,heads,d] and k [B,N,groups,d], v
// [B*N, groups*d], mask [S,N] give [B*S, heads*d]. The heads of a group are multiplied with
// its keys in one product.
func (d decoder) attend(q, k, v, mask *graph.Node, b int) *graph.Node {
	s, heads, groups, size := q.Shape().Dimensions[1], d.cfg.NumAttentionHeads, d.cfg.Decoder.KVHeads, d.cfg.Decoder.HeadSize
	each, seen := heads/groups, k.Shape().Dimensions[1]
	q = graph.MulScalar(q, 1/math.Sqrt(float64(d.cfg.Decoder.QueryScale)))
	q = graph.Reshape(graph.TransposeAllAxes(graph.Reshape(q, b, s, groups, each, size), 0, 2, 3, 1, 4), b*groups, each*s, size)
	split := func(x *graph.Node) *graph.Node {
		return graph.Reshape(graph.TransposeAllAxes(graph.Reshape(x, b, seen, groups, size), 0, 2, 1, 3), b*groups, seen, size)
	}
	scores := graph.DotGeneral(q, []int{2}, []int{0}, split(k), []int{2}, []int{0}) // [B*groups, each*S, N]
	n := b * groups * each
	hidden := graph.Reshape(graph.BroadcastToDims(graph.Reshape(mask, 1, s, seen), n, s, seen), b*groups, each*s, seen)
	y := d.attended(graph.Add(scores, hidden), split(v))
	y = graph.TransposeAllAxes(graph.Reshape(y, b, groups, each, s, size), 0, 3, 1, 2, 4)
	return graph.Reshape(y, b*s, heads*size)
}

// nextLogits are the scores of every token at the places of the inputs that the graph
// has: [B*K, vocabulary].
func (e encoder) nextLogits() *graph.Node {
	d := e.decoder()
	return linear(d.nextStates(e.params.byName[task.Tokens], e.params.byName[task.Places], nil), d.head(), nil)
}
