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

// Places of gemm's tensors.
const gemmA, gemmB, gemmC, gemmCodes, gemmScales, gemmIDs, gemmArena = 256, 320, 384, 448, 512, 576, 640

// gemm is a program whose only segment, s0, is the declared product of a 2 x 3 and
// a 3 x 4 matrix.
func gemm() *mod {
	times := func(l, by int) []byte { return code(get(l), i32c(by), 0x6c) } // l * by
	c := code(times(0, 16), times(1, 4), opI32Add)
	inner := code(c, c, f32load(gemmC),
		times(0, 12), times(2, 4), opI32Add, f32load(gemmA),
		times(2, 16), times(1, 4), opI32Add, f32load(gemmB), 0x94, 0x92, f32store(gemmC))
	return &mod{
		pages: 1,
		manifest: &Manifest{
			Format: Format, Name: "gemm", Compiler: "test", Host: "wazero",
			Arena: Region{gemmArena, 256},
			Inputs: []Tensor{{Name: "a", DType: Float32, Shape: []int{2, 3}, Offset: gemmA},
				{Name: "b", DType: Float32, Shape: []int{3, 4}, Offset: gemmB},
				{Name: "ids", DType: Int32, Shape: []int{8}, Offset: gemmIDs}},
			Outputs: []Tensor{{Name: "c", DType: Float32, Shape: []int{2, 4}, Offset: gemmC}},
			Frozen: []Tensor{{Name: "codes", DType: Float32, Shape: []int{3, 33}, Offset: gemmCodes,
				NF4: &NF4{Block: 64, Scales: gemmScales}}},
			Segments: []Segment{{}},
			Products: []Product{{First: 0, Count: 1, A: gemmA, B: gemmB, C: gemmC,
				Rows: []Axis{{2, 3, 0, 4}}, Cols: []Axis{{4, 0, 1, 1}}, Terms: []Axis{{3, 1, 4, 0}}}},
		},
		funcs: []fn{{locals: 3, body: static(0, 0, static(1, 0, code(c, f32c(0), f32store(gemmC),
			static(2, 0, inner, upTail(2, 1, 3))), upTail(1, 1, 4)), upTail(0, 1, 2))}},
		segments: []int{0},
	}
}

// partGEMM is gemm in two parts, a row of C each, without a loop budget.
func partGEMM() *mod {
	m := gemm()
	m.noFuel = true
	m.manifest.Segments = make([]Segment, 2)
	m.manifest.Products[0].Count, m.manifest.Products[0].Parts = 2, []int{1, 1}
	times := func(l, by int) []byte { return code(get(l), i32c(by), 0x6c) }
	m.funcs, m.segments = nil, []int{0, 1}
	for row := range 2 {
		c := times(0, 4)
		at := gemmC + 16*row
		inner := code(c, c, f32load(at), times(1, 4), f32load(gemmA+12*row), times(1, 16), c, opI32Add, f32load(gemmB),
			0x94, 0x92, f32store(at))
		m.funcs = append(m.funcs, fn{locals: 2, body: static(0, 0, code(c, f32c(0), f32store(at),
			static(1, 0, inner, upTail(1, 1, 3))), upTail(0, 1, 4))})
	}
	return m
}

// TestParts computes a product in parts, one after the other or at once.
func TestParts(t *testing.T) {
	a, b := []float32{1, 2, 3, 4, 5, 6}, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	want := []float32{38, 44, 50, 56, 83, 98, 113, 128}
	for name, cfg := range configs() {
		for _, cores := range []int{1, 3} {
			cfg.Cores = cores
			in := instance(t, load(t, partGEMM(), cfg))
			check(t, in.WriteFrozen("codes", make([]float32, 99)), in.WriteFloat32("a", a), in.WriteFloat32("b", b))
			for range 3 {
				got := make([]float32, len(want))
				check(t, in.Step(t.Context()), in.ReadFloat32("c", got))
				if !slices.Equal(got, want) {
					t.Errorf("%s, %d cores: %v, want %v", name, cores, got, want)
				}
			}
		}
	}
}

