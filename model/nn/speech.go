package nn

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/model"
)

// convolutionEps is what PyTorch adds to variances between convolutions.
const convolutionEps = 1e-5

// frames are the last layer's states of recordings [B*S, hidden]: samples [B, N] through
// the convolutions and the encoder. keep [B, S] is 1 for a frame, 0 where a row is only
// filled up.
func (e encoder) frames(samples, keep *graph.Node) *graph.Node {
	s := e.cfg.Speech
	b, f, h := keep.Shape().Dimensions[0], keep.Shape().Dimensions[1], e.cfg.HiddenSize
	x := graph.Reshape(samples, b, samples.Shape().Dimensions[1], 1)
	for i := range s.Width.Len() {
		x = e.convolution(x, i)
	}
	x = e.kept.choose(x)
	if got := x.Shape().Dimensions[1]; got != f {
		panic(fmt.Errorf("%d samples make %d frames, want %d", samples.Shape().Dimensions[1], got, f))
	}
	width := x.Shape().Dimensions[2]
	x = graph.Reshape(x, b*f, width)
	if s.ProjectedNorm {
		x = layerNorm(x, e.params.frozen(model.SpeechProjectionNorm+".weight", width), e.params.frozen(model.SpeechProjectionNorm+".bias", width), e.cfg.LayerNormEps)
	}
	x = e.dense(x, model.SpeechProjection, h)

	blank := func(x *graph.Node) *graph.Node { return graph.Mul(x, spread(graph.Reshape(keep, b*f), x)) }
	bias := inMemory(graph.MulScalar(graph.OneMinus(keep), maskedScore))
	x = blank(x)
	x = graph.Add(x, e.places1D(graph.Reshape(x, b, f, h)))
	if s.NormFirst {
		for l := range e.cfg.NumHiddenLayers {
			x = e.preNormLayer(x, bias, b, e.cfg.Layer(l))
		}
		return e.norm(x, model.SpeechNorm)
	}
	x = blank(e.norm(x, model.SpeechNorm))
	for l := range e.cfg.NumHiddenLayers {
		x = e.layer(x, bias, e.cfg.Layer(l), blank)
	}
	return x
}

// convolution is one of the front end: x [B, T, channels] to [B, frames, width].
func (e encoder) convolution(x *graph.Node, i int) *graph.Node {
	s := e.cfg.Speech
	dims := x.Shape().Dimensions
	b, in, out, k := dims[0], dims[2], s.Width[i], s.Kernel[i]
	conv, norm := model.SpeechConvolution(i)
	n := (dims[1]-k)/s.Stride[i] + 1
	w := graph.Reshape(graph.TransposeAllAxes(e.params.frozen(conv+".weight", out, in, k), 0, 2, 1), out, k*in)
	var bias *graph.Node
	if s.Bias {
		bias = e.params.frozen(conv+".bias", out)
	}
	// As products that a program can be stopped between.
	var parts []*graph.Node
	most := max(1, mostProduct/2/(b*k*in*out))
	for from := 0; from < n; from += most {
		to := min(n, from+most)
		part := graph.Slice(x, graph.AxisRange(), graph.AxisRange(from*s.Stride[i], (to-1)*s.Stride[i]+k), graph.AxisRange())
		y := linear(graph.Reshape(windows(part, k, s.Stride[i]), b*(to-from), k*in), w, bias)
		parts = append(parts, graph.Reshape(y, b, to-from, out))
	}
	y := parts[0]
	if len(parts) > 1 {
		y = graph.Concatenate(parts, 1)
	}
	switch s.NormOf(i) {
	case "group":
		y = channelNorm(y, e.params.frozen(norm+".weight", out), e.params.frozen(norm+".bias", out))
	case "layer":
		flat := layerNorm(graph.Reshape(y, b*n, out), e.params.frozen(norm+".weight", out), e.params.frozen(norm+".bias", out), convolutionEps)
		y = graph.Reshape(flat, b, n, out)
	}
	return e.activation(y, s.Act)
}

// windows are what a convolution multiplies: of x [B, T, C] the k rows from every stride-th
// on, as many as there are whole ones: [B, windows, k*C]. They are put together of whole
// strides, so that no value is moved by itself.
func windows(x *graph.Node, k, stride int) *graph.Node {
	dims := x.Shape().Dimensions
	b, t, c := dims[0], dims[1], dims[2]
	n := (t-k)/stride + 1
	pieces := (k + stride - 1) / stride // strides that a window has a part of
	need := (n - 1 + pieces) * stride
	switch {
	case need > t:
		x = graph.Concatenate([]*graph.Node{x, graph.Zeros(x.Graph(), shapes.Make(dtypes.Float32, b, need-t, c))}, 1)
	case need < t:
		x = graph.Slice(x, graph.AxisRange(), graph.AxisRange(0, need), graph.AxisRange())
	}
	x = graph.Reshape(x, b, n-1+pieces, stride*c)
	parts := make([]*graph.Node, pieces)
	for p := range parts {
		width := min(stride, k-p*stride) * c
		parts[p] = graph.Slice(x, graph.AxisRange(), graph.AxisRange(p, p+n), graph.AxisRange(0, width))
	}
	if pieces == 1 {
		return parts[0]
	}
	return graph.Concatenate(parts, 2)
}

