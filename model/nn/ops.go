package nn

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/model"
)

// catch turns GoMLX's panics into errors.
func catch(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case error:
			err = fmt.Errorf("nn: %w", r)
		default:
			err = fmt.Errorf("nn: %v", r)
		}
	}()
	f()
	return nil
}

// params collects the parameters of a graph under construction.
type params struct {
	g      *graph.Graph
	list   []Param
	byName map[string]*graph.Node
}

func newParams(g *graph.Graph) *params { return &params{g: g, byName: map[string]*graph.Node{}} }

func (p *params) add(name string, role Role, dtype dtypes.DType, shape ...int) *graph.Node {
	n := graph.Parameter(p.g, name, shapes.Make(dtype, shape...))
	p.list = append(p.list, Param{name, role, dtype, shape, n})
	p.byName[name] = n
	return n
}

// frozen returns the named parameter, adding it as a frozen one at first use; where
// its difference is trained, the sum of both.
func (p *params) frozen(name string, shape ...int) *graph.Node {
	if n, ok := p.byName[name]; ok {
		return n
	}
	n := p.add(name, Frozen, dtypes.Float32, shape...)
	if d, ok := p.byName[name+model.DeltaSuffix]; ok {
		if dims := d.Shape().Dimensions; len(dims) > len(shape) { // a difference for each client
			n = graph.BroadcastToDims(graph.Reshape(n, append([]int{1}, shape...)...), dims...)
		}
		n = graph.Add(n, d)
		p.byName[name] = n
	}
	return n
}

// adapt adds to y, a linear map of x, the low-rank update of it that the graph has.
func (p *params) adapt(y, x *graph.Node, name string, scale float64) *graph.Node {
	a, ok := p.byName[name+".lora_A.weight"]
	if !ok {
		return y
	}
	low := linear(linear(x, a, nil), p.byName[name+".lora_B.weight"], nil)
	return graph.Add(y, graph.MulScalar(low, scale))
}

// scaleBy multiplies every element by a scalar node.
func scaleBy(x, s *graph.Node) *graph.Node {
	return graph.Mul(x, graph.BroadcastToDims(s, x.Shape().Dimensions...))
}

// rows repeats the vector v [k] for each of n rows: [n,k]. A v [c,k] has a vector for
// each of c clients, whose rows follow one another.
func rows(v *graph.Node, n int) *graph.Node {
	if v.Rank() == 2 {
		c, k := v.Shape().Dimensions[0], v.Shape().Dimensions[1]
		return graph.Reshape(graph.BroadcastToDims(graph.Reshape(v, c, 1, k), c, n/c, k), n, k)
	}
	return graph.BroadcastToDims(graph.Reshape(v, 1, v.Shape().Dimensions[0]), n, v.Shape().Dimensions[0])
}

// lastSum sums over the last axis and broadcasts the sum back along it.
func lastSum(x *graph.Node) *graph.Node { return spread(graph.ReduceSum(x, -1), x) }

// spread broadcasts v, which lacks x's last axis, along that axis.
func spread(v, x *graph.Node) *graph.Node {
	dims := v.Shape().Dimensions
	return graph.BroadcastToDims(graph.Reshape(v, append(append([]int(nil), dims...), 1)...), x.Shape().Dimensions...)
}

// linear is x w^T + bias: x [n,in], w [out,in], bias [out] or nil. A w [c,out,in] or
// bias [c,out] has one for each of c clients, whose rows of x follow one another.
func linear(x, w, bias *graph.Node) *graph.Node {
	var y *graph.Node
	if w.Rank() == 3 {
		n, c, out := x.Shape().Dimensions[0], w.Shape().Dimensions[0], w.Shape().Dimensions[1]
		y = graph.DotGeneral(graph.Reshape(x, c, n/c, -1), []int{2}, []int{0}, w, []int{2}, []int{0})
		y = graph.Reshape(y, n, out)
	} else {
		y = graph.DotGeneral(x, []int{1}, nil, w, []int{1}, nil)
	}
	if bias == nil {
		return y
	}
	return graph.Add(y, rows(bias, y.Shape().Dimensions[0]))
}