// withProduct is gemm with another product.
func withProduct(change func(p *Product)) *Manifest {
	m := gemm().manifest
	change(&m.Products[0])
	return m
}

func TestProductRefused(t *testing.T) {
	if _, err := Verify(gemm().assemble(), Limits{}); err != nil {
		t.Fatal(err)
	}
	const huge = 1 << 28
	for name, c := range map[string]struct {
		change func(p *Product)
		want   string
	}{
		"no segment":         {func(p *Product) { p.Count = 0 }, "0 segments"},
		"segments below 0":   {func(p *Product) { p.First = -1 }, "segments from s-1"},
		"segment too far":    {func(p *Product) { p.First = 1 }, "not among"},
		"too many segments":  {func(p *Product) { p.Count = 2 }, "2 segments"},
		"all segments":       {func(p *Product) { p.Count = math.MaxInt }, "segments from s0"},
		"one part":           {func(p *Product) { p.Parts = []int{1} }, "1 parts"},
		"many parts":         {func(p *Product) { p.Parts = make([]int, 17) }, "17 parts"},
		"a part of nothing":  {func(p *Product) { p.Parts = []int{1, 0} }, "part 1 of 0 segments"},
		"a part below 0":     {func(p *Product) { p.Parts = []int{2, -1} }, "part 0 of 2 segments"},
		"parts too long":     {func(p *Product) { p.Parts = []int{1, math.MaxInt} }, "are left"},
		"size 1":             {func(p *Product) { p.Rows[0][0] = 1 }, "axis of 1"},
		"size 0":             {func(p *Product) { p.Terms[0][0] = 0 }, "axis of 0"},
		"size below 0":       {func(p *Product) { p.Terms[0][0] = -3 }, "axis of -3"},
		"huge size":          {func(p *Product) { p.Terms[0][0] = huge + 1 }, "axis of"},
		"huge sizes":         {func(p *Product) { p.Terms = []Axis{{huge, 0, 0, 0}, {huge, 0, 0, 0}} }, "rounds of one kind"},
		"sizes that wrap":    {func(p *Product) { p.Terms = []Axis{{1 << 27}, {1 << 27}, {1 << 10}} }, "rounds of one kind"},
		"many axes":          {func(p *Product) { p.Terms = repeatAxis(9, Axis{2}) }, "9 axes"},
		"huge step":          {func(p *Product) { p.Terms[0][1] = huge + 1 }, "axis step"},
		"least step":         {func(p *Product) { p.Terms[0][1] = math.MinInt }, "axis step"},
		"rows of B":          {func(p *Product) { p.Rows[0][2] = 1 }, "row axis moves B"},
		"columns of A":       {func(p *Product) { p.Cols[0][1] = 1 }, "column axis moves A"},
		"terms of C":         {func(p *Product) { p.Terms[0][3] = 1 }, "term axis moves C"},
		"C apart":            {func(p *Product) { p.Cols[0][3] = 2 }, "the last column axis moves C by 2"},
		"C in one place":     {func(p *Product) { p.Rows[0][3] = 0 }, "two elements of C"},
		"C backwards":        {func(p *Product) { p.Rows[0][3] = -4; p.C += 16 }, "two elements of C"},
		"rows of C overlap":  {func(p *Product) { p.Rows[0][3] = 3 }, "two elements of C"},
		"batch of one C":     {func(p *Product) { p.Batch = []Axis{{2, 0, 0, 0}} }, "two elements of C"},
		"A unaligned":        {func(p *Product) { p.A++ }, "not a multiple of 4"},
		"A before":           {func(p *Product) { p.A -= 4 }, "A, bytes"},
		"A behind":           {func(p *Product) { p.A += 4 }, "A, bytes"},
		"A runs behind":      {func(p *Product) { p.Rows[0][1] = 4 }, "A, bytes"},
		"A runs before 0":    {func(p *Product) { p.Rows[0][1] = -1000 }, "outside of any memory"},
		"A runs over 4 GiB":  {func(p *Product) { p.Terms = []Axis{{huge, huge, 0, 0}} }, "outside of any memory"},
		"A wraps to itself":  {func(p *Product) { p.Rows[0][1], p.Batch = huge, []Axis{{5, huge, 0, 8}} }, "outside of any"},
		"A of int32":         {func(p *Product) { p.A = gemmIDs }, "A, bytes"},
		"A of codes":         {func(p *Product) { p.A = gemmCodes }, "A, bytes"},
		"A in undeclared":    {func(p *Product) { p.A = 32768 }, "A, bytes"},
		"B behind":           {func(p *Product) { p.B += 4 }, "B, bytes"},
		"B over two tensors": {func(p *Product) { p.B, p.Terms[0][2] = gemmA, 20 }, "B, bytes"},
		"C behind":           {func(p *Product) { p.C += 4 }, "C, bytes"},
		"C in an input":      {func(p *Product) { p.C, p.Rows, p.Cols = gemmA, nil, nil }, "C, bytes"},
		"C in codes":         {func(p *Product) { p.C, p.Rows, p.Cols = gemmCodes, nil, nil }, "C, bytes"},
		"C is A":             {func(p *Product) { p.A, p.C = gemmArena, gemmArena+4 }, "C overlaps A"},
		"C is B":             {func(p *Product) { p.B, p.C = gemmArena, gemmArena+44 }, "C overlaps B"},
		"unknown tensor":     {func(p *Product) { p.NF4 = 2 }, "is not an NF4 tensor"},
		"not NF4":            {func(p *Product) { p.NF4 = -1 }, "is not an NF4 tensor"},
		"codes behind":       {func(p *Product) { p.NF4, p.B = 1, 88 }, "values 88 to 99"},
		"codes far":          {func(p *Product) { p.NF4, p.B = 1, math.MaxUint32 }, "is not within"},
		"codes before":       {func(p *Product) { p.NF4, p.B, p.Terms[0][2] = 1, 0, -4 }, "values -8 to 3"},
	} {
		m := withProduct(c.change)
		if _, err := m.Encode(); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	ok := withProduct(func(p *Product) { p.NF4, p.B = 1, 87 })
	if _, err := ok.Encode(); err != nil {
		t.Errorf("the last values of a tensor: %v", err)
	}
	twice := gemm().manifest
	twice.Segments = append(twice.Segments, Segment{})
	twice.Products = append(twice.Products, twice.Products[0])
	if _, err := twice.Encode(); !errors.Is(err, ErrRefused) {
		t.Errorf("one segment, two products: %v", err)
	}
}

func repeatAxis(n int, a Axis) (axes []Axis) {
	for range n {
		axes = append(axes, a)
	}
	return axes
}

// TestProductWork: a product that would work longer than its segments may is
// refused, or a host's kernels would have no bound.
func TestProductWork(t *testing.T) {
	m := gemm()
	for _, terms := range []int{1 << 20, 1 << 28} {
		m.manifest.Products[0].Terms = []Axis{{terms, 0, 0, 0}}
		_, err := Verify(m.assemble(), Limits{})
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "multiply-adds") {
			t.Errorf("%d terms: %v", terms, err)
		}
	}
}

