package wasm

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// layers is gemm in a repeat: round r multiplies x by the r-th of four 2 x 2 matrices, from one of two places to the other
// by turns, and a segment before it copies the input there.
func layers() *mod {
	const x, out, weights, arena, rounds = 16, 32, 64, 128, 4
	cell := func(l, at int) []byte { return code(get(l), f32load(at)) }
	// Local 0 is the round; 1, 2, 3 are where A, B and C begin.
	place := code(
		get(0), i32c(1), 0x71, i32c(16), 0x6c, set(1),
		get(0), i32c(16), 0x6c, set(2),
		get(0), i32c(1), 0x71, i32c(-16), 0x6c, i32c(16), opI32Add, set(3))
	product := place
	for row := range 2 {
		for col := range 2 {
			sum := f32c(0)
			for k := range 2 {
				sum = code(sum, cell(1, arena+8*row+4*k), cell(2, weights+8*k+4*col), 0x94, 0x92)
			}
			product = code(product, get(3), sum, f32store(arena+8*row+4*col))
		}
	}
	var first, last []byte
	for i := range 4 {
		first = code(first, i32c(0), i32c(0), f32load(x+4*i), f32store(arena+4*i))
		last = code(last, i32c(0), i32c(0), f32load(arena+4*i), f32store(out+4*i))
	}
	return &mod{
		pages: 1, noFuel: true,
		manifest: &Manifest{
			Format: Format, Name: "layers", Compiler: "test", Host: "wazero", Arena: Region{arena, 32},
			Inputs:   []Tensor{{Name: "x", DType: Float32, Shape: []int{2, 2}, Offset: x}},
			Outputs:  []Tensor{{Name: "out", DType: Float32, Shape: []int{2, 2}, Offset: out}},
			Frozen:   []Tensor{{Name: "w", DType: Float32, Shape: []int{4, 2, 2}, Offset: weights}},
			Segments: []Segment{{}, {}, {}},
			Repeats:  []Repeat{{First: 1, Count: 1, Rounds: rounds}},
			Products: []Product{{First: 1, Count: 1, A: arena, B: weights, C: arena + 16,
				Rows: []Axis{{2, 2, 0, 2}}, Cols: []Axis{{2, 0, 1, 1}}, Terms: []Axis{{2, 1, 2, 0}},
				Moves: &Moves{A: Move{Odd: 16}, B: Move{Step: 16}, C: Move{Odd: -16}}}},
		},
		funcs:    []fn{{body: first}, {params: 1, locals: 3, body: product}, {body: last}},
		segments: []int{0, 1, 2},
	}
}