// layerNorm normalises the rows of x [n,k]. Rsqrt has no gradient in GoMLX,
// hence 1/Sqrt.
func layerNorm(x, gain, bias *graph.Node, eps float64) *graph.Node {
	n, k := x.Shape().Dimensions[0], x.Shape().Dimensions[1]
	centred := graph.Sub(x, graph.DivScalar(lastSum(x), k))
	variance := graph.DivScalar(graph.ReduceSum(graph.Mul(centred, centred), -1), k)
	// An eps below the rounding of float32 still has to keep 1/0 away.
	inv := graph.Div(graph.OnesLike(variance), graph.Sqrt(graph.AddScalar(variance, math.Max(eps, 1e-12))))
	y := graph.Mul(centred, spread(inv, x))
	return graph.Add(graph.Mul(y, rows(gain, n)), rows(bias, n))
}

// elementary holds the functions with two forms. smooth writes exp and tanh by
// expm1: Go's exp on amd64 is SSE assembly, which runs some 50 times slower
// after AVX code, as GoMLX's kernels of a GOEXPERIMENT=simd build are; expm1
// is plain Go. Absolute error 6e-8. Only pretraining, which such a build is
// for, uses it: programs for devices keep exp and tanh.
type elementary struct{ smooth bool }

func (f elementary) exp(x *graph.Node) *graph.Node {
	if !f.smooth {
		return graph.Exp(x)
	}
	y := graph.AddScalar(graph.StopGradient(graph.Expm1(x)), 1)
	return withSlope(y, x, y)
}

func (f elementary) tanh(x *graph.Node) *graph.Node {
	if !f.smooth {
		return graph.Tanh(x)
	}
	e := graph.AddScalar(graph.StopGradient(graph.Expm1(graph.MulScalar(x, 2))), 2) // e^2x + 1
	y := graph.AddScalar(graph.Div(graph.MulScalar(graph.OnesLike(x), -2), e), 1)
	return withSlope(y, x, graph.Sub(graph.OnesLike(y), graph.Mul(y, y)))
}

// withSlope is y, whose own dependence on x autodiff ignores, with dy/dx =
// slope: GoMLX has no gradient of expm1.
func withSlope(y, x, slope *graph.Node) *graph.Node {
	return graph.Add(graph.StopGradient(y), graph.Mul(graph.StopGradient(slope), graph.Sub(x, graph.StopGradient(x))))
}

// activation is the function that a configuration names. gelu has the tanh form
// ("gelu_new"), with x*x*x for the cube, the exact erf form ("gelu") and that of the
// logistic function ("quick_gelu").
func (f elementary) activation(x *graph.Node, act string) *graph.Node {
	switch act {
	case "tanh":
		return f.tanh(x)
	case "relu":
		return graph.Max(x, graph.ZerosLike(x))
	case "silu":
		return graph.Mul(x, graph.Sigmoid(x))
	case "quick_gelu":
		return graph.Mul(x, graph.Sigmoid(graph.MulScalar(x, 1.702)))
	}
	half := graph.MulScalar(x, 0.5)
	if act == "gelu" {
		return graph.Mul(half, graph.AddScalar(graph.Erf(graph.MulScalar(x, math.Sqrt2/2)), 1))
	}
	if f.smooth {
		return smoothGelu(x)
	}
	cube := graph.Mul(graph.Mul(x, x), x)
	inner := graph.MulScalar(graph.Add(x, graph.MulScalar(cube, 0.044715)), math.Sqrt(2/math.Pi))
	return graph.Mul(half, graph.AddScalar(f.tanh(inner), 1))
}

