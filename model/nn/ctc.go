package nn

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/data/task"
)

// characters are the scores of each frame's characters [B,S,V].
func (e encoder) characters(outputs int) *graph.Node {
	keep := e.params.byName[task.Keep]
	d := keep.Shape().Dimensions
	return graph.Reshape(e.head(e.frames(e.params.byName[task.Samples], keep), outputs), d[0], d[1], outputs)
}

// spelt are characters whose frames beyond a recording's own are blanks for certain: they
// spell nothing, and anyone who reads the scores need not know how many frames there are.
func (e encoder) spelt(outputs int) *graph.Node {
	x, keep := e.characters(outputs), e.params.byName[task.Keep]
	g, dims := x.Graph(), x.Shape().Dimensions
	blank := graph.BroadcastToDims(graph.Const(g, int32(e.cfg.PadTokenID)), dims...)
	is := graph.Equal(graph.Iota(g, shapes.Make(dtypes.Int32, dims...), 2), blank)
	silence := graph.MulScalar(graph.OneMinus(graph.ConvertDType(is, dtypes.Float32)), maskedScore)
	own := graph.GreaterThan(keep, graph.ZerosLike(keep))
	return graph.Where(graph.BroadcastToDims(graph.Reshape(own, dims[0], dims[1], 1), dims...), x, silence)
}

// spellingLoss is the weighted mean of the recordings' ctc, each by its number of characters
// where the base's configuration asks for the mean.
func (e encoder) spellingLoss(outputs int) (loss, root *graph.Node) {
	in := e.params.byName
	logits, labels, weights := e.characters(outputs), in[task.Labels], in[task.Weights]
	each, gradient := e.ctc(graph.StopGradient(logits), labels, in[task.Keep], e.cfg.PadTokenID)
	if e.cfg.Speech.Reduction == "mean" {
		blanks := graph.BroadcastToDims(graph.Const(labels.Graph(), int32(e.cfg.PadTokenID)), labels.Shape().Dimensions...)
		n := graph.ReduceSum(graph.ConvertDType(graph.NotEqual(labels, blanks), dtypes.Float32), -1)
		n = graph.Max(n, graph.OnesLike(n))
		each = graph.Div(each, n)
		gradient = graph.Div(gradient, graph.BroadcastToDims(graph.Reshape(n, -1, 1, 1), gradient.Shape().Dimensions...))
	}
	share := graph.Div(weights, graph.BroadcastToDims(graph.AddScalar(graph.ReduceAllSum(weights), 1e-9), weights.Shape().Dimensions...))
	gradient = graph.Mul(gradient, graph.BroadcastToDims(graph.Reshape(share, -1, 1, 1), gradient.Shape().Dimensions...))
	return weightedMean(each, weights), graph.ReduceAllSum(graph.Mul(graph.StopGradient(gradient), logits))
}

// mostSpelt bounds the frames of a recursion, which is written out: of the published models they
// are a minute, and the program 300 kB.
const mostSpelt = 3000

// never is the logarithm of what cannot be: far below any logarithm of a float32, and far
// enough from its largest that a sum over all frames of a recording stays finite, so that no
// difference of two is a NaN.
const never = -1e30

