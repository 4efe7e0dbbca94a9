package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/starling-fl/starling/internal/cputime"
)

// sketch builds a loop over a tensor: its operands follow each other in memory, each as large as its axes.
type sketch struct {
	Loop
	words int
}

func newSketch(sizes ...int) *sketch { return &sketch{Loop: Loop{Sizes: sizes, Kept: len(sizes)}} }

// operand is memory that moves with the axes of which along is true; all of them where along is empty.
func (s *sketch) operand(along ...bool) Operand {
	o := Operand{At: 4 * s.words, Strides: make([]int, len(s.Sizes))}
	n := 1
	for i := len(s.Sizes) - 1; i >= 0; i-- {
		if len(along) == 0 || along[i] {
			o.Strides[i] = n
			n *= s.Sizes[i]
		}
	}
	s.words += n + 16
	return o
}

func (s *sketch) step(op Op, in ...int) int {
	st := Step{Op: op}
	copy(st.In[:], in)
	s.Steps = append(s.Steps, st)
	return len(s.Steps) - 1
}

func (s *sketch) leaf(along ...bool) int {
	s.Leaves = append(s.Leaves, s.operand(along...))
	s.Steps = append(s.Steps, Step{Op: Load, Leaf: len(s.Leaves) - 1})
	return len(s.Steps) - 1
}

func (s *sketch) number(x float32) int {
	s.Steps = append(s.Steps, Step{Op: Const, Bits: math.Float32bits(x)})
	return len(s.Steps) - 1
}

func (s *sketch) store(value int) *sketch {
	s.Outs = append(s.Outs, Result{s.operand(), value})
	return s
}

// update stores a value in place of a leaf.
func (s *sketch) update(load, value int) *sketch {
	s.Outs = append(s.Outs, Result{s.Leaves[s.Steps[load].Leaf], value})
	return s
}

// reduce reduces over all axes but the first kept ones.
func (s *sketch) reduce(op Op, order Order, kept, value int) *sketch {
	s.Reduce, s.Order, s.Kept = op, order, kept
	along := make([]bool, len(s.Sizes))
	for i := range kept {
		along[i] = true
	}
	s.Outs = []Result{{s.operand(along...), value}}
	return s
}

// inner is the inner part of GELU's approximation by tanh: sqrt(2/pi) * (x + 0.044715 x^3).
func (s *sketch) inner(x int) int {
	cube := s.step(Mul, s.step(Mul, x, x), x)
	return s.step(Mul, s.number(0.7978846), s.step(Add, x, s.step(Mul, s.number(0.044715), cube)))
}

// workloads are loops of training, at the shapes of a tiny BERT (512 tokens, 128 wide, 512 between) and of BERT-small
// (512 wide, 2048 between).
var workloads = []struct {
	name string
	loop func() *sketch
}{
	{"gelu/512x512", func() *sketch { return gelu(512, 512) }},
	{"gelu/512x2048", func() *sketch { return gelu(512, 2048) }},
	{"gelu-gradient/512x512", func() *sketch { return geluGradient(512, 512) }},
	{"gelu-gradient/512x2048", func() *sketch { return geluGradient(512, 2048) }},
	{"softmax-max/2048x32", func() *sketch {
		s := newSketch(2048, 32)
		return s.reduce(Max, Row, 1, s.leaf())
	}},
	{"softmax-exp/2048x32", func() *sketch { // exp(x * scale + mask - max)
		s := newSketch(16, 128, 32)
		x := s.step(Add, s.step(Mul, s.leaf(), s.number(0.125)), s.leaf(true, false, true))
		return s.store(s.step(Exp, s.step(Sub, x, s.leaf(true, true, false))))
	}},
	{"softmax-sum/2048x32", func() *sketch {
		s := newSketch(2048, 32)
		return s.reduce(Add, Row, 1, s.leaf())
	}},
	{"softmax-divide/2048x32", func() *sketch {
		s := newSketch(2048, 32)
		return s.store(s.step(Div, s.leaf(), s.leaf(true, false)))
	}},
	{"softmax-gradient/2048x32", func() *sketch { // y * (dy - sum)
		s := newSketch(2048, 32)
		return s.store(s.step(Mul, s.leaf(), s.step(Sub, s.leaf(), s.leaf(true, false))))
	}},
	{"norm-mean/512x128", func() *sketch { return mean(512, 128) }},
	{"norm-mean/512x512", func() *sketch { return mean(512, 512) }},
	{"norm-variance/512x128", func() *sketch { return variance(512, 128) }},
	{"norm-variance/512x512", func() *sketch { return variance(512, 512) }},
	{"norm/512x128", func() *sketch { return norm(512, 128) }},
	{"norm/512x512", func() *sketch { return norm(512, 512) }},
	{"bias/512x128", func() *sketch { return bias(512, 128) }},
	{"bias/512x512", func() *sketch { return bias(512, 512) }},
	{"bias-gradient/128x512", func() *sketch { return columns(128, 512) }},
	{"bias-gradient/512x512", func() *sketch { return columns(512, 512) }},
	{"heads/16x32x4x32", func() *sketch { // (x + bias) * scale, of heads that stand apart
		s := newSketch(16, 32, 4, 32)
		x := s.leaf()
		s.Leaves[0].Strides = []int{32 * 4 * 32, 32, 32 * 32, 1}
		return s.store(s.step(Mul, s.step(Add, x, s.leaf(false, false, true, true)), s.number(0.17)))
	}},
	{"adam/8192", func() *sketch { // Kingma and Ba 2015, algorithm 1
		s := newSketch(8192)
		p, m, v, g := s.leaf(), s.leaf(), s.leaf(), s.leaf()
		one := s.number(1)
		b1, b2 := s.leaf(false), s.leaf(false)
		newM := s.step(Add, s.step(Mul, b1, m), s.step(Mul, s.step(Sub, one, b1), g))
		newV := s.step(Add, s.step(Mul, b2, v), s.step(Mul, s.step(Mul, s.step(Sub, one, b2), g), g))
		up := s.step(Mul, s.leaf(false), newM)
		down := s.step(Add, s.step(Sqrt, newV), s.number(1e-8))
		newP := s.step(Sub, p, s.step(Div, up, down))
		return s.update(p, newP).update(m, newM).update(v, newV)
	}},
	{"momentum/8192", func() *sketch {
		s := newSketch(8192)
		p, m := s.leaf(), s.leaf()
		newM := s.step(Add, s.step(Mul, m, s.number(.9)), s.leaf())
		return s.update(p, s.step(Sub, p, s.step(Mul, newM, s.number(1e-3)))).update(m, newM)
	}},
}

