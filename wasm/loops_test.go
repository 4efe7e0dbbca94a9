package wasm

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Places of chain's tensors.
const chainA, chainB, chainC, chainW, chainIDs, chainArena, chainCodes = 256, 320, 384, 448, 512, 576, 832

// chain is a program whose only segment, s0, is a declared loop: c = a * b + a, a row of 4 after
// the other.
func chain() *mod {
	at := code(get(0), i32c(16), 0x6c, get(1), i32c(4), 0x6c, opI32Add)
	inner := code(at, at, f32load(chainA), get(1), i32c(4), 0x6c, f32load(chainB), 0x94, at, f32load(chainA), 0x92, f32store(chainC))
	return &mod{
		pages: 1,
		manifest: &Manifest{
			Format: Format, Name: "chain", Compiler: "test", Host: "wazero",
			Arena: Region{chainArena, 256},
			Inputs: []Tensor{{Name: "a", DType: Float32, Shape: []int{2, 4}, Offset: chainA},
				{Name: "ids", DType: Int32, Shape: []int{8}, Offset: chainIDs}},
			Outputs: []Tensor{{Name: "c", DType: Float32, Shape: []int{2, 4}, Offset: chainC}},
			State:   []Tensor{{Name: "w", DType: Float32, Shape: []int{2, 4}, Offset: chainW}},
			Frozen: []Tensor{{Name: "b", DType: Float32, Shape: []int{4}, Offset: chainB},
				{Name: "codes", DType: Float32, Shape: []int{64}, Offset: chainCodes, NF4: &NF4{Block: 64, Scales: chainCodes + 32}}},
			Segments: []Segment{{}},
			Bodies: []LoopBody{{Sizes: []int{2, 4}, Leaves: []Walk{{4, 1}, {0, 1}},
				Steps: []LoopStep{{Op: "load"}, {Op: "load", Leaf: 1}, {Op: "mul", In: []int{0, 1}}, {Op: "add", In: []int{2, 0}}},
				Outs:  []LoopResult{{Step: 3, Strides: Walk{4, 1}}}}},
			Loops: []Loop{{At: []uint32{chainA, chainB, chainC}}},
		},
		funcs:    []fn{{locals: 2, body: static(0, 0, static(1, 0, inner, upTail(1, 1, 4)), upTail(0, 1, 2))}},
		segments: []int{0},
	}
}

// sums makes chain's loop a reduction along its rows.
func sums(l *Loop, b *LoopBody) {
	b.Reduce = Reduction{Op: "add", Kept: 1, Order: "row"}
	b.Outs[0].Strides = []int{1, 0}
}

// rowSums is chain with a reduction in its place: the sum of a * b + a along each row, as vectors
// of 4 partial sums add it up.
func rowSums() *mod {
	m := chain()
	sums(&m.manifest.Loops[0], &m.manifest.Bodies[0])
	term := func(j int) []byte {
		a := code(get(0), i32c(16), 0x6c, f32load(chainA+4*j))
		return code(a, i32c(0), f32load(chainB+4*j), 0x94, a, 0x92)
	}
	add := byte(0x92)
	inner := code(get(0), i32c(4), 0x6c, term(0), term(2), add, term(1), term(3), add, add, f32store(chainC))
	m.funcs[0] = fn{locals: 1, body: static(0, 0, inner, upTail(0, 1, 2))}
	return m
}

// withLoop is chain with another loop.
func withLoop(change func(l *Loop, b *LoopBody)) *Manifest {
	m := chain().manifest
	change(&m.Loops[0], &m.Bodies[0])
	return m
}