// smoothGelu is the tanh form with expm1 and its derivative written out, which
// takes half the operations of autodiff's.
func smoothGelu(x *graph.Node) *graph.Node {
	c0 := math.Sqrt(2 / math.Pi)
	z := graph.StopGradient(x)
	sq := graph.Mul(z, z)
	twice := graph.Mul(z, graph.AddScalar(graph.MulScalar(sq, 2*c0*0.044715), 2*c0))
	// s = (1 + tanh u)/2 = 1 - 1/(e^2u + 1), so 1 - tanh^2 u = 4 s (1-s).
	s := graph.OneMinus(graph.Reciprocal(graph.AddScalar(graph.Expm1(twice), 2)))
	inner := graph.AddScalar(graph.MulScalar(sq, 6*c0*0.044715), 2*c0)
	slope := graph.Mul(s, graph.AddScalar(graph.Mul(graph.Mul(z, graph.OneMinus(s)), inner), 1))
	return withSlope(graph.Mul(z, s), x, slope)
}

// softmax over the last axis.
func (f elementary) softmax(x *graph.Node) *graph.Node {
	e := f.exp(graph.Sub(x, spread(graph.StopGradient(graph.ReduceMax(x, -1)), x)))
	return graph.Div(e, lastSum(e))
}

// inMemory is x, which has no gradient and is added to much that is larger: computed once, not wherever it is added.
func inMemory(x *graph.Node) *graph.Node { return graph.OptimizationBarrier(graph.StopGradient(x)) }

// attended is softmax(scores) v: scores [n,t,s] and v [n,s,d] give [n,t,d]. What is divided by the sums of exponentials is
// the result, which is smaller than the scores where texts are long; so the gradient of the scores needs no sum over them,
// either (Dao et al. 2022, section 3.1).
func (f elementary) attended(scores, v *graph.Node) *graph.Node {
	e := f.exp(graph.Sub(scores, spread(graph.StopGradient(graph.ReduceMax(scores, -1)), scores)))
	y := graph.DotGeneral(e, []int{2}, []int{0}, v, []int{1}, []int{0})
	sum := graph.ReduceSum(e, -1)
	return graph.Mul(y, spread(graph.Div(graph.OnesLike(sum), sum), y))
}

// surprise is -log softmax(logits)[label] [n]; logits [n,c], labels int32 [n].
func (f elementary) surprise(logits, labels *graph.Node) *graph.Node {
	g := logits.Graph()
	n, c := logits.Shape().Dimensions[0], logits.Shape().Dimensions[1]
	top := graph.StopGradient(graph.ReduceMax(logits, -1)) // [n]
	shifted := graph.Sub(logits, spread(top, logits))
	lse := graph.Log(graph.ReduceSum(f.exp(shifted), -1))
	class := graph.Iota(g, shapes.Make(dtypes.Int32, n, c), 1)
	hit := graph.ConvertDType(graph.Equal(class, spread(labels, logits)), dtypes.Float32)
	return graph.Sub(lse, graph.ReduceSum(graph.Mul(hit, shifted), -1))
}

// weightedMean is that of x's last axis.
func weightedMean(x, weights *graph.Node) *graph.Node {
	total := graph.ReduceSum(graph.Mul(weights, x), -1)
	return graph.Div(total, graph.AddScalar(graph.ReduceSum(weights, -1), 1e-9))
}

// adamDirection returns AdamW's bias-corrected direction and the new moments.
func adamDirection(grad, step, m, v *graph.Node) (dir, newM, newV *graph.Node) {
	newM = graph.Add(graph.MulScalar(m, adamBeta1), graph.MulScalar(grad, 1-adamBeta1))
	newV = graph.Add(graph.MulScalar(v, adamBeta2), graph.MulScalar(graph.Mul(grad, grad), 1-adamBeta2))
	correct := func(beta float64) *graph.Node { // 1 / (1 - beta^step)
		power := graph.Exp(graph.MulScalar(step, math.Log(beta)))
		one := graph.OnesLike(power)
		return graph.Div(one, graph.Sub(one, power))
	}
	mHat := scaleBy(newM, correct(adamBeta1))
	vHat := scaleBy(newV, correct(adamBeta2))
	return graph.Div(mHat, graph.AddScalar(graph.Sqrt(vHat), adamEps)), newM, newV
}
