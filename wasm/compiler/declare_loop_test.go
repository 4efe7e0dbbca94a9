package compiler_test

import (
	"math"
	"math/rand/v2"
	"os/exec"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler"
)

// loopCases are graphs of two float32 tensors and one of int32, [321, 301], that make one declared loop or more.
var loopCases = map[string]func(x, y, i *Node) *Node{
	"neg":      func(x, y, i *Node) *Node { return Sub(Neg(x), Abs(y)) },
	"sqrt":     func(x, y, i *Node) *Node { return Add(Sqrt(x), Rsqrt(y)) },
	"exp":      func(x, y, i *Node) *Node { return Exp(x) },
	"log":      func(x, y, i *Node) *Node { return Log(x) },
	"tanh":     func(x, y, i *Node) *Node { return Tanh(x) },
	"erf":      func(x, y, i *Node) *Node { return Erf(x) },
	"logistic": func(x, y, i *Node) *Node { return Sigmoid(x) },
	"sign":     func(x, y, i *Node) *Node { return Mul(Sign(x), y) },
	"round":    func(x, y, i *Node) *Node { return Add(Floor(x), Mul(Ceil(y), Round(x))) },
	"div":      func(x, y, i *Node) *Node { return Div(x, y) },
	"max":      func(x, y, i *Node) *Node { return Sub(Max(x, y), Min(y, x)) },
	"min":      func(x, y, i *Node) *Node { return Min(Max(x, ScalarZero(x.Graph(), x.DType())), y) },
	"finite":   func(x, y, i *Node) *Node { return Where(IsFinite(x), x, y) },
	"nan":      func(x, y, i *Node) *Node { return Where(IsNaN(x), y, x) },
	"compare": func(x, y, i *Node) *Node {
		return Add(Where(LessThan(x, y), x, y), Where(GreaterOrEqual(x, y), x, Where(Equal(x, y), y, x)))
	},
	"compare more": func(x, y, i *Node) *Node {
		return Add(Where(LessOrEqual(x, y), x, y), Where(GreaterThan(x, y), x, Where(NotEqual(x, y), y, x)))
	},
	"truths": func(x, y, i *Node) *Node {
		a, b := LessThan(x, y), GreaterThan(Abs(x), Abs(y))
		return Add(ConvertDType(LogicalAnd(a, LogicalNot(b)), dtypes.Float32), ConvertDType(LogicalXor(a, LogicalOr(a, b)), dtypes.Float32))
	},
	"constant truths": func(x, y, i *Node) *Node {
		every := BroadcastToShape(Const(x.Graph(), []bool{true}), LessThan(x, y).Shape())
		return Where(LogicalXor(LessThan(x, y), every), Exp(x), y)
	},
	"integers": func(x, y, i *Node) *Node {
		j := ConvertDType(x, dtypes.Int32)
		k := Max(Sub(Mul(i, j), Abs(i)), Min(Neg(j), i))
		return ConvertDType(Where(LessThan(k, j), BitwiseXor(k, i), BitwiseAnd(BitwiseOr(k, j), BitwiseNot(i))), dtypes.Float32)
	},
	"integers compared": func(x, y, i *Node) *Node {
		j := ConvertDType(y, dtypes.Int32)
		a, b := LogicalOr(Equal(i, j), GreaterThan(i, j)), LogicalAnd(LessOrEqual(i, j), NotEqual(i, j))
		return Where(a, x, Where(LogicalAnd(b, GreaterOrEqual(j, i)), y, ConvertDType(a, dtypes.Float32)))
	},
	"rows": func(x, y, i *Node) *Node {
		return Div(Exp(Sub(x, ReduceAndKeep(x, ReduceMax, -1))), ReduceAndKeep(y, ReduceSum, -1))
	},
	"columns": func(x, y, i *Node) *Node {
		return Mul(x, BroadcastToShape(ExpandAxes(ReduceSum(Mul(x, y), 0), 0), x.Shape()))
	},
	"row sums": func(x, y, i *Node) *Node { return ReduceSum(Mul(x, y), 1) },
	"sum":      func(x, y, i *Node) *Node { return ReduceAllSum(Mul(x, y)) },
	"products": func(x, y, i *Node) *Node {
		return ReduceMultiply(Add(Mul(x, Scalar(x.Graph(), x.DType(), .01)), ScalarOne(x.Graph(), x.DType())), 1)
	},
	"least":        func(x, y, i *Node) *Node { return ReduceMin(Add(x, y), 1) },
	"least column": func(x, y, i *Node) *Node { return ReduceMin(Add(x, y), 0) },
	"rows of 7":    func(x, y, i *Node) *Node { return ReduceSum(Reshape(Mul(x, y), 321, 43, 7), 2) },
	"rows of 43":   func(x, y, i *Node) *Node { return ReduceSum(Reshape(Mul(x, y), 321, 7, 43), 2) },
	"rows of 3":    func(x, y, i *Node) *Node { return ReduceMax(Reshape(Mul(x, y), 107, 301, 3), 2) },
	"two axes":     func(x, y, i *Node) *Node { return ReduceSum(Reshape(Mul(x, y), 321, 7, 43), 0, 2) },
	"middle":       func(x, y, i *Node) *Node { return ReduceSum(Reshape(Mul(x, y), 321, 7, 43), 1) },
	"transposed":   func(x, y, i *Node) *Node { return Sub(Transpose(x, 0, 1), Transpose(Mul(x, y), 0, 1)) },
	"slices": func(x, y, i *Node) *Node {
		return Mul(Slice(x, AxisRange(3), AxisRange(1)), Slice(y, AxisRange(0, 318), AxisRange(0, 300)))
	},
	"strides": func(x, y, i *Node) *Node {
		every := func(x *Node) *Node { return Slice(x, AxisRange(), AxisRange().Stride(2)) }
		return Mul(Tanh(every(x)), every(Reverse(y, 1)))
	},
	"reversed": func(x, y, i *Node) *Node { return Mul(Reverse(x, 0, 1), y) },
}