// ctc is connectionist temporal classification (Graves et al. 2006): of logits [B,S,V] the
// loss of each recording [B], -log of the probability of its labels over all the ways in which
// its frames can spell them, and that loss's gradient in the logits [B,S,V]. labels [B,L] are
// filled up with the blank, which is no label; keep [B,S] is 1 for a recording's own frames,
// which come first. The frames have to be enough for the labels.
//
// The recursion over frames is written out, so it has to be short. A state is a blank or a
// label, in the order blank, label, blank, ..., blank: 2L+1 of them. Both recursions, from the
// first frame on and from the last back, are one: the second is the first of what is turned
// around in frames and states. What fills a recording up is made into frames that its last
// blank takes with certainty and nothing else takes at all, and there is one such frame behind
// every recording: so the first recursion ends in the probability of the labels wherever the
// recording ends, and the second begins at its end, without a choice in any frame. The gradient
// follows from both, without autodiff's third recursion.
func (f elementary) ctc(logits, labels, keep *graph.Node, blank int) (loss, gradient *graph.Node) {
	g := logits.Graph()
	d := logits.Shape().Dimensions
	b, s, v, l := d[0], d[1], d[2], labels.Shape().Dimensions[1]
	if s > mostSpelt {
		panic(fmt.Errorf("sequence is %d frames, of which at most %d may spell a text", s, mostSpelt))
	}
	u, frames := 2*l+1, s+1
	cast := func(x *graph.Node) *graph.Node { return graph.ConvertDType(x, dtypes.Float32) }
	full := func(value float64, dims ...int) *graph.Node {
		return graph.BroadcastToDims(graph.Const(g, float32(value)), dims...)
	}
	iota := func(axis int, dims ...int) *graph.Node {
		return graph.Iota(g, shapes.Make(dtypes.Int32, dims...), axis)
	}
	where := func(is, yes, no *graph.Node) *graph.Node { return graph.Where(is, yes, no) }

	flat := graph.Reshape(logits, b*s, v)
	top := graph.ReduceMax(flat, -1)
	shifted := graph.Sub(flat, spread(top, flat))
	sum := graph.ReduceSum(f.exp(shifted), -1)
	logProbs := graph.Reshape(graph.Sub(shifted, spread(graph.Log(sum), shifted)), b, s, v)
	softmax := graph.Reshape(graph.Div(f.exp(shifted), spread(sum, shifted)), b, s, v)

	// The symbol of each state, and the number of labels.
	blanks := graph.BroadcastToDims(graph.Const(g, int32(blank)), b, l)
	symbols := graph.Reshape(graph.Concatenate([]*graph.Node{graph.Reshape(blanks, b, l, 1), graph.Reshape(labels, b, l, 1)}, 2), b, 2*l)
	symbols = graph.Concatenate([]*graph.Node{symbols, graph.BroadcastToDims(graph.Const(g, int32(blank)), b, 1)}, 1) // [B,U]
	length := graph.ReduceSum(cast(graph.NotEqual(labels, blanks)), -1)                                               // [B]
	state := cast(iota(1, b, u))
	last := cast(graph.Equal(state, spread(graph.MulScalar(length, 2), state))) // [B,U]: 1 at the last blank
	hot := cast(graph.Equal(iota(1, b, v, u), graph.BroadcastToDims(graph.Reshape(symbols, b, 1, u), b, v, u)))

	// Emissions [B,S,U], each frame's largest taken off: what is summed up stays near 0.
	emit := graph.DotGeneral(logProbs, []int{2}, []int{0}, hot, []int{1}, []int{0})
	used := cast(graph.LessOrEqual(state, spread(graph.MulScalar(length, 2), state)))
	reachable := graph.BroadcastToDims(graph.Reshape(graph.MulScalar(graph.OneMinus(used), never), b, 1, u), b, s, u)
	emit = graph.Add(emit, reachable)
	most := graph.Mul(graph.ReduceMax(emit, -1), keep) // [B,S]
	emit = graph.Sub(emit, spread(most, emit))
	own := graph.GreaterThan(keep, full(0, b, s))
	certain := graph.MulScalar(graph.OneMinus(last), never) // [B,U]
	emit = where(graph.BroadcastToDims(graph.Reshape(own, b, s, 1), b, s, u), emit, graph.BroadcastToDims(graph.Reshape(certain, b, 1, u), b, s, u))
	emit = graph.Concatenate([]*graph.Node{emit, graph.Reshape(certain, b, 1, u)}, 1) // [B,S+1,U]
	both := graph.Concatenate([]*graph.Node{emit, graph.Reverse(emit, 1, 2)}, 0)

	// A label may follow the one before it without a blank where it is another.
	two := func(x *graph.Node, value float64) *graph.Node { // two states further on
		return graph.Concatenate([]*graph.Node{full(value, b, 2), graph.Slice(x, graph.AxisRange(), graph.AxisRange(0, u-2))}, 1)
	}
	prior := graph.Concatenate([]*graph.Node{graph.BroadcastToDims(graph.Const(g, int32(blank)), b, 2), graph.Slice(symbols, graph.AxisRange(), graph.AxisRange(0, u-2))}, 1)
	may := graph.Mul(cast(graph.NotEqual(symbols, prior)), cast(graph.NotEqual(symbols, graph.BroadcastToDims(graph.Const(g, int32(blank)), b, u))))
	skip := graph.MulScalar(graph.OneMinus(may), never)
	skips := graph.Concatenate([]*graph.Node{skip, two(graph.Reverse(skip, 1), never)}, 0) // [2B,U]

	start := graph.Concatenate([]*graph.Node{
		graph.MulScalar(cast(graph.NotEqual(state, full(0, b, u))), never), graph.Reverse(certain, 1),
	}, 0)
	before := full(never, 2*b, 2)
	alphas := make([]*graph.Node, frames)
	alpha := start
	for t := range frames {
		wide := graph.Concatenate([]*graph.Node{before, alpha}, 1)
		one := graph.Slice(wide, graph.AxisRange(), graph.AxisRange(1, u+1))
		jump := graph.Add(graph.Slice(wide, graph.AxisRange(), graph.AxisRange(0, u)), skips)
		m := graph.Max(alpha, graph.Max(one, jump))
		ways := graph.Add(graph.Add(f.exp(graph.Sub(alpha, m)), f.exp(graph.Sub(one, m))), f.exp(graph.Sub(jump, m)))
		at := graph.Reshape(graph.Slice(both, graph.AxisRange(), graph.AxisRange(t, t+1), graph.AxisRange()), 2*b, u)
		alpha = graph.Add(graph.Add(m, graph.Log(ways)), at)
		alphas[t] = graph.Reshape(alpha, 2*b, 1, u)
	}
	all := graph.Concatenate(alphas, 1) // [2B,S+1,U]
	forth := graph.Slice(all, graph.AxisRange(0, b), graph.AxisRange(0, s), graph.AxisRange())
	back := graph.Slice(graph.Reverse(graph.Slice(all, graph.AxisRange(b, 2*b), graph.AxisRange(), graph.AxisRange()), 1, 2),
		graph.AxisRange(), graph.AxisRange(0, s), graph.AxisRange())
	end := graph.ReduceSum(graph.Mul(graph.Slice(alpha, graph.AxisRange(0, b), graph.AxisRange()), last), -1) // [B]
	loss = graph.Neg(graph.Add(end, graph.ReduceSum(most, -1)))

	emit = graph.Slice(emit, graph.AxisRange(), graph.AxisRange(0, s), graph.AxisRange())
	// Of the probability that of each state: in every frame they make up the whole, and to divide
	// by what they sum up to takes the rounding of long sums out.
	share := f.softmax(graph.Sub(graph.Add(forth, back), emit))
	spelt := graph.DotGeneral(share, []int{2}, []int{0}, hot, []int{2}, []int{0})
	gradient = graph.Mul(graph.Sub(softmax, spelt), graph.BroadcastToDims(graph.Reshape(keep, b, s, 1), b, s, v))
	return loss, gradient
}
