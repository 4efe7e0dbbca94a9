package compiler_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/starling-fl/starling/wasm/compiler"
)

// eval runs one unary operation over xs.
func eval(t *testing.T, op unaryFn, xs []float32) []float32 {
	t.Helper()
	b := compiler.New()
	bl := b.Builder("f")
	fn := bl.Main()
	y := must(op(fn, must(fn.Parameter("x", shapes.Make(dtypes.Float32, len(xs)), nil))))
	if err := fn.Return([]compute.Value{y}, nil); err != nil {
		t.Fatal(err)
	}
	ex := must(bl.Compile())
	defer ex.Finalize()
	out := must(ex.Execute([]compute.Buffer{must(b.BufferFromFlatData(0, xs, shapes.Make(dtypes.Float32, len(xs))))}, nil, 0))
	return flatten(t, out[0]).([]float32)
}

// ulps is the distance of got from the exact value, in units in the last place of the exact value's float32.
func ulps(got float32, exact float64) float64 {
	e := float32(exact)
	next := math.Nextafter32(e, float32(math.Inf(1)))
	if math.IsInf(float64(next), 0) {
		next = math.Nextafter32(e, 0)
	}
	return math.Abs(float64(got)-exact) / math.Abs(float64(next)-float64(e))
}

// TestVectorMath holds the elementary functions to the errors that codegen states. The arguments are spread evenly
// over the bit patterns of the range, with single elements (not a multiple of four) at the end.
func TestVectorMath(t *testing.T) {
	for _, c := range []struct {
		name   string
		op     unaryFn
		exact  func(float64) float64
		lo, hi float32
		max    float64 // ulp
	}{
		{"exp", compute.Function.Exp, math.Exp, -87, 88.7, 1},
		{"log", compute.Function.Log, math.Log, 2e-38, 3e38, 1},
		{"tanh", compute.Function.Tanh, math.Tanh, -12, 12, 6},
		{"erf", compute.Function.Erf, math.Erf, -6, 6, 7},
		{"logistic", compute.Function.Logistic, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, -80, 80, 2.2},
		{"expm1", compute.Function.Expm1, math.Expm1, -80, 80, 0.6},
		{"log1p", compute.Function.Log1p, math.Log1p, -0.9999, 1e30, 0.6},
		{"sin", compute.Function.Sin, math.Sin, -1e4, 1e4, 0.6},
		{"cos", compute.Function.Cos, math.Cos, -1e4, 1e4, 0.6},
	} {
		rnd := rand.New(rand.NewPCG(1, 2))
		xs := make([]float32, 40003)
		for i := range xs {
			// Exponents evenly: small arguments are tried as often as large ones.
			for {
				x := math.Float32frombits(rnd.Uint32())
				if x >= c.lo && x <= c.hi && math.Abs(float64(x)) > 1e-30 {
					xs[i] = x
					break
				}
			}
			if i%2 == 0 {
				xs[i] = c.lo + (c.hi-c.lo)*rnd.Float32()
			}
		}
		worst, at := 0.0, float32(0)
		for i, y := range eval(t, c.op, xs) {
			if e := ulps(y, c.exact(float64(xs[i]))); e > worst {
				worst, at = e, xs[i]
			}
		}
		t.Logf("%-8s %.3g ulp at %g", c.name, worst, at)
		if worst > c.max {
			t.Errorf("%s: error of %.3g ulp at %g, stated %.3g", c.name, worst, at, c.max)
		}
	}
}