// TestProductAddresses draws products at random, most of them nearly right, and
// walks through every element of those that are accepted: each must be in declared
// memory of its kind, the elements of C be distinct, and nothing that is read be written.
func TestProductAddresses(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	accepted := 0
	for range 40000 {
		m := withProduct(func(p *Product) { disturb(rnd, p) })
		if _, err := m.validate(); err != nil {
			continue
		}
		accepted++
		if err := walk(m); err != nil {
			t.Fatalf("%+v: %v", m.Products[0], err)
		}
	}
	if accepted < 500 {
		t.Errorf("only %d products were accepted", accepted)
	}
}

func disturb(rnd *rand.Rand, p *Product) {
	places := []uint32{gemmA, gemmB, gemmC, gemmArena, gemmArena + 64, gemmArena + 128, gemmCodes, gemmIDs}
	for range 1 + rnd.IntN(4) {
		groups := []*[]Axis{&p.Batch, &p.Rows, &p.Cols, &p.Terms}
		g := groups[rnd.IntN(4)]
		switch rnd.IntN(8) {
		case 0:
			p.A = places[rnd.IntN(len(places))] + 4*uint32(rnd.IntN(5))
		case 1:
			p.B = places[rnd.IntN(len(places))] + 4*uint32(rnd.IntN(5))
		case 2:
			p.C = places[rnd.IntN(len(places))] + 4*uint32(rnd.IntN(5))
		case 3:
			p.NF4, p.B = 1, uint32(rnd.IntN(99))
		case 4:
			*g = append([]Axis{{2 + rnd.IntN(2), rnd.IntN(3), rnd.IntN(3), rnd.IntN(9)}}, *g...)
		case 5:
			*g = nil
		default:
			if len(*g) > 0 {
				a := &(*g)[rnd.IntN(len(*g))]
				i := rnd.IntN(4)
				a[i] += rnd.IntN(5) - 2
			}
		}
	}
}