func gelu(rows, cols int) *sketch {
	s := newSketch(rows, cols)
	x := s.step(Add, s.leaf(), s.leaf(false, true))
	half := s.step(Mul, s.number(0.5), x)
	return s.store(s.step(Mul, half, s.step(Add, s.number(1), s.step(Tanh, s.inner(x)))))
}

// geluGradient is dy * (0.5 (1 + t) + 0.5 x (1 - t^2) (inner)'), t the tanh.
func geluGradient(rows, cols int) *sketch {
	s := newSketch(rows, cols)
	x := s.step(Add, s.leaf(), s.leaf(false, true))
	t := s.step(Tanh, s.inner(x))
	one, half := s.number(1), s.number(0.5)
	left := s.step(Mul, half, s.step(Add, one, t))
	slope := s.step(Mul, s.number(0.7978846), s.step(Add, one, s.step(Mul, s.number(3*0.044715), s.step(Mul, x, x))))
	right := s.step(Mul, s.step(Mul, s.step(Mul, half, x), s.step(Sub, one, s.step(Mul, t, t))), slope)
	return s.store(s.step(Mul, s.leaf(), s.step(Add, left, right)))
}

// mean sums a residual that is made on the way.
func mean(rows, cols int) *sketch {
	s := newSketch(rows, cols)
	return s.reduce(Add, Row, 1, s.step(Add, s.leaf(), s.step(Add, s.leaf(), s.leaf(false, true))))
}

func variance(rows, cols int) *sketch {
	s := newSketch(rows, cols)
	x := s.step(Sub, s.leaf(), s.step(Mul, s.leaf(true, false), s.number(1/float32(cols))))
	return s.reduce(Add, Row, 1, s.step(Mul, x, x))
}

func norm(rows, cols int) *sketch {
	s := newSketch(rows, cols)
	n := s.number(1 / float32(cols))
	x := s.step(Sub, s.leaf(), s.step(Mul, s.leaf(true, false), n))
	deviation := s.step(Sqrt, s.step(Add, s.step(Mul, s.leaf(true, false), n), s.number(1e-12)))
	x = s.step(Div, x, deviation)
	return s.store(s.step(Add, s.step(Mul, x, s.leaf(false, true)), s.leaf(false, true)))
}

func bias(rows, cols int) *sketch {
	s := newSketch(rows, cols)
	return s.store(s.step(Add, s.leaf(), s.leaf(false, true)))
}

func columns(cols, rows int) *sketch {
	s := newSketch(cols, rows)
	x := s.leaf()
	s.Leaves[0].Strides = []int{1, cols}
	return s.reduce(Add, Columns, 1, x)
}

// BenchmarkLoop times loops on one core, in processor time.
func BenchmarkLoop(b *testing.B) {
	for _, w := range workloads {
		s := w.loop()
		memory := make([]float32, s.words)
		pl, err := PrepareLoop(s.Loop, 4*len(memory))
		if err != nil {
			b.Fatal(err)
		}
		for _, k := range append(Native(), Plain) {
			b.Run(w.name+"/"+k.name, func(b *testing.B) {
				fill(rand.New(rand.NewPCG(3, 4)), bytesOf(memory), 0)
				for i, v := range memory { // what a state or a variance may be
					memory[i] = max(v, -v)
				}
				began := cputime.Now()
				for b.Loop() {
					if err := k.RunLoop(b.Context(), pl, bytesOf(memory), nil); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(points(s.Sizes))/cputime.Each(b, began), "Gelements/s")
				b.ReportMetric(1000*cputime.Each(b, began)/float64(pl.Work(1)), "ps/addition")
			})
		}
	}
}