// TestVectorMathEdges tries the ends of the functions.
func TestVectorMathEdges(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		name string
		op   unaryFn
		x, y float32
	}{
		{"exp", compute.Function.Exp, inf, inf}, {"exp", compute.Function.Exp, -inf, 0}, {"exp", compute.Function.Exp, 89, inf},
		{"exp", compute.Function.Exp, -100, 3.783506e-44}, {"exp", compute.Function.Exp, 0, 1}, {"exp", compute.Function.Exp, nan, nan},
		{"log", compute.Function.Log, 0, -inf}, {"log", compute.Function.Log, -1, nan}, {"log", compute.Function.Log, inf, inf},
		{"log", compute.Function.Log, nan, nan}, {"log", compute.Function.Log, 1, 0}, {"log", compute.Function.Log, 1e-44, -101.33302},
		{"tanh", compute.Function.Tanh, inf, 1}, {"tanh", compute.Function.Tanh, -inf, -1}, {"tanh", compute.Function.Tanh, nan, nan},
		{"erf", compute.Function.Erf, inf, 1}, {"erf", compute.Function.Erf, -inf, -1}, {"erf", compute.Function.Erf, nan, nan},
		{"logistic", compute.Function.Logistic, -inf, 0}, {"logistic", compute.Function.Logistic, inf, 1},
		{"log1p", compute.Function.Log1p, -1, -inf}, {"log1p", compute.Function.Log1p, -2, nan}, {"log1p", compute.Function.Log1p, inf, inf},
		{"expm1", compute.Function.Expm1, inf, inf}, {"expm1", compute.Function.Expm1, -inf, -1},
		{"sign", compute.Function.Sign, -3, -1}, {"sign", compute.Function.Sign, 0, 0}, {"sign", compute.Function.Sign, nan, nan},
	} {
		xs := []float32{c.x, c.x, c.x, c.x, c.x} // a vector and a single element
		for i, y := range eval(t, c.op, xs) {
			same := y == c.y || y != y && c.y != c.y || math.Abs(float64(y-c.y)) < 1e-6*math.Abs(float64(c.y))
			if !same {
				t.Errorf("%s(%v) = %v in place %d, want %v", c.name, c.x, y, i, c.y)
			}
		}
	}
}

// TestExpUnderflows walks all float32 from where results are denormal numbers to where they are zeros: each is right to
// one unit of theirs, and a zero is +0.
func TestExpUnderflows(t *testing.T) {
	const unit = 0x1p-149
	var xs []float32
	for x := float32(-103.5); x > -104.2; x = math.Nextafter32(x, -200) {
		xs = append(xs, x)
	}
	xs = append(xs, -1e4, -math.MaxFloat32, float32(math.Inf(-1)))
	for i, y := range eval(t, compute.Function.Exp, xs) {
		if e := math.Abs(float64(y) - math.Exp(float64(xs[i]))); e > unit || math.Signbit(float64(y)) {
			t.Fatalf("exp(%v) = %v, %g units off", xs[i], y, e/unit)
		}
		if xs[i] <= -104 && math.Float32bits(y) != 0 {
			t.Fatalf("exp(%v) = %v, want +0", xs[i], y)
		}
	}
}

// TestPow tries the special cases of powers.
func TestPow(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	xs := []float32{2, -2, -2, 0, 0, 5, nan, -8, 1, 2, 0.5, inf, 9, 1.5}
	ys := []float32{10, 3, 0.5, 2, -1, 0, 1, 2, nan, -149, 149, 2, 0.5, 30}
	b := compiler.New()
	bl := b.Builder("pow")
	fn := bl.Main()
	shape := shapes.Make(dtypes.Float32, len(xs))
	p := must(fn.Pow(must(fn.Parameter("x", shape, nil)), must(fn.Parameter("y", shape, nil))))
	if err := fn.Return([]compute.Value{p}, nil); err != nil {
		t.Fatal(err)
	}
	ex := must(bl.Compile())
	defer ex.Finalize()
	out := must(ex.Execute([]compute.Buffer{must(b.BufferFromFlatData(0, xs, shape)), must(b.BufferFromFlatData(0, ys, shape))}, nil, 0))
	for i, got := range flatten(t, out[0]).([]float32) {
		want := float32(math.Pow(float64(xs[i]), float64(ys[i])))
		if got != want && (got == got || want == want) && math.Abs(float64(got-want)) > 1e-7*math.Abs(float64(want)) {
			t.Errorf("%v^%v = %v, want %v", xs[i], ys[i], got, want)
		}
	}
}