// walk holds every element of a manifest's product against its memory, one by one.
func walk(m *Manifest) error {
	p := &m.Products[0]
	const arena, input, output, frozen = 1, 2, 3, 4
	kind := map[int64]int{}
	mark := func(from, size uint64, k int) {
		for at := from; at < from+size; at += 4 {
			kind[int64(at)] = k
		}
	}
	mark(uint64(m.Arena.Offset), uint64(m.Arena.Size), arena)
	for _, t := range m.Inputs {
		if t.DType == Float32 {
			mark(uint64(t.Offset), t.DataSize(), input)
		}
	}
	mark(uint64(m.Outputs[0].Offset), m.Outputs[0].DataSize(), output)
	reads, writes, result := map[int64]bool{}, map[int64]bool{}, map[[3]int64]int64{}
	var axes []Axis
	var term []bool
	for g, group := range p.groups() {
		for _, a := range group {
			axes, term = append(axes, a), append(term, g == 3)
		}
	}
	var nest func(i int, a, b, c int64, key [3]int64) error
	nest = func(i int, a, b, c int64, key [3]int64) error {
		if i < len(axes) {
			for r := range int64(axes[i][0]) {
				k := key
				if !term[i] {
					k[0] = key[0]*1000 + r
				}
				if err := nest(i+1, a+r*int64(axes[i][1]), b+r*int64(axes[i][2]), c+r*int64(axes[i][3]), k); err != nil {
					return err
				}
			}
			return nil
		}
		a, c = int64(p.A)+4*a, int64(p.C)+4*c
		if kind[a] == 0 {
			return fmt.Errorf("A reads %d", a)
		}
		if k := kind[c]; k != arena && k != output {
			return fmt.Errorf("C writes %d", c)
		}
		reads[a], writes[c] = true, true
		if p.NF4 != 0 {
			if v := int64(p.B) + b; v < 0 || v >= 99 {
				return fmt.Errorf("B reads value %d", v)
			}
		} else {
			b = int64(p.B) + 4*b
			if kind[b] == 0 {
				return fmt.Errorf("B reads %d", b)
			}
			reads[b] = true
		}
		if was, ok := result[key]; ok && was != c {
			return fmt.Errorf("an element of C is at %d and %d", was, c)
		}
		result[key] = c
		return nil
	}
	if err := nest(0, 0, 0, 0, [3]int64{}); err != nil {
		return err
	}
	if len(result) != len(writes) {
		return fmt.Errorf("%d elements of C in %d places", len(result), len(writes))
	}
	for c := range writes {
		if reads[c] {
			return fmt.Errorf("%d is read and written", c)
		}
	}
	return nil
}