// TestRepeat multiplies four matrices by one function, on every host.
func TestRepeat(t *testing.T) {
	for name, cfg := range configs() {
		in := instance(t, load(t, layers(), cfg))
		// Two turns by 90 degrees, a scaling, a shear.
		check(t, in.WriteFrozen("w", []float32{0, 1, -1, 0, 0, 1, -1, 0, 2, 0, 0, 3, 1, 1, 0, 1}), in.WriteFloat32("x", []float32{1, 2, 3, 4}))
		for range 2 {
			got := make([]float32, 4)
			check(t, in.Step(t.Context()), in.ReadFloat32("out", got))
			if want := []float32{-2, -8, -6, -18}; !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
	}
}

func TestUnrolled(t *testing.T) {
	m := layers().manifest
	payload, err := m.Encode()
	check(t, err)
	back, err := DecodeManifest(payload)
	check(t, err)
	step, err := back.Unrolled()
	check(t, err)
	var a, b, c []uint32
	for i, p := range step.Products {
		if p.First != i+1 || p.Moves != nil {
			t.Errorf("product %d at s%d, moves %v", i, p.First, p.Moves)
		}
		a, b, c = append(a, p.A), append(b, p.B), append(c, p.C)
	}
	if !slices.Equal(a, []uint32{128, 144, 128, 144}) || !slices.Equal(b, []uint32{64, 80, 96, 112}) || !slices.Equal(c, []uint32{144, 128, 144, 128}) {
		t.Errorf("A at %v, B at %v, C at %v", a, b, c)
	}
	if len(step.Segments) != 6 || len(back.Calls()) != 6 || back.Calls()[5] != (Call{Segment: 2}) || back.Calls()[4] != (Call{1, 3, true}) {
		t.Errorf("%d segments, calls %v", len(step.Segments), back.Calls())
	}
}

// A liar's repeats are refused before they take memory, and what they reach is held to the tensors round by round.
func TestRepeatRefused(t *testing.T) {
	if _, err := Verify(layers().assemble(), Limits{}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(m *Manifest)
		want   string
	}{
		"one round":             {func(m *Manifest) { m.Repeats[0].Rounds = 1 }, "1 rounds"},
		"rounds below 0":        {func(m *Manifest) { m.Repeats[0].Rounds = -4 }, "-4 rounds"},
		"too many rounds":       {func(m *Manifest) { m.Repeats[0].Rounds = maxCalls + 1 }, "rounds, want"},
		"too many in all":       {func(m *Manifest) { m.Repeats[0].Rounds = maxCalls - 1 }, "with all rounds"},
		"rounds that wrap":      {func(m *Manifest) { m.Repeats[0].Rounds = 1 << 62 }, "rounds, want"},
		"nothing to repeat":     {func(m *Manifest) { m.Repeats[0].Count = 0 }, "0 segments"},
		"beyond the step":       {func(m *Manifest) { m.Repeats[0].Count = 3 }, "not among"},
		"a count that wraps":    {func(m *Manifest) { m.Repeats[0].Count = 1<<63 - 1 }, "not among"},
		"before the step":       {func(m *Manifest) { m.Repeats[0].First = -1 }, "from s-1"},
		"twice":                 {func(m *Manifest) { m.Repeats = append(m.Repeats, m.Repeats[0]) }, "not in order"},
		"one product too many":  {func(m *Manifest) { m.Products = append(m.Products, m.Products[0]) }, "2 products for 1"},
		"product across":        {func(m *Manifest) { m.Products[0].Count = 2 }, "beyond its repeat"},
		"product begins before": {func(m *Manifest) { m.Products[0].First, m.Products[0].Count = 0, 2 }, "others do not"},
		"product stands still":  {func(m *Manifest) { m.Products[0].Moves = nil }, "say how they move"},
		"plain product moves":   {func(m *Manifest) { m.Products[0].First = 0 }, "others do not"},
		"A leaves the arena":    {func(m *Manifest) { m.Products[0].Moves.A.Step = 16 }, "A, bytes"},
		"B leaves its tensor":   {func(m *Manifest) { m.Products[0].Moves.B.Step = 20 }, "B, bytes"},
		"B before its tensor":   {func(m *Manifest) { m.Products[0].Moves.B.Step = -16 }, "B, bytes"},
		"B below 0":             {func(m *Manifest) { m.Products[0].Moves.B.Step = -64 }, "outside of any memory"},
		"C into the weights":    {func(m *Manifest) { m.Products[0].Moves.C = Move{Step: -16} }, "C"},
		"C onto A":              {func(m *Manifest) { m.Products[0].Moves.C = Move{} }, "C overlaps A"},
		"C over 4 GiB":          {func(m *Manifest) { m.Products[0].Moves.C.Step = 1 << 32 }, "outside of any memory"},
		"steps that wrap":       {func(m *Manifest) { m.Products[0].Moves.C.Step = 1 << 62 }, "it moves by"},
		"odd ones that wrap":    {func(m *Manifest) { m.Products[0].Moves.C.Odd = -1 << 63 }, "it moves by"},
		"moves to codes":        {func(m *Manifest) { m.Products[0].Moves.NF4.Step = 1 }, "no 4-bit tensor"},
		"codes beyond the last": {func(m *Manifest) { m.Products[0].NF4, m.Products[0].Moves.NF4.Step = 1, 1 }, "4-bit tensor is 2 of 1"},
		"codes before 1":        {func(m *Manifest) { m.Products[0].NF4, m.Products[0].Moves.NF4.Step = 1, -1 }, "4-bit tensor is 0 of 1"},
		"unaligned in a round":  {func(m *Manifest) { m.Products[0].Moves.A.Odd = 2 }, "not a multiple of 4"},
		"NF4 that is none":      {func(m *Manifest) { m.Products[0].NF4 = 1 }, "is not an NF4 tensor"},
	} {
		m := layers().manifest
		c.change(m)
		if _, err := m.Encode(); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for name, c := range map[string]struct {
		change func(m *mod)
		want   string
	}{
		"a round nobody takes": {func(m *mod) { m.segments[1] = 0 }, "takes 0 parameters"},
		"two rounds":           {func(m *mod) { m.funcs[1].params = 2 }, "takes 2 parameters"},
		"a round unasked for":  {func(m *mod) { m.segments[0] = 1 }, `"s0" has parameters`},
		"an export too few":    {func(m *mod) { m.segments = m.segments[:2] }, `"s2" is not exported`},
	} {
		m := layers()
		c.change(m)
		if _, err := Verify(m.assemble(), Limits{}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestRepeatAllocations: as many rounds as are allowed cost what as many segments do, however few bytes they take.
func TestRepeatAllocations(t *testing.T) {
	m := layers().manifest
	m.Segments = m.Segments[:2]
	m.Repeats[0].Rounds = maxCalls - 1
	m.Products[0].Moves = &Moves{}
	payload, err := m.Encode()
	check(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = DecodeManifest(payload)
	check(t, err)
	runtime.ReadMemStats(&after)
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(4000*maxCalls); got > most {
		t.Errorf("%d bytes became %d, want at most %d", len(payload), got, most)
	}
}