// channelNorm normalises each channel of each recording over its frames, as GroupNorm does
// with a group for each; x [B, T, C].
func channelNorm(x, gain, bias *graph.Node) *graph.Node {
	dims := x.Shape().Dimensions
	b, t, c := dims[0], dims[1], dims[2]
	over := func(v *graph.Node) *graph.Node { return graph.BroadcastToDims(graph.Reshape(v, b, 1, c), b, t, c) }
	centred := graph.Sub(x, over(graph.DivScalar(graph.ReduceSum(x, 1), t)))
	variance := graph.DivScalar(graph.ReduceSum(graph.Mul(centred, centred), 1), t)
	inv := graph.Div(graph.OnesLike(variance), graph.Sqrt(graph.AddScalar(variance, convolutionEps)))
	of := func(v *graph.Node) *graph.Node { return graph.BroadcastToDims(graph.Reshape(v, 1, 1, c), b, t, c) }
	return graph.Add(graph.Mul(graph.Mul(centred, over(inv)), of(gain)), of(bias))
}

// places1D are convolutional positions of x [B, S, h]: [B*S, h]. The weight is a direction
// of length 1 at each tap, times that tap's length.
func (e encoder) places1D(x *graph.Node) *graph.Node {
	s, h := e.cfg.Speech, e.cfg.HiddenSize
	b, f := x.Shape().Dimensions[0], x.Shape().Dimensions[1]
	k, groups := s.Positions, s.Groups
	in := h / groups
	direction := e.params.frozen(model.SpeechPositionsDirection, h, in, k)
	length := graph.Reshape(e.params.frozen(model.SpeechPositionsLength, 1, 1, k), k)
	norm := graph.Sqrt(graph.ReduceSum(graph.ReduceSum(graph.Mul(direction, direction), 0), 0)) // [k]
	w := graph.Mul(direction, graph.BroadcastToDims(graph.Reshape(graph.Div(length, norm), 1, 1, k), h, in, k))
	w = graph.TransposeAllAxes(graph.Reshape(w, groups, in, in, k), 0, 3, 2, 1) // [groups, k, in, out]

	// Taps that reach nothing but what lies beside the recording are left out.
	before := k / 2
	first, last := max(0, before-f+1), min(k, before+f)
	taps := last - first
	w = graph.Slice(w, graph.AxisRange(), graph.AxisRange(first, last), graph.AxisRange(), graph.AxisRange())
	left, right := before-first, last-1-before // of silence
	zeros := func(n int) *graph.Node { return graph.Zeros(x.Graph(), shapes.Make(dtypes.Float32, groups, b, n, in)) }
	x = graph.TransposeAllAxes(graph.Reshape(x, b, f, groups, in), 2, 0, 1, 3) // [groups, B, S, in]
	parts := []*graph.Node{}
	if left > 0 {
		parts = append(parts, zeros(left))
	}
	if parts = append(parts, x); right > 0 {
		parts = append(parts, zeros(right))
	}
	if len(parts) > 1 {
		x = graph.Concatenate(parts, 2)
	}
	const together = 8 // taps of one product
	var y *graph.Node
	for from := 0; from < taps; from += together {
		to := min(taps, from+together)
		var rows []*graph.Node
		for tap := from; tap < to; tap++ {
			rows = append(rows, graph.Slice(x, graph.AxisRange(), graph.AxisRange(), graph.AxisRange(tap, tap+f), graph.AxisRange()))
		}
		seen := rows[0]
		if len(rows) > 1 {
			seen = graph.Concatenate(rows, 3)
		}
		n := (to - from) * in
		kernel := graph.Reshape(graph.Slice(w, graph.AxisRange(), graph.AxisRange(from, to), graph.AxisRange(), graph.AxisRange()), groups, n, in)
		part := graph.DotGeneral(graph.Reshape(seen, groups, b*f, n), []int{2}, []int{0}, kernel, []int{1}, []int{0})
		if y == nil {
			y = part
		} else {
			y = graph.Add(y, part)
		}
	}
	y = graph.Reshape(graph.TransposeAllAxes(graph.Reshape(y, groups, b*f, in), 1, 0, 2), b*f, h)
	y = graph.Add(y, rows(e.params.frozen(model.SpeechPositions+".bias", h), b*f))
	return e.activation(y, s.Act)
}
