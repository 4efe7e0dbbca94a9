package compiler_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/starling-fl/starling/wasm/compiler"
)

// bert is a BERT-like training step: frozen encoder, LoRA on query and value, mean pooling, a trained head.
type bert struct {
	layers, hidden, heads, ffn, vocab, seq, batch, rank, classes int
	optimizer                                                    string // sgd, momentum, adamw
	erf                                                          bool   // exact GELU
	nf4                                                          bool   // frozen matrices in 4 bits
}

var (
	bertToy   = bert{layers: 1, hidden: 16, heads: 2, ffn: 32, vocab: 50, seq: 6, batch: 3, rank: 2, classes: 3, optimizer: "sgd"}
	bertTiny  = bert{layers: 2, hidden: 128, heads: 2, ffn: 512, vocab: 4096, seq: 32, batch: 16, rank: 8, classes: 4, optimizer: "adamw"}
	bertTiny8 = bert{layers: 2, hidden: 128, heads: 2, ffn: 512, vocab: 4096, seq: 64, batch: 8, rank: 16, classes: 4, optimizer: "sgd"}
	bertSmall = bert{layers: 4, hidden: 512, heads: 8, ffn: 2048, vocab: 30522, seq: 64, batch: 8, rank: 16, classes: 4, optimizer: "sgd"}
)

// param is one parameter of the step with its first value.
type param struct {
	compiler.Param
	dtype dtypes.DType
	dims  []int
	f32   []float32
	i32   []int32
}

func (p *param) tensor() *tensors.Tensor {
	if p.dtype == dtypes.Int32 {
		return tensors.FromFlatDataAndDimensions(p.i32, p.dims...)
	}
	return tensors.FromFlatDataAndDimensions(p.f32, p.dims...)
}

// step is a built step: what Compile needs, and values to run it with.
type step struct {
	params  []*param
	outputs []compiler.Output
}

func (s *step) spec(name, host string) compiler.Spec {
	sp := compiler.Spec{Name: name, Host: host, Outputs: s.outputs}
	for _, p := range s.params {
		sp.Params = append(sp.Params, p.Param)
	}
	return sp
}