// TestLoopsEqualTwins holds the operations that declared loops may have, on every kernel and on one and two cores, against
// the program's own code, bit for bit, on ordinary values and on those at which arithmetic that is nearly right shows.
func TestLoopsEqualTwins(t *testing.T) {
	const rows, cols = 321, 301
	extreme := []uint32{0, 1 << 31, 0x7f800000, 0xff800000, 0x7fc00000, 1, 0x80000001, 0x007fffff, 0x00800000, 0x7f7fffff,
		0xff7fffff, 0x3f800000, 0xbf800001, 0x42b20000, 0xc2d00000, 0xc2cfffff, 0x4f000000, 0xcf000000, 0x3f000000, 0x40200000}
	for name, build := range loopCases {
		t.Run(name, func(t *testing.T) {
			dims := -1
			bin, err := compiler.Compile(func(g *Graph) []*Node {
				x := Parameter(g, "x", shapes.Make(dtypes.Float32, rows, cols))
				y := Parameter(g, "y", shapes.Make(dtypes.Float32, rows, cols))
				i := Parameter(g, "i", shapes.Make(dtypes.Int32, rows, cols))
				z := build(x, y, i)
				dims = z.Shape().Size()
				return []*Node{z}
			}, compiler.Spec{Host: compiler.HostWazero, Outputs: []compiler.Output{{Name: "z"}}})
			if err != nil {
				t.Fatal(err)
			}
			for _, share := range []float64{0, .01, .5} {
				rnd := rand.New(rand.NewPCG(uint64(len(name)), 9))
				draw := func(scale float64) []float32 {
					v := make([]float32, rows*cols)
					for i := range v {
						v[i] = float32(rnd.NormFloat64() * scale)
						if rnd.Float64() < share {
							v[i] = math.Float32frombits(extreme[rnd.IntN(len(extreme))])
						}
					}
					return v
				}
				x, y, ints := draw(3), draw(1), make([]int32, rows*cols)
				for i := range ints {
					ints[i] = int32(rnd.IntN(9) - 4)
					if rnd.Float64() < share {
						ints[i] = int32(rnd.Uint32())
					}
				}
				run := func(cfg wasm.Config) []float32 {
					in := instance(t, bin, &step{}, cfg)
					if len(in.Program().Manifest().Loops) == 0 {
						t.Fatal("no loop is declared")
					}
					for _, err := range []error{in.WriteFloat32("x", x), in.WriteFloat32("y", y), in.WriteInt32("i", ints), in.Step(t.Context())} {
						if err != nil {
							t.Fatal(err)
						}
					}
					z := make([]float32, dims)
					if err := in.ReadFloat32("z", z); err != nil {
						t.Fatal(err)
					}
					return z
				}
				want := run(wasm.Config{Kernel: wasm.Twin})
				for _, kernel := range wasm.Kernels() {
					for _, cores := range []int{1, 2} {
						for i, v := range run(wasm.Config{Kernel: kernel, Cores: cores}) {
							if math.Float32bits(v) != math.Float32bits(want[i]) && (v == v || want[i] == want[i]) {
								t.Fatalf("extreme %v, %s on %d cores: element %d is %v (%#x), its twin's %v (%#x)", share, kernel, cores, i,
									v, math.Float32bits(v), want[i], math.Float32bits(want[i]))
							}
						}
					}
				}
			}
		})
	}
}

