package plan

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/starling-fl/starling/wasm/compiler/ir"
)

// TestDelinear checks random reshapes point by point: where delinear finds indices, they must name the same element.
func TestDelinear(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	found := 0
	for range 3000 {
		dims := make([]int, 1+rnd.IntN(3))
		for i := range dims {
			dims[i] = 1 + rnd.IntN(6)
		}
		d := newDomain(dims)
		to := []int{ir.Len(dims)}
		for range 2 { // another shape of equal size
			i := rnd.IntN(len(to))
			for f := 2 + rnd.IntN(3); f > 1; f-- {
				if to[i]%f == 0 {
					to = append(append(slices.Clone(to[:i]), to[i]/f, f), to[i+1:]...)
					break
				}
			}
		}
		var idx []affine
		ok := false
		err := overSplits(d, func() (err error) {
			idx, ok, err = delinear(linear(identity(d), dims, len(d.sizes())), d.sizes(), to)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			continue
		}
		found++
		sizes := d.sizes()
		at := make([]int, len(sizes))
		value := func(a affine) int {
			v := a.c
			for j, m := range a.m {
				v += m * at[j]
			}
			return v
		}
		for n := range ir.Len(dims) {
			rest := n
			for j := len(sizes) - 1; j >= 0; j-- {
				at[j] = rest % sizes[j]
				rest /= sizes[j]
			}
			lin := 0
			for i, a := range idx {
				v := value(a)
				if v < 0 || v >= to[i] {
					t.Fatalf("%v -> %v: index %d of axis %d", dims, to, v, i)
				}
				lin = lin*to[i] + v
			}
			if lin != n {
				t.Fatalf("%v -> %v: point %d became %d", dims, to, n, lin)
			}
		}
	}
	if found < 1500 {
		t.Errorf("only %d of 3000 reshapes are affine", found)
	}
}

// TestLayoutKeepsLivesApart checks that buffers which live at the same time do not share memory.
func TestLayoutKeepsLivesApart(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	g := ir.New()
	nodes := []*ir.Node{g.Parameter("x", ir.F32, []int{40, 40})}
	for range 60 {
		a, b := nodes[rnd.IntN(len(nodes))], nodes[rnd.IntN(len(nodes))]
		nodes = append(nodes, g.Add(ir.Dot, ir.F32, []int{40, 40}, ir.Attr{Dot: &ir.DotAxes{LhsContract: []int{1}, RhsContract: []int{0}}}, a, b))
	}
	g.Outputs = nodes[len(nodes)-3:]
	p, err := Build(g, Config{})
	if err != nil {
		t.Fatal(err)
	}
	arena, end := p.Layout(0)
	sum := 0
	for i, a := range p.Arena {
		if a.life.empty() {
			continue
		}
		sum += a.Bytes
		if a.Addr < arena || a.Addr+a.Bytes > end {
			t.Fatalf("buffer at %d..%d, arena is %d..%d", a.Addr, a.Addr+a.Bytes, arena, end)
		}
		for _, b := range p.Arena[:i] {
			if a.life.meets(b.life) && !b.life.empty() && a.Addr < b.Addr+b.Bytes && b.Addr < a.Addr+a.Bytes {
				t.Fatalf("buffers %d and %d overlap in time and memory", a.Node.ID, b.Node.ID)
			}
		}
	}
	if end-arena >= sum {
		t.Errorf("arena of %d bytes shares nothing: buffers sum to %d", end-arena, sum)
	}
}

// TestNothingIsStoredForNobody: a value with several users is stored, unless all of them share the loop that computes it.
func TestNothingIsStoredForNobody(t *testing.T) {
	g := ir.New()
	dims := []int{8, 16}
	x := g.Parameter("x", ir.F32, dims)
	step := func(op ir.Op, in ...*ir.Node) *ir.Node { return g.Add(op, ir.F32, dims, ir.Attr{}, in...) }
	shared := step(ir.Tanh, step(ir.Div, x, step(ir.Exp, x)))
	both := step(ir.Add, step(ir.Mul, shared, x), step(ir.Sub, shared, x))
	g.Outputs = []*ir.Node{both}
	plan := func() *Plan {
		t.Helper()
		p, err := Build(g, Config{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := plan(); len(p.Stages) != 1 || len(p.Stages[0].writes()) != 1 || len(p.Arena) != 0 {
		t.Errorf("%d stages, the first writes %d buffers, %d are temporary; want one that writes the result", len(p.Stages),
			len(p.Stages[0].writes()), len(p.Arena))
	}
	// What a sum reads in another loop is stored as before.
	g.Outputs = append(g.Outputs, g.Add(ir.ReduceSum, ir.F32, []int{8}, ir.Attr{Axes: []int{1}}, shared))
	p := plan()
	if !slices.ContainsFunc(p.Arena, func(b *Buffer) bool { return b.Node == shared }) {
		t.Error("a value that a sum reads is not stored")
	}
	written := map[*Buffer]bool{}
	for _, s := range p.Stages {
		for _, b := range s.reads() {
			if slices.Contains(p.Arena, b) && !written[b] {
				t.Errorf("%v is read and was not written", b.Node)
			}
		}
		for _, b := range s.writes() {
			written[b] = true
		}
	}
}

// TestTransposesCostNothing plans attention's head split: one product, no copies.
func TestTransposesCostNothing(t *testing.T) {
	g := ir.New()
	b, s, h, d := 2, 6, 3, 4
	split := func(name string) *ir.Node {
		x := g.Parameter(name, ir.F32, []int{b * s, h * d})
		x = g.Add(ir.Reshape, ir.F32, []int{b, s, h, d}, ir.Attr{}, x)
		x = g.Add(ir.Transpose, ir.F32, []int{b, h, s, d}, ir.Attr{Axes: []int{0, 2, 1, 3}}, x)
		return g.Add(ir.Reshape, ir.F32, []int{b * h, s, d}, ir.Attr{}, x)
	}
	scores := g.Add(ir.Dot, ir.F32, []int{b * h, s, s}, ir.Attr{Dot: &ir.DotAxes{LhsContract: []int{2}, LhsBatch: []int{0},
		RhsContract: []int{2}, RhsBatch: []int{0}}}, split("q"), split("k"))
	g.Outputs = []*ir.Node{scores}
	p, err := Build(g, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Stages) != 1 || len(p.Arena) != 0 {
		t.Fatalf("%d steps and %d temporary buffers, want one product", len(p.Stages), len(p.Arena))
	}
	dot := p.Stages[0].(*Dot)
	want := []Axis{{b, s * h * d, s * h * d, h * s * s}, {h, d, d, s * s}}
	if !slices.Equal(dot.Batch, want) {
		t.Errorf("batch loops %v, want %v", dot.Batch, want)
	}
}

// TestOverSplitsEnds bounds how often a loop is cut.
func TestOverSplitsEnds(t *testing.T) {
	d := newDomain([]int{1 << 20})
	err := overSplits(d, func() error { return &splitError{0, 1} })
	if err == nil || errors.As(err, new(*splitError)) {
		t.Errorf("endless splitting gave %v", err)
	}
}

// stacked is a graph of layers with a residual stream, weights of their own, and a way back through them that reads what
// each layer kept.
func stacked(layers int) *ir.Graph {
	g := ir.New()
	dims := []int{16, 16}
	dot := func(a, b *ir.Node) *ir.Node {
		return g.Add(ir.Dot, ir.F32, dims, ir.Attr{Dot: &ir.DotAxes{LhsContract: []int{1}, RhsContract: []int{0}}}, a, b)
	}
	step := func(op ir.Op, in ...*ir.Node) *ir.Node { return g.Add(op, ir.F32, dims, ir.Attr{}, in...) }
	x := g.Parameter("x", ir.F32, dims)
	var up, down, kept []*ir.Node
	for i := range layers {
		up = append(up, g.Parameter(fmt.Sprint("up", i), ir.F32, dims))
		down = append(down, g.Parameter(fmt.Sprint("down", i), ir.F32, dims))
	}
	for i := range layers {
		h := step(ir.Tanh, dot(x, up[i]))
		kept = append(kept, h)
		x = step(ir.Add, x, dot(h, down[i]))
	}
	back := x
	for i := layers - 1; i >= 0; i-- {
		back = step(ir.Add, back, dot(step(ir.Mul, dot(back, down[i]), kept[i]), up[i]))
	}
	g.Outputs = []*ir.Node{back}
	return g
}

// TestRepeatsStandEvenly: the layers of a graph are found forwards and backwards, the address of whatever a round uses
// follows from its number, and buffers that live at the same time stay apart.
func TestRepeatsStandEvenly(t *testing.T) {
	const layers = 9
	p, err := Build(stacked(layers), Config{})
	if err != nil {
		t.Fatal(err)
	}
	arena, end := p.Layout(64)
	if len(p.Repeats) != 2 || p.Repeats[0].Rounds < layers-2 || p.Repeats[1].Rounds < layers-2 {
		t.Fatalf("repeats %v of %d stages, want two of %d rounds or two less", p.Repeats, len(p.Stages), layers)
	}
	for _, r := range p.Repeats {
		for k := range r.Count {
			at := func(round, j int) int { return refsOf(p.Stages[r.First+round*r.Count+k])[j].Addr() }
			for j := range refsOf(p.Stages[r.First+k]) {
				for round := 2; round < r.Rounds; round++ {
					if got, want := at(round, j)-at(round-2, j), at(2, j)-at(0, j); got != want {
						t.Errorf("stage %d, operand %d: %d bytes on in two rounds up to %d, %d at first", r.First+k, j, got, round, want)
					}
				}
			}
		}
	}
	for i, a := range p.Arena {
		if a.life.empty() {
			continue
		}
		if a.Addr < arena || a.Addr+a.Bytes > end {
			t.Fatalf("buffer at %d..%d, arena is %d..%d", a.Addr, a.Addr+a.Bytes, arena, end)
		}
		for _, b := range p.Arena[:i] {
			if !b.life.empty() && a.life.meets(b.life) && a.Addr < b.Addr+b.Bytes && b.Addr < a.Addr+a.Bytes {
				t.Fatalf("buffers %d and %d overlap in time and memory", a.Node.ID, b.Node.ID)
			}
		}
	}
	flat, err := Build(stacked(layers), Config{Flat: true})
	if err != nil {
		t.Fatal(err)
	}
	if from, to := flat.Layout(64); len(flat.Repeats) > 0 || end-arena > (to-from)*11/10 {
		t.Errorf("an arena of %d bytes, %d without repeats (%d found)", end-arena, to-from, len(flat.Repeats))
	}
}