func TestLoopRefused(t *testing.T) {
	if _, err := Verify(chain().assemble(), Limits{}); err != nil {
		t.Fatal(err)
	}
	const huge = 1 << 28
	for name, c := range map[string]struct {
		change func(l *Loop, b *LoopBody)
		want   string
	}{
		"segment below 0":     {func(l *Loop, b *LoopBody) { l.Segment = -1 }, "segment s-1"},
		"segment too far":     {func(l *Loop, b *LoopBody) { l.Segment = 1 }, "segment s1: not in order, or not among the step's 1"},
		"body below 0":        {func(l *Loop, b *LoopBody) { l.Body = -1 }, "body -1"},
		"body too far":        {func(l *Loop, b *LoopBody) { l.Body = 1 }, "body 1"},
		"no sizes":            {func(l *Loop, b *LoopBody) { b.Sizes = nil }, "0 sizes"},
		"many sizes":          {func(l *Loop, b *LoopBody) { b.Sizes = slices.Repeat([]int{2}, 9) }, "9 sizes, want 1 to 8"},
		"size 0":              {func(l *Loop, b *LoopBody) { b.Sizes[1] = 0 }, "size 1 is 0"},
		"size below 0":        {func(l *Loop, b *LoopBody) { b.Sizes[0] = -4 }, "size 0 is -4"},
		"least size":          {func(l *Loop, b *LoopBody) { b.Sizes[0] = math.MinInt }, "size 0"},
		"huge size":           {func(l *Loop, b *LoopBody) { b.Sizes[0] = huge + 1 }, "size 0"},
		"huge sizes":          {func(l *Loop, b *LoopBody) { b.Sizes = []int{huge, huge} }, "points"},
		"sizes that wrap":     {func(l *Loop, b *LoopBody) { b.Sizes = []int{1 << 22, 1 << 22, 1 << 22} }, "points"},
		"no outs":             {func(l *Loop, b *LoopBody) { b.Outs = nil }, "0 outs"},
		"many leaves":         {func(l *Loop, b *LoopBody) { b.Leaves = slices.Repeat(b.Leaves, 8) }, "16 leaves"},
		"many outs":           {func(l *Loop, b *LoopBody) { b.Outs = slices.Repeat(b.Outs, 15) }, "15 outs"},
		"no steps":            {func(l *Loop, b *LoopBody) { b.Steps = nil }, "0 steps"},
		"many steps":          {func(l *Loop, b *LoopBody) { b.Steps = slices.Repeat(b.Steps, 64) }, "256 steps, want 1 to 255"},
		"no operation":        {func(l *Loop, b *LoopBody) { b.Steps[2].Op = "fma" }, `step 2: no operation "fma"`},
		"operands":            {func(l *Loop, b *LoopBody) { b.Steps[2].In = []int{0} }, "step 2: mul of 1 operands, want 2"},
		"operands of a load":  {func(l *Loop, b *LoopBody) { b.Steps[1].In = []int{0} }, "step 1: load of 1 operands, want 0"},
		"forward":             {func(l *Loop, b *LoopBody) { b.Steps[2].In[1] = 3 }, "step 2: operand 1 is step 3, want an earlier one"},
		"itself":              {func(l *Loop, b *LoopBody) { b.Steps[2].In[0] = 2 }, "step 2: operand 0 is step 2"},
		"operand below 0":     {func(l *Loop, b *LoopBody) { b.Steps[2].In[0] = -1 }, "step 2: operand 0 is step -1"},
		"leaf too far":        {func(l *Loop, b *LoopBody) { b.Steps[1].Leaf = 2 }, "step 1: leaf 2 of 2"},
		"leaf below 0":        {func(l *Loop, b *LoopBody) { b.Steps[1].Leaf = -1 }, "step 1: leaf -1"},
		"strides":             {func(l *Loop, b *LoopBody) { b.Leaves[1] = Walk{1} }, "leaf 1: 1 strides for 2 sizes"},
		"strides of an out":   {func(l *Loop, b *LoopBody) { b.Outs[0].Strides = []int{1, 1, 1} }, "out 0: 3 strides"},
		"huge stride":         {func(l *Loop, b *LoopBody) { b.Leaves[0] = Walk{huge + 1, 1} }, "leaf 0: stride 268435457"},
		"least stride":        {func(l *Loop, b *LoopBody) { b.Leaves[0] = Walk{math.MinInt, 1} }, "leaf 0: stride"},
		"out too far":         {func(l *Loop, b *LoopBody) { b.Outs[0].Step = 4 }, "out 0: step 4 of 4"},
		"out below 0":         {func(l *Loop, b *LoopBody) { b.Outs[0].Step = -1 }, "out 0: step -1"},
		"out in one place":    {func(l *Loop, b *LoopBody) { b.Outs[0].Strides = []int{4, 0} }, "two elements of out 0"},
		"out backwards":       {func(l *Loop, b *LoopBody) { b.Outs[0].Strides = []int{4, -1} }, "two elements of out 0"},
		"rows of out overlap": {func(l *Loop, b *LoopBody) { b.Outs[0].Strides = []int{3, 1} }, "two elements of out 0"},
		"no reduction":        {func(l *Loop, b *LoopBody) { sums(l, b); b.Reduce.Op = "sum" }, `reduce op "sum"`},
		"no order":            {func(l *Loop, b *LoopBody) { sums(l, b); b.Reduce.Order = "" }, `reduce order ""`},
		"kept all":            {func(l *Loop, b *LoopBody) { sums(l, b); b.Reduce.Kept = 2 }, "reduce kept 2 of 2"},
		"kept below 0":        {func(l *Loop, b *LoopBody) { sums(l, b); b.Reduce.Kept = -1 }, "reduce kept -1"},
		"columns of nothing": {func(l *Loop, b *LoopBody) { sums(l, b); b.Reduce.Kept, b.Reduce.Order = 0, "columns" },
			"reduce order columns, but kept is 0"},
		"a short row":      {func(l *Loop, b *LoopBody) { sums(l, b); b.Sizes[1] = 3 }, "reduce order row of 3"},
		"two sums":         {func(l *Loop, b *LoopBody) { sums(l, b); b.Outs = slices.Repeat(b.Outs, 2) }, "2 outs of a reduction"},
		"a sum that moves": {func(l *Loop, b *LoopBody) { sums(l, b); b.Outs[0].Strides[1] = 1 }, "out 0 moves by 1 along a loop that is reduced over"},
		"a sum in place of a leaf": {func(l *Loop, b *LoopBody) {
			sums(l, b)
			b.Leaves[0], l.At = Walk{1, 0}, []uint32{chainW, chainB, chainW}
		}, "out 0 overlaps leaf 0"},
		"a sum in place":     {func(l *Loop, b *LoopBody) { sums(l, b); l.At = []uint32{chainW, chainB, chainW} }, "out 0 overlaps leaf 0"},
		"few addresses":      {func(l *Loop, b *LoopBody) { l.At = l.At[:2] }, "at: 2 addresses for 2 leaves and 1 outs"},
		"many addresses":     {func(l *Loop, b *LoopBody) { l.At = append(l.At, 0) }, "at: 4 addresses"},
		"leaf unaligned":     {func(l *Loop, b *LoopBody) { l.At[0]++ }, "leaf 0 at 257, bytes 257 to 289: not a multiple of 4"},
		"leaf before":        {func(l *Loop, b *LoopBody) { l.At[0] -= 4 }, "leaf 0, bytes 252 to 284, is in no plain tensor"},
		"leaf behind":        {func(l *Loop, b *LoopBody) { l.At[0] += 4 }, "leaf 0, bytes"},
		"leaf runs behind":   {func(l *Loop, b *LoopBody) { b.Leaves[1][0] = 1 }, "leaf 1, bytes"},
		"leaf before 0":      {func(l *Loop, b *LoopBody) { b.Leaves[0][0] = -1000 }, "outside of any memory"},
		"leaf over 4 GiB":    {func(l *Loop, b *LoopBody) { b.Sizes[0], b.Leaves[0][0] = 1<<24, huge }, "outside of any memory"},
		"leaf of codes":      {func(l *Loop, b *LoopBody) { l.At[0] = chainCodes }, "leaf 0, bytes 832 to 864, is in no plain tensor"},
		"leaf in undeclared": {func(l *Loop, b *LoopBody) { l.At[0] = 32768 }, "leaf 0, bytes"},
		"out in undeclared":  {func(l *Loop, b *LoopBody) { l.At[2] = 32768 }, "out 0, bytes"},
		"out in an input":    {func(l *Loop, b *LoopBody) { l.At[2] = chainA }, "out 0, bytes 256 to 288, is in no output or state"},
		"out in a constant":  {func(l *Loop, b *LoopBody) { b.Sizes, b.Outs[0].Strides, l.At[2] = []int{2, 2}, []int{2, 1}, chainB }, "out 0"},
		"out over a leaf":    {func(l *Loop, b *LoopBody) { l.At = []uint32{chainArena, chainB, chainArena + 16} }, "out 0 overlaps leaf 0"},
		"out across a leaf": {func(l *Loop, b *LoopBody) {
			l.At, b.Leaves[0] = []uint32{chainW, chainB, chainW}, Walk{1, 2}
		}, "out 0 overlaps leaf 0"},
		"out over an out": {func(l *Loop, b *LoopBody) { b.Outs = slices.Repeat(b.Outs, 2); l.At = append(l.At, chainC) },
			"out 1 overlaps out 0"},
		"out between an out": {func(l *Loop, b *LoopBody) {
			b.Outs[0].Strides = []int{8, 2}
			b.Outs, l.At = slices.Repeat(b.Outs, 2), []uint32{chainA, chainB, chainArena, chainArena + 4}
		}, "out 1 overlaps out 0"},
	} {
		m := withLoop(c.change)
		if _, err := m.Encode(); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for name, change := range map[string]func(l *Loop, b *LoopBody){
		"in place": func(l *Loop, b *LoopBody) { l.At = []uint32{chainW, chainB, chainW} },
		"sums":     sums,
	} {
		if _, err := withLoop(change).Encode(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLoopSegments: a segment is one loop's or one product's, and bodies stand in the order of their use.
func TestLoopSegments(t *testing.T) {
	for want, change := range map[string]func(m *Manifest){
		"2 loops for 1 segments": func(m *Manifest) { m.Loops = slices.Repeat(m.Loops, 2) },
		"loop 1: segment s0":     func(m *Manifest) { m.Segments, m.Loops = make([]Segment, 2), slices.Repeat(m.Loops, 2) },
		"2 bodies for 1 loops":   func(m *Manifest) { m.Bodies = slices.Repeat(m.Bodies, 2) },
		"segment s0 is a product's": func(m *Manifest) {
			m.Products = []Product{{Count: 1, A: chainA, B: chainArena, C: chainC, Cols: []Axis{{2, 0, 1, 1}}, Terms: []Axis{{2, 1, 1, 0}}}}
		},
		"65550 steps of all loops up to here, limit 65536": func(m *Manifest) {
			b, l := &m.Bodies[0], m.Loops[0]
			b.Steps = append(b.Steps, slices.Repeat(b.Steps[3:], 186)...)
			m.Segments = make([]Segment, 346)
			for m.Loops[0].Segment = 0; len(m.Loops) < 346; {
				l.Segment++
				m.Loops = append(m.Loops, l)
			}
		},
		"body 1 is no loop's": func(m *Manifest) {
			m.Segments, m.Bodies = make([]Segment, 2), slices.Repeat(m.Bodies, 2)
			m.Loops = []Loop{{0, 0, m.Loops[0].At}, {1, 0, m.Loops[0].At}}
		},
		"loop 0: body 1": func(m *Manifest) {
			m.Segments, m.Bodies = make([]Segment, 2), slices.Repeat(m.Bodies, 2)
			m.Loops = []Loop{{0, 1, m.Loops[0].At}, {1, 0, m.Loops[0].At}}
		},
	} {
		m := chain().manifest
		change(m)
		if _, err := m.Encode(); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestStepText: a step has one spelling, and others are refused.
func TestStepText(t *testing.T) {
	payload, err := chain().manifest.Encode()
	check(t, err)
	for text, want := range map[string]string{
		"mul 0 1": "", "mul 0": "1 operands, want 2", "mul 0 1 2": "3 operands", "mul": "operands", "mul 0 x": "invalid",
		"mul 0  1": "3 operands", "mul 0 01": "canonical", "mul 0 99999999999999999999": "out of range", "mul -1 0": "operand 0",
		"const 1": "canonical", "const 0000001": "canonical", "const 00000001": "", "const 100000000": "out of range",
		"const g": "invalid", "load 1": "", "load": "invalid", "load 2": "leaf 2", "": "no such operation", "fma 0 1 0": "no such operation",
	} {
		_, err := DecodeManifest([]byte(strings.Replace(string(payload), "mul 0 1", text, 1)))
		if want == "" && err != nil || want != "" && (!errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestLoopWork: a loop that would work longer than its segment may is refused.
func TestLoopWork(t *testing.T) {
	m := chain()
	m.manifest.Bodies[0].Steps[3] = LoopStep{Op: "tanh", In: []int{2}}
	for range 100 {
		m.manifest.Bodies[0].Steps = append(m.manifest.Bodies[0].Steps, LoopStep{Op: "tanh", In: []int{3}})
	}
	_, err := Verify(m.assemble(), Limits{})
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "loop 0: steps of 25880 units, but segment s0 costs at most") {
		t.Error(err)
	}
}

// TestLoopAddresses draws loops at random, most of them nearly right, and walks through every element
// of those that are accepted: each must lie in declared memory of its kind, the elements of results be
// distinct, and nothing that is read at one point be written at another.
func TestLoopAddresses(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	accepted := 0
	for range 60000 {
		m := withLoop(func(l *Loop, b *LoopBody) { disturbLoop(rnd, l, b) })
		if m.validate() != nil {
			continue
		}
		accepted++
		if err := walkLoop(m); err != nil {
			t.Fatalf("%+v %+v: %v", m.Loops[0], m.Bodies[0], err)
		}
	}
	if accepted < 500 {
		t.Errorf("only %d loops were accepted", accepted)
	}
}

func disturbLoop(rnd *rand.Rand, l *Loop, b *LoopBody) {
	places := []uint32{chainA, chainB, chainC, chainW, chainW, chainIDs, chainArena, chainArena + 64, chainCodes}
	if rnd.IntN(4) == 0 {
		sums(l, b)
	}
	if rnd.IntN(3) == 0 {
		b.Outs, l.At = append(b.Outs, LoopResult{Strides: Walk{4, 1}}), append(l.At, chainArena+128)
	}
	for range 1 + rnd.IntN(5) {
		w, _ := b.operand(rnd.IntN(len(l.At)))
		switch rnd.IntN(5) {
		case 0, 1:
			l.At[rnd.IntN(len(l.At))] = places[rnd.IntN(len(places))] + uint32(rnd.IntN(2)*rnd.IntN(9))
		case 2:
			b.Sizes[rnd.IntN(2)] += rnd.IntN(3) - 1
		default:
			w[rnd.IntN(2)] += rnd.IntN(5) - 2
		}
	}
}

// walkLoop holds every element of a manifest's loop against its memory, one by one.
func walkLoop(m *Manifest) error {
	l, b := &m.Loops[0], &m.Bodies[0]
	holds := map[int64]DType{}
	writable := map[int64]bool{}
	for _, s := range m.spans() {
		for at := s.from; at < s.to; at++ {
			holds[int64(at)], writable[int64(at)] = s.holds, s.role == "arena" || s.role == "output" || s.role == "state"
		}
	}
	type place struct{ point, out int }
	written, read := map[int64]place{}, map[int64][]int{}
	for point := range b.Sizes[0] * b.Sizes[1] {
		for i, at := range l.At {
			w, what := b.operand(i)
			from := int64(at) + 4*int64(w[0]*(point/b.Sizes[1])+w[1]*(point%b.Sizes[1]))
			result := point
			if b.Reduce.Op != "" {
				result = point / b.Sizes[1]
			}
			for c := from; c < from+4; c++ {
				switch is := holds[c]; {
				case is == "":
					return fmt.Errorf("%s at %d, which is no plain number's", what, c)
				case i < len(b.Leaves):
					read[c] = append(read[c], point)
				case !writable[c]:
					return fmt.Errorf("%s writes %d", what, c)
				default:
					if was, ok := written[c]; ok && was != (place{result, i}) {
						return fmt.Errorf("two results at %d", c)
					}
					written[c] = place{result, i}
				}
			}
		}
	}
	for c, w := range written {
		for _, point := range read[c] {
			if b.Reduce.Op != "" || point != w.point {
				return fmt.Errorf("%d is read at point %d and written at %d", c, point, w.point)
			}
		}
	}
	return nil
}