// TestHostsAgreeOnLoops trains 20 steps of a program that declares loops of every kind, on the kernels that have loops, on
// those that have not, on its own code and in V8: the state must be the same to the last bit.
func TestHostsAgreeOnLoops(t *testing.T) {
	b := bertToy
	b.hidden, b.heads, b.ffn, b.seq, b.batch, b.rank, b.optimizer = 64, 2, 128, 32, 16, 4, "adamw"
	for name, fused := range map[string]bool{"exact": false, "fused": true} {
		t.Run(name, func(t *testing.T) {
			bin, s := compile(t, b, compiler.HostWazero, fused)
			for _, p := range s.params {
				if p.Name == "learning_rate" {
					p.f32[0] = 0.05
				}
			}
			kernels := wasm.Kernels()
			if fused {
				kernels = wasm.FusedKernels()
			}
			want := steps(t, instance(t, bin, s, wasm.Config{Kernel: kernels[len(kernels)-1]}), 20)
			for _, kernel := range kernels {
				for _, cores := range []int{1, 2} {
					in := instance(t, bin, s, wasm.Config{Kernel: kernel, Cores: cores})
					if n := len(in.Program().Manifest().Bodies); n < 10 {
						t.Fatalf("only %d kinds of loops are declared", n)
					}
					if got := steps(t, in, 20); got != want {
						t.Errorf("%s on %d cores: state %s, want %s", kernel, cores, got, want)
					}
				}
			}
			v8, _ := compile(t, b, compiler.HostV8, fused)
			r, err := wasm.Verify(v8, wasm.Limits{})
			if err != nil || len(r.Manifest.Loops) > 0 {
				t.Fatalf("%d loops are declared to browsers, which have no use for them; %v", len(r.Manifest.Loops), err)
			}
			var flags []string
			if fused {
				node, err := exec.LookPath("node")
				if err != nil {
					t.Skip("node is not installed: V8 not compared")
				}
				ok := false
				if flags, ok = relaxedFlags(t, node); !ok {
					t.Skip("this node has no fused relaxed SIMD")
				}
			}
			if got := nodeSteps(t, v8, instance(t, bin, s, wasm.Config{}), 20, 1, flags...); got != want {
				t.Errorf("V8: state %s, want %s", got, want)
			}
		})
	}
}
