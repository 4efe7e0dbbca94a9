package compiler_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/starling-fl/starling/wasm/compiler"
)

// gen makes random graphs through the backend API, the same on any backend: it is seeded anew for each.
type gen struct {
	*rand.Rand
	fn     compute.Function
	b      compute.Backend
	inputs []compute.Buffer
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (g *gen) dims(rank int) []int {
	d := make([]int, rank)
	for i := range d {
		d[i] = []int{1, 2, 3, 4, 5, 7, 8, 16, 19, 33}[g.IntN(10)]
	}
	return d
}

func size(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// float adds a float32 input with values in [lo, hi).
func (g *gen) float(lo, hi float64, dims ...int) compute.Value {
	v := make([]float32, size(dims))
	for i := range v {
		v[i] = float32(lo + (hi-lo)*g.Float64())
	}
	return g.input(v, shapes.Make(dtypes.Float32, dims...))
}

func (g *gen) ints(lo, hi int, dims ...int) compute.Value {
	v := make([]int32, size(dims))
	for i := range v {
		v[i] = int32(lo + g.IntN(hi-lo))
	}
	return g.input(v, shapes.Make(dtypes.Int32, dims...))
}

func (g *gen) longs(lo, hi int, dims ...int) compute.Value {
	v := make([]int64, size(dims))
	for i := range v {
		v[i] = int64(lo + g.IntN(hi-lo))
	}
	return g.input(v, shapes.Make(dtypes.Int64, dims...))
}

func (g *gen) bools(dims ...int) compute.Value {
	v := make([]bool, size(dims))
	for i := range v {
		v[i] = g.IntN(2) == 0
	}
	return g.input(v, shapes.Make(dtypes.Bool, dims...))
}

func (g *gen) input(flat any, shape shapes.Shape) compute.Value {
	g.inputs = append(g.inputs, must(g.b.BufferFromFlatData(0, flat, shape)))
	return must(g.fn.Parameter(fmt.Sprintf("x%d", len(g.inputs)), shape, nil))
}

func (g *gen) shape(v compute.Value) []int { return must(g.fn.Shape(v)).Dimensions }

// view applies a random view to a value.
func (g *gen) view(x compute.Value) compute.Value {
	d := g.shape(x)
	switch g.IntN(5) {
	case 0:
		perm := g.Perm(len(d))
		return must(g.fn.Transpose(x, perm...))
	case 1:
		starts, limits, strides := make([]int, len(d)), make([]int, len(d)), make([]int, len(d))
		for i, n := range d {
			starts[i] = g.IntN(n)
			limits[i] = starts[i] + 1 + g.IntN(n-starts[i])
			strides[i] = 1 + g.IntN(2)
		}
		return must(g.fn.Slice(x, starts, limits, strides))
	case 2: // merge or split axes
		if len(d) > 1 && g.IntN(2) == 0 {
			return must(g.fn.Reshape(x, append([]int{d[0] * d[1]}, d[2:]...)...))
		}
		for i, n := range d {
			if n%2 == 0 {
				return must(g.fn.Reshape(x, append(append(append([]int{}, d[:i]...), 2, n/2), d[i+1:]...)...))
			}
		}
		return x
	case 3:
		out := append([]int{1 + g.IntN(3)}, d...)
		axes := make([]int, len(d))
		for i := range axes {
			axes[i] = i + 1
		}
		s := must(g.fn.Shape(x)).Clone()
		return must(g.fn.BroadcastInDim(x, shapes.Make(s.DType, out...), axes))
	default:
		return must(g.fn.Reverse(x, g.IntN(len(d))))
	}
}

type unaryFn = func(compute.Function, compute.Value) (compute.Value, error)
type binaryFn = func(compute.Function, compute.Value, compute.Value) (compute.Value, error)
type reduceFn = func(compute.Function, compute.Value, ...int) (compute.Value, error)

// cases builds one random graph for each operation, and mixtures of them.
var cases = func() map[string]func(g *gen) compute.Value {
	m := map[string]func(g *gen) compute.Value{}
	unary := func(name string, f unaryFn, lo, hi float64) {
		m[name] = func(g *gen) compute.Value {
			return must(f(g.fn, g.float(lo, hi, g.dims(1+g.IntN(3))...)))
		}
	}
	unary("Abs", compute.Function.Abs, -3, 3)
	unary("Neg", compute.Function.Neg, -3, 3)
	unary("Sign", compute.Function.Sign, -3, 3)
	unary("Exp", compute.Function.Exp, -20, 20)
	unary("Expm1", compute.Function.Expm1, -2, 2)
	unary("Log", compute.Function.Log, 1e-6, 50)
	unary("Log1p", compute.Function.Log1p, -0.9, 5)
	unary("Tanh", compute.Function.Tanh, -6, 6)
	unary("Erf", compute.Function.Erf, -5, 5)
	unary("Logistic", compute.Function.Logistic, -20, 20)
	unary("Sqrt", compute.Function.Sqrt, 0, 9)
	unary("Rsqrt", compute.Function.Rsqrt, 0.1, 9)
	unary("Sin", compute.Function.Sin, -30, 30)
	unary("Cos", compute.Function.Cos, -30, 30)
	unary("Floor", compute.Function.Floor, -9, 9)
	unary("Ceil", compute.Function.Ceil, -9, 9)
	unary("Round", compute.Function.Round, -9, 9)
	unary("IsFinite", compute.Function.IsFinite, -9, 9)
	unary("IsNaN", compute.Function.IsNaN, -9, 9)
	for name, f := range map[string]binaryFn{"Add": compute.Function.Add, "Sub": compute.Function.Sub, "Mul": compute.Function.Mul,
		"Div": compute.Function.Div, "Max": compute.Function.Max, "Min": compute.Function.Min, "Pow": compute.Function.Pow,
		"Rem": compute.Function.Rem, "LessThan": compute.Function.LessThan, "GreaterOrEqual": compute.Function.GreaterOrEqual} {
		m[name] = func(g *gen) compute.Value {
			d := g.dims(1 + g.IntN(3))
			e := append([]int{}, d...)
			if g.IntN(2) == 0 {
				e[g.IntN(len(e))] = 1
			}
			return must(f(g.fn, g.float(0.5, 4, d...), g.float(0.5, 4, e...)))
		}
		if name != "Pow" {
			m["int"+name] = func(g *gen) compute.Value {
				d := g.dims(2)
				return must(f(g.fn, g.ints(-50, 50, d...), g.ints(1, 9, d...)))
			}
			m["long"+name] = func(g *gen) compute.Value {
				d := g.dims(2)
				return must(f(g.fn, g.longs(-50, 50, d...), g.longs(1, 9, d...)))
			}
		}
	}
	for name, f := range map[string]binaryFn{"BitwiseAnd": compute.Function.BitwiseAnd, "BitwiseOr": compute.Function.BitwiseOr,
		"BitwiseXor": compute.Function.BitwiseXor, "ShiftLeft": compute.Function.ShiftLeft,
		"ShiftRightArithmetic": compute.Function.ShiftRightArithmetic, "ShiftRightLogical": compute.Function.ShiftRightLogical} {
		m[name] = func(g *gen) compute.Value {
			d := g.dims(2)
			return must(f(g.fn, g.ints(-500, 500, d...), g.ints(0, 31, d...)))
		}
	}
	for name, f := range map[string]reduceFn{"ReduceSum": compute.Function.ReduceSum, "ReduceMax": compute.Function.ReduceMax,
		"ReduceMin": compute.Function.ReduceMin, "ReduceProduct": compute.Function.ReduceProduct} {
		m[name] = func(g *gen) compute.Value {
			x := g.float(0.8, 1.2, g.dims(1+g.IntN(3))...)
			if g.IntN(2) == 0 {
				x = g.view(x)
			}
			axes := g.Perm(len(g.shape(x)))
			return must(f(g.fn, x, axes[:1+g.IntN(len(axes))]...))
		}
	}
	m["ReduceLogicalAnd"] = func(g *gen) compute.Value { return must(g.fn.ReduceLogicalAnd(g.bools(g.dims(2)...), 1)) }
	m["Where"] = func(g *gen) compute.Value {
		d := g.dims(2)
		return must(g.fn.Where(g.bools(d...), g.float(-1, 1, d...), g.float(-1, 1)))
	}
	m["ConvertDType"] = func(g *gen) compute.Value {
		d := g.dims(2)
		to := []dtypes.DType{dtypes.Int32, dtypes.Int64, dtypes.Float32}[g.IntN(3)]
		switch g.IntN(4) {
		case 0:
			return must(g.fn.ConvertDType(g.float(-9, 9, d...), to))
		case 1:
			return must(g.fn.ConvertDType(g.ints(-9, 9, d...), to))
		case 2:
			return must(g.fn.ConvertDType(g.longs(-9, 9, d...), to))
		}
		return must(g.fn.ConvertDType(g.bools(d...), to))
	}
	m["Iota"] = func(g *gen) compute.Value {
		d := g.dims(3)
		x := must(g.fn.Iota(shapes.Make(dtypes.Float32, d...), g.IntN(3)))
		return g.view(must(g.fn.Add(x, g.float(0, 1, d...))))
	}
	m["Views"] = func(g *gen) compute.Value {
		x := g.float(-1, 1, g.dims(2+g.IntN(2))...)
		for range 4 {
			x = g.view(x)
			if g.IntN(3) == 0 {
				x = must(g.fn.Mul(x, x))
			}
		}
		return x
	}
	m["Pad"] = func(g *gen) compute.Value {
		d := g.dims(2)
		return must(g.fn.Pad(must(g.fn.Transpose(g.float(-1, 1, d...), 1, 0)), g.float(5, 6), compute.PadAxis{Start: g.IntN(3), End: g.IntN(3), Interior: g.IntN(2)},
			compute.PadAxis{Start: g.IntN(3), End: g.IntN(3), Interior: g.IntN(3)}))
	}
	m["Concatenate"] = func(g *gen) compute.Value {
		a := g.dims(3)
		b := append([]int{}, a...)
		axis := g.IntN(3)
		b[axis] = 5
		return must(g.fn.Concatenate(axis, g.float(-1, 1, a...), must(g.fn.Exp(g.float(-1, 1, b...))), g.float(-1, 1, a...)))
	}
	m["DotGeneral"] = func(g *gen) compute.Value { // random placement of batch, free and contracted axes
		batch, contract, free := g.IntN(3), 1+g.IntN(2), g.IntN(3)
		bd, cd := g.dims(batch), g.dims(contract)
		for i := range bd {
			bd[i] = min(bd[i], 5)
		}
		for i := range cd {
			cd[i] = min(cd[i], 19)
		}
		side := func() (compute.Value, []int, []int) {
			fd := g.dims(free)
			for i := range fd {
				fd[i] = min(fd[i], 19)
			}
			all := append(append(append([]int{}, bd...), cd...), fd...)
			perm := g.Perm(len(all))
			dims := make([]int, len(all))
			at := make([]int, len(all))
			for i, p := range perm {
				dims[i] = all[p]
				at[p] = i
			}
			return g.float(-1, 1, dims...), at[batch : batch+contract], at[:batch]
		}
		l, lc, lb := side()
		r, rc, rb := side()
		return must(g.fn.DotGeneral(l, lc, lb, r, rc, rb, compute.DotGeneralConfig{}))
	}
	m["DotLarge"] = func(g *gen) compute.Value { // blocks of k and of columns, with tails
		x, y := g.float(-1, 1, 9, 530), g.float(-1, 1, 530, 523)
		return must(g.fn.DotGeneral(x, []int{1}, nil, y, []int{0}, nil, compute.DotGeneralConfig{}))
	}
	m["Gather"] = func(g *gen) compute.Value {
		rows, cols := 2+g.IntN(9), 1+g.IntN(9)
		idx := g.ints(0, rows, 3, 4, 1)
		return must(g.fn.Gather(g.float(-1, 1, rows, cols), idx, 2, []int{2}, []int{0}, []int{0}, []int{1, cols}, false))
	}
	m["GatherWindow"] = func(g *gen) compute.Value {
		return must(g.fn.Gather(g.float(-1, 1, 6, 7, 5), g.longs(0, 4, 2, 8), 0, []int{0, 2, 3}, nil, []int{2, 0}, []int{3, 7, 2}, false))
	}
	m["ScatterSum"] = func(g *gen) compute.Value {
		rows, cols, n := 2+g.IntN(9), 1+g.IntN(9), 1+g.IntN(30)
		return must(g.fn.ScatterSum(g.float(-1, 1, rows, cols), g.ints(0, rows, n, 1), g.float(-1, 1, n, cols), 1, []int{1}, []int{0}, []int{0}, false, false))
	}
	m["ArgMinMax"] = func(g *gen) compute.Value {
		return must(g.fn.ArgMinMax(g.float(-1, 1, g.dims(3)...), g.IntN(3), dtypes.Int32, g.IntN(2) == 0))
	}
	m["ReduceWindow"] = func(g *gen) compute.Value {
		return must(g.fn.ReduceWindow(g.float(-1, 1, 2, 9, 8), compute.ReduceOpMax, []int{1, 3, 2}, []int{1, 2, 1}, nil, []int{1, 1, 2}, [][2]int{{0, 0}, {1, 1}, {0, 1}}))
	}
	m["Wide"] = func(g *gen) compute.Value { // more operands than a function takes parameters
		y := g.float(-1, 1, 6, 6)
		for i := range 24 {
			x := g.float(-1, 1, 6, 6)
			y = must(g.fn.Mul(must(g.fn.Add(y, x)), must(g.fn.Transpose(x, 1, 0))))
			if i%5 == 0 {
				y = must(g.fn.Add(y, must(g.fn.Reverse(x, 0))))
			}
		}
		return y
	}
	m["WideReduce"] = func(g *gen) compute.Value {
		xs := make([]compute.Value, 9)
		y := g.float(-1, 1, 5, 6)
		for i := range xs {
			xs[i] = g.float(-1, 1, 5, 6)
			y = must(g.fn.Add(y, must(g.fn.Mul(xs[i], must(g.fn.Reverse(xs[i], 1))))))
		}
		return must(g.fn.ReduceSum(y, 1))
	}
	m["Softmax"] = func(g *gen) compute.Value {
		x := g.float(-3, 3, g.dims(2)...)
		d := g.shape(x)
		spread := func(v compute.Value) compute.Value {
			return must(g.fn.BroadcastInDim(v, shapes.Make(dtypes.Float32, d...), []int{0}))
		}
		e := must(g.fn.Exp(must(g.fn.Sub(x, spread(must(g.fn.ReduceMax(x, 1)))))))
		return must(g.fn.Div(e, spread(must(g.fn.ReduceSum(e, 1)))))
	}
	return m
}()

// TestOperations holds every operation on random shapes against the pure-Go backend.
func TestOperations(t *testing.T) {
	ref := goBackend(t)
	ours := compiler.New()
	for name, build := range cases {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(6) {
				run := func(b compute.Backend) any {
					defer func() {
						if r := recover(); r != nil {
							t.Fatalf("seed %d: %v on %s", seed, r, b.Name())
						}
					}()
					bl := b.Builder(name)
					g := &gen{Rand: rand.New(rand.NewPCG(seed, 1)), fn: bl.Main(), b: b}
					y := build(g)
					if err := g.fn.Return([]compute.Value{y}, nil); err != nil {
						t.Fatal(err)
					}
					ex, err := bl.Compile()
					if err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					defer ex.Finalize()
					out, err := ex.Execute(g.inputs, nil, 0)
					if err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					return flatten(t, out[0])
				}
				want, got := run(ref), run(ours)
				compare(t, seed, got, want)
			}
		})
	}
}

func flatten(t *testing.T, b compute.Buffer) any {
	shape := must(b.Shape())
	var flat any
	switch n := shape.Size(); shape.DType {
	case dtypes.Float32:
		flat = make([]float32, n)
	case dtypes.Int32:
		flat = make([]int32, n)
	case dtypes.Int64:
		flat = make([]int64, n)
	default:
		flat = make([]bool, n)
	}
	if err := b.ToFlatData(flat); err != nil {
		t.Fatal(err)
	}
	return flat
}

func compare(t *testing.T, seed uint64, got, want any) {
	t.Helper()
	g, ok := got.([]float32)
	if !ok {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("seed %d: got %v, want %v", seed, got, want)
		}
		return
	}
	w := want.([]float32)
	if len(g) != len(w) {
		t.Fatalf("seed %d: %d values, want %d", seed, len(g), len(w))
	}
	for i := range g {
		if e := math.Abs(float64(g[i] - w[i])); !(e <= 1e-5*math.Max(1, math.Abs(float64(w[i])))) {
			t.Fatalf("seed %d: element %d is %v, want %v", seed, i, g[i], w[i])
		}
	}
}