// build adds the step to a graph. It fills s with parameters and random values on the way.
func (b bert) build(g *graph.Graph, s *step) []*graph.Node {
	rnd := rand.New(rand.NewPCG(7, uint64(b.hidden)))
	*s = step{}
	add := func(p *param) *graph.Node {
		s.params = append(s.params, p)
		return graph.Parameter(g, p.Name, shapes.Make(p.dtype, p.dims...))
	}
	normal := func(n int, scale float64) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rnd.NormFloat64() * scale)
		}
		return v
	}
	float := func(name string, role compiler.Role, scale float64, dims ...int) *graph.Node {
		n := 1
		for _, d := range dims {
			n *= d
		}
		p := &param{dtype: dtypes.Float32, dims: dims, f32: normal(n, scale)}
		p.Name, p.Role = name, role
		p.NF4 = b.nf4 && role == compiler.Frozen && len(dims) == 2
		return add(p)
	}
	tokens := &param{dtype: dtypes.Int32, dims: []int{b.batch, b.seq}, i32: make([]int32, b.batch*b.seq)}
	for i := range tokens.i32 {
		tokens.i32[i] = int32(1 + rnd.IntN(b.vocab-1))
		if i%b.seq > b.seq*3/4 {
			tokens.i32[i] = 0
		}
	}
	tokens.Name = "tokens"
	labels := &param{dtype: dtypes.Int32, dims: []int{b.batch}, i32: make([]int32, b.batch)}
	for i := range labels.i32 {
		labels.i32[i] = int32(rnd.IntN(b.classes))
	}
	labels.Name = "labels"
	tok, lab := add(tokens), add(labels)
	weights := float("weights", compiler.Input, 0, b.batch)
	for i := range s.params[2].f32 {
		s.params[2].f32[i] = 1
	}
	lr, t := float("learning_rate", compiler.Input, 0), float("step", compiler.Input, 0)
	s.params[3].f32[0], s.params[4].f32[0] = 100, 1 // updates that stand out from the parameters

	var trained []*graph.Node
	var names []string
	train := func(name string, scale float64, dims ...int) *graph.Node {
		n := float(name, compiler.State, scale, dims...)
		trained, names = append(trained, n), append(names, name)
		return n
	}
	frozen := func(name string, dims ...int) *graph.Node {
		return float(name, compiler.Frozen, 1/math.Sqrt(float64(dims[len(dims)-1])), dims...)
	}
	n, h := b.batch*b.seq, b.hidden
	linear := func(x, w *graph.Node) *graph.Node { return graph.DotGeneral(x, []int{1}, nil, w, []int{1}, nil) }
	rows := func(v *graph.Node, n int) *graph.Node {
		return graph.BroadcastToDims(graph.Reshape(v, 1, v.Shape().Dimensions[0]), n, v.Shape().Dimensions[0])
	}
	dense := func(x *graph.Node, name string, out int) *graph.Node {
		return graph.Add(linear(x, frozen(name+".weight", out, x.Shape().Dimensions[1])), rows(frozen(name+".bias", out), x.Shape().Dimensions[0]))
	}
	spread := func(v, x *graph.Node) *graph.Node {
		return graph.BroadcastToDims(graph.Reshape(v, append(slices.Clone(v.Shape().Dimensions), 1)...), x.Shape().Dimensions...)
	}
	norm := func(x *graph.Node, name string) *graph.Node {
		c := graph.Sub(x, spread(graph.DivScalar(graph.ReduceSum(x, -1), h), x))
		v := graph.DivScalar(graph.ReduceSum(graph.Mul(c, c), -1), h)
		inv := graph.Div(graph.OnesLike(v), graph.Sqrt(graph.AddScalar(v, 1e-12)))
		return graph.Add(graph.Mul(graph.Mul(c, spread(inv, x)), rows(frozen(name+".weight", h), n)), rows(frozen(name+".bias", h), n))
	}
	softmax := func(x *graph.Node) *graph.Node {
		e := graph.Exp(graph.Sub(x, spread(graph.StopGradient(graph.ReduceMax(x, -1)), x)))
		return graph.Div(e, spread(graph.ReduceSum(e, -1), e))
	}
	gelu := func(x *graph.Node) *graph.Node {
		if b.erf {
			return graph.Mul(graph.MulScalar(x, 0.5), graph.AddScalar(graph.Erf(graph.MulScalar(x, math.Sqrt2/2)), 1))
		}
		in := graph.MulScalar(graph.Add(x, graph.MulScalar(graph.Mul(graph.Mul(x, x), x), 0.044715)), math.Sqrt(2/math.Pi))
		return graph.Mul(graph.MulScalar(x, 0.5), graph.AddScalar(graph.Tanh(in), 1))
	}
	// The low-rank tensors come before the frozen ones, so that state is together.
	type lora struct{ a, b *graph.Node }
	ls := map[string]lora{}
	for l := range b.layers {
		for _, w := range []string{"query", "value"} {
			name := fmt.Sprintf("layer%d.%s", l, w)
			ls[name] = lora{train(name+".lora_A", 1/math.Sqrt(float64(h)), b.rank, h), train(name+".lora_B", 0.02, h, b.rank)}
		}
	}
	headW, headB := train("classifier.weight", 0.1, b.classes, h), train("classifier.bias", 0, b.classes)
	moments := make([][]*graph.Node, len(trained))
	for i, name := range names {
		if b.optimizer != "sgd" {
			moments[i] = append(moments[i], float(name+".m", compiler.State, 0, trained[i].Shape().Dimensions...))
		}
		if b.optimizer == "adamw" {
			moments[i] = append(moments[i], float(name+".v", compiler.State, 0, trained[i].Shape().Dimensions...))
		}
	}
	ntrained := len(names)

	x := graph.Gather(frozen("words", b.vocab, h), graph.Reshape(tok, n, 1))
	pos := graph.BroadcastToDims(graph.Reshape(frozen("positions", b.seq, h), 1, b.seq, h), b.batch, b.seq, h)
	x = norm(graph.Add(x, graph.Reshape(pos, n, h)), "embeddings.norm")
	pad := graph.ConvertDType(graph.Equal(tok, graph.ZerosLike(tok)), dtypes.Float32)
	keep := graph.Sub(graph.OnesLike(pad), pad)
	bias := graph.MulScalar(pad, -1e4)
	for l := range b.layers {
		p := fmt.Sprintf("layer%d.", l)
		adapted := func(x *graph.Node, w string) *graph.Node {
			y := dense(x, p+w, h)
			return graph.Add(y, graph.MulScalar(linear(linear(x, ls[p+w].a), ls[p+w].b), 2))
		}
		d := h / b.heads
		split := func(x *graph.Node) *graph.Node {
			x = graph.TransposeAllAxes(graph.Reshape(x, b.batch, b.seq, b.heads, d), 0, 2, 1, 3)
			return graph.Reshape(x, b.batch*b.heads, b.seq, d)
		}
		q, k, v := adapted(x, "query"), dense(x, p+"key", h), adapted(x, "value")
		scores := graph.DotGeneral(split(graph.MulScalar(q, 1/math.Sqrt(float64(d)))), []int{2}, []int{0}, split(k), []int{2}, []int{0})
		mask := graph.BroadcastToDims(graph.Reshape(bias, b.batch, 1, 1, b.seq), b.batch, b.heads, b.seq, b.seq)
		a := softmax(graph.Add(scores, graph.Reshape(mask, b.batch*b.heads, b.seq, b.seq)))
		y := graph.DotGeneral(a, []int{2}, []int{0}, split(v), []int{1}, []int{0})
		y = graph.TransposeAllAxes(graph.Reshape(y, b.batch, b.heads, b.seq, d), 0, 2, 1, 3)
		x = norm(graph.Add(x, dense(graph.Reshape(y, n, h), p+"output", h)), p+"norm1")
		x = norm(graph.Add(x, dense(gelu(dense(x, p+"up", b.ffn)), p+"down", h)), p+"norm2")
	}
	share := graph.Div(keep, spread(graph.AddScalar(graph.ReduceSum(keep, -1), 1e-9), keep))
	pooled := graph.Reshape(graph.DotGeneral(graph.Reshape(share, b.batch, 1, b.seq), []int{2}, []int{0},
		graph.Reshape(x, b.batch, b.seq, h), []int{1}, []int{0}), b.batch, h)
	logits := graph.Add(linear(pooled, headW), rows(headB, b.batch))
	shifted := graph.Sub(logits, spread(graph.StopGradient(graph.ReduceMax(logits, -1)), logits))
	lse := graph.Log(graph.ReduceSum(graph.Exp(shifted), -1))
	class := graph.Iota(g, shapes.Make(dtypes.Int32, b.batch, b.classes), 1)
	hit := graph.ConvertDType(graph.Equal(class, spread(lab, logits)), dtypes.Float32)
	ce := graph.Sub(lse, graph.ReduceSum(graph.Mul(hit, shifted), -1))
	loss := graph.Div(graph.ReduceAllSum(graph.Mul(weights, ce)), graph.AddScalar(graph.ReduceAllSum(weights), 1e-9))
	grads := graph.Gradient(loss, trained...)

	out := []*graph.Node{loss}
	s.outputs = []compiler.Output{{Name: "loss"}}
	scale := func(x, by *graph.Node) *graph.Node {
		return graph.Mul(x, graph.BroadcastToDims(by, x.Shape().Dimensions...))
	}
	for i := range ntrained {
		dir := grads[i]
		m := moments[i]
		switch b.optimizer {
		case "momentum":
			m[0] = graph.Add(graph.MulScalar(m[0], 0.9), dir)
			dir = m[0]
		case "adamw":
			m[0] = graph.Add(graph.MulScalar(m[0], 0.9), graph.MulScalar(dir, 0.1))
			m[1] = graph.Add(graph.MulScalar(m[1], 0.999), graph.MulScalar(graph.Mul(dir, dir), 0.001))
			fix := func(beta float64) *graph.Node {
				p := graph.Exp(graph.MulScalar(t, math.Log(beta)))
				return graph.Div(graph.OnesLike(p), graph.Sub(graph.OnesLike(p), p))
			}
			dir = graph.Div(scale(m[0], fix(0.9)), graph.AddScalar(graph.Sqrt(scale(m[1], fix(0.999))), 1e-8))
			dir = graph.Add(dir, graph.MulScalar(trained[i], 0.01))
		}
		out = append(out, graph.Sub(trained[i], scale(dir, lr)))
		s.outputs = append(s.outputs, compiler.Output{Name: names[i] + ".new", State: names[i]})
		for k := range m {
			out = append(out, m[k])
			suffix := []string{".m", ".v"}[k]
			s.outputs = append(s.outputs, compiler.Output{Name: names[i] + suffix + ".new", State: names[i] + suffix})
		}
	}
	return out
}

// reference runs the step on another backend: it returns the outputs.
func reference(backend compute.Backend, b bert) (run func(s *step) [][]float32) {
	g := graph.NewGraph(backend, "reference")
	var scratch step
	out := b.build(g, &scratch)
	if err := g.Compile(out...); err != nil {
		panic(err)
	}
	return func(s *step) [][]float32 {
		in := make([]any, len(s.params))
		for i, p := range s.params {
			in[i] = p.tensor()
		}
		var r [][]float32
		for _, t := range g.Run(in...) {
			flat := make([]float32, t.Shape().Size())
			tensors.MustConstFlatData(t, func(v []float32) { copy(flat, v) })
			r = append(r, flat)
		}
		return r
	}
}
