package wasm

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// segment0 is toy with another body for s0: it has locals i32 0 to 3.
func segment0(body ...any) *mod {
	m := toy()
	m.funcs[2] = fn{locals: 4, body: code(body...)}
	return m
}

func with(change func(m *mod)) *mod {
	m := toy()
	change(m)
	return m
}

func repeat(n int, parts ...any) []byte { return bytes.Repeat(code(parts...), n) }

func raw(id int, payload []byte) *mod {
	return with(func(m *mod) { m.raw = map[int][]byte{id: payload} })
}

// forever are loops that a lenient loader would let run on, each breaking one
// rule.
var forever = map[string]struct {
	m    *mod
	want string
}{
	"plain loop":             {segment0(opLoop, 0x40, opBr, 0, opEnd), "counted tail"},
	"conditional loop":       {segment0(opLoop, 0x40, i32c(1), opBrIf, 0, opEnd), "counted tail"},
	"no jump back":           {segment0(opLoop, 0x40, opEnd), "counted tail"},
	"second jump back":       {segment0(static(0, 0, code(get(1), opBrIf, 0), upTail(0, 1, 9))), "other than its tail"},
	"jump to outer loop":     {segment0(static(0, 0, static(1, 0, code(get(2), opBrIf, 1), upTail(1, 1, 9)), upTail(0, 1, 9))), "other than its tail"},
	"jump from a block":      {segment0(static(0, 0, code(opBlock, 0x40, opBr, 1, opEnd), upTail(0, 1, 9))), "other than its tail"},
	"counter reset":          {segment0(static(0, 0, code(i32c(0), set(0)), upTail(0, 1, 9))), "counts an open loop"},
	"counter reset by tee":   {segment0(static(0, 0, code(i32c(0), tee(0), opDrop), upTail(0, 1, 9))), "counts an open loop"},
	"counter reset deeper":   {segment0(static(0, 0, static(1, 0, code(i32c(0), set(0)), upTail(1, 1, 9)), upTail(0, 1, 9))), "counts an open loop"},
	"shared counter":         {segment0(static(0, 0, static(0, 0, nil, upTail(0, 1, 3)), upTail(0, 1, 9))), "counts an open loop"},
	"counter not set":        {segment0(opLoop, 0x40, upTail(0, 1, 9), opEnd), "neither set to a constant"},
	"other local set":        {segment0(i32c(0), set(1), opLoop, 0x40, upTail(0, 1, 9), opEnd), "neither set to a constant"},
	"set to a variable":      {segment0(get(1), set(0), opLoop, 0x40, downPosTail(0, 1), opEnd), "neither set to a constant"},
	"set, then another":      {segment0(i32c(0), set(0), i32c(9), set(1), opLoop, 0x40, upTail(0, 1, 9), opEnd), "neither set to a constant"},
	"step zero":              {segment0(static(0, 0, nil, upTail(0, 0, 9))), "loop step 0"},
	"step negative":          {segment0(static(0, 0, nil, upTail(0, -1, 9))), "loop step -1"},
	"step huge":              {segment0(static(0, 0, nil, upTail(0, 1<<30, 9))), "loop step"},
	"limit negative":         {segment0(static(0, 0, nil, upTail(0, 1, -1))), "loop limit -1"},
	"limit huge":             {segment0(static(0, 0, nil, upTail(0, 1, 1<<30))), "loop limit"},
	"start negative":         {segment0(static(0, -5, nil, upTail(0, 1, 9))), "starts at -5"},
	"down past zero":         {segment0(static(0, 9, nil, downTail(0, 2))), "never meets 0"},
	"down from zero":         {segment0(static(0, 0, nil, downTail(0, 1))), "never meets 0"},
	"tail on two locals":     {segment0(static(0, 0, nil, code(get(1), i32c(1), opI32Add, tee(0), i32c(9), opI32LtU, opBrIf, 0))), "counted tail"},
	"tail without constant":  {segment0(static(0, 0, nil, code(get(0), get(1), opI32Add, tee(0), i32c(9), opI32LtU, opBrIf, 0))), "counted tail"},
	"tail against a local":   {segment0(static(0, 0, nil, code(get(0), i32c(1), opI32Add, tee(0), get(1), opI32LtU, opBrIf, 0))), "counted tail"},
	"tail greater":           {segment0(static(0, 0, nil, code(get(0), i32c(1), opI32Add, tee(0), i32c(9), opI32GtS, opBrIf, 0))), "counted tail"},
	"tail adds, tests zero":  {segment0(static(0, 8, nil, code(get(0), i32c(1), opI32Add, tee(0), opBrIf, 0))), "counted tail"},
	"tail inside out":        {segment0(static(0, 0, code(get(0), i32c(1), opI32Add, tee(0), i32c(9), opI32LtU), code(opBlock, 0x40, opBrIf, 1, opEnd))), "counted tail"},
	"tail reaches outside":   {segment0(i32c(0), get(0), i32c(1), opI32Add, set(0), opLoop, 0x40, get(0), i32c(9), opI32LtU, opBrIf, 0, opEnd), "counted tail"},
	"long":                   {segment0(static(0, 0, nil, upTail(0, 1, 1<<29))), "costs up to"},
	"long nest":              {segment0(static(0, 0, static(1, 0, static(2, 0, nil, upTail(2, 1, 1<<20)), upTail(1, 1, 1<<20)), upTail(0, 1, 1<<20))), "costs up to"},
	"longest nest":           {segment0(static(0, 0, static(1, 0, static(2, 0, nil, upTail(2, 1, 1<<30-1)), upTail(1, 1, 1<<30-1)), upTail(0, 1, 1<<30-1))), "costs up to 18446744073709551615"},
	"budget: cheap":          {segment0(dynamic(0, 1, 27, nil)), "below the iteration's cost of 28"},
	"budget: big step":       {segment0(dynamic(0, 4, 7, code(1, 1, 1))), "below the iteration's cost of 31"},
	"budget: free":           {segment0(dynamic(0, 8, 0, nil)), "written outside a charge"},
	"budget: negative":       {segment0(dynamic(0, 8, -5, nil)), "written outside a charge"},
	"budget: huge charge":    {segment0(dynamic(0, 8, 1<<20, nil)), "written outside a charge"},
	"budget: other local":    {segment0(chargeSeq(1, 99), opLoop, 0x40, downPosTail(0, 1), opEnd), "must count its charged local"},
	"budget: counts up":      {segment0(chargeSeq(0, 99), opLoop, 0x40, upTail(0, 1, 9), opEnd), "must count its charged local"},
	"budget: ends on zero":   {segment0(chargeSeq(0, 99), opLoop, 0x40, downTail(0, 1), opEnd), "must count its charged local"},
	"budget: charged before": {segment0(chargeSeq(0, 99), 1, opLoop, 0x40, downPosTail(0, 1), opEnd), "neither set to a constant"},
	"budget: refilled":       {segment0(i64c(1<<40), opGlobalSet, 0), "written outside a charge"},
	"budget: inner loop":     {segment0(dynamic(0, 1, 100, static(1, 0, nil, upTail(1, 1, 100)))), "below the iteration's cost of"},
	"budget: none declared":  {with(func(m *mod) { m.noFuel = true }), "declares no budget"},
	"recursion":              {segment0(call(2)), "only lower indices"},
	"mutual recursion":       {with(func(m *mod) { m.funcs[0].body = call(1); m.funcs[0].params = 0; m.funcs[1].body = call(0) }), "only lower indices"},
	"call_indirect":          {segment0(i32c(0), 0x11, 0, 0), "opcode 0x11"},
	"tail call":              {segment0(0x12, 0), "opcode 0x12"},
	"br_table":               {segment0(i32c(0), 0x0e, 0, 0), "opcode 0xe"},
	"copy of any length":     {segment0(i32c(0), i32c(0), get(0), 0xfc, 10, 0, 0), "constant length"},
	"fill of any length":     {segment0(i32c(0), i32c(0), get(0), 0xfc, 11, 0), "constant length"},
	"copies":                 {segment0(static(0, 0, code(i32c(0), i32c(0), i32c(65536), 0xfc, 10, 0, 0), upTail(0, 1, 1<<20))), "costs up to"},
}

// hostile are modules that reach beyond what a program may have.
var hostile = map[string]struct {
	m    *mod
	want string
}{
	"import":          {raw(2, code(1, 3, []byte("env"), 1, []byte("f"), 0, 0)), "import section"},
	"memory import":   {raw(2, code(1, 3, []byte("env"), 1, []byte("m"), 2, 0, 1)), "import section"},
	"empty import":    {raw(2, []byte{0}), "import section"},
	"start":           {raw(8, []byte{2}), "start section"},
	"table":           {raw(4, []byte{1, 0x70, 0, 1}), "table section"},
	"element":         {raw(9, []byte{0}), "element section"},
	"growable memory": {raw(5, []byte{1, 1, 1, 2}), "want a fixed size"},
	"open memory":     {raw(5, []byte{1, 0, 1}), "declared maximum"},
	"shared memory":   {raw(5, []byte{1, 3, 1, 1}), "declared maximum"},
	"memory64":        {raw(5, []byte{1, 5, 1, 1}), "declared maximum"},
	"two memories":    {raw(5, []byte{2, 1, 1, 1, 1, 1, 1}), "2 memories, limit 1"},
	"no memory":       {raw(5, []byte{0}), "0 memories"},
	"huge memory":     {with(func(m *mod) { m.pages = 65536 }), "65536 pages, limit 16384"},
	"memory.grow":     {segment0(i32c(1), 0x40, 0, opDrop), "opcode 0x40"},
	"memory.size":     {segment0(0x3f, 0, opDrop), "opcode 0x3f"},
	"memory.init":     {segment0(i32c(0), i32c(0), i32c(0), 0xfc, 8, 0, 0), "opcode 0xfc 8"},
	"data.drop":       {segment0(0xfc, 9, 0), "opcode 0xfc 9"},
	"table.size":      {segment0(0xfc, 16, 0, opDrop), "opcode 0xfc 16"},
	"ref.null":        {segment0(0xd0, 0x70, opDrop), "opcode 0xd0"},
	"typed select":    {segment0(i32c(0), i32c(0), i32c(0), 0x1c, 1, 0x7f, opDrop), "opcode 0x1c"},
	"relaxed simd":    {segment0(0xfd, 0x85, 0x02), "a program that is not fused"},
	"atomics":         {segment0(0xfe, 3, 0), "opcode 0xfe"},
	"exceptions":      {segment0(0x08, 0), "opcode 0x8"},
	"multi-memory":    {segment0(i32c(0), 0x2a, 0x42, 0, 0, opDrop), "alignment"},
	"copy between":    {segment0(i32c(0), i32c(0), i32c(1), 0xfc, 10, 0, 1), "memory index 1"},
	"typed loop":      {segment0(i32c(0), set(0), opLoop, 0x7f, i32c(1), opEnd, opDrop), "block type"},
	"second global":   {raw(6, []byte{2, 0x7e, 1, opI64Const, 0, opEnd, 0x7e, 1, opI64Const, 0, opEnd}), "2 globals, limit 1"},
	"i32 global":      {raw(6, []byte{1, 0x7f, 1, opI32Const, 0, opEnd}), "the loop budget"},
	"full budget":     {raw(6, []byte{1, 0x7e, 1, opI64Const, 9, opEnd}), "the loop budget"},
	"hidden budget":   {raw(7, code(4, 6, []byte("memory"), 2, 0, 2, []byte("p0"), 0, 1, 2, []byte("s0"), 0, 2, 2, []byte("s1"), 0, 3)), `exported as "fuel"`},
	"more exports":    {raw(7, code(6, 6, []byte("memory"), 2, 0, 4, []byte("fuel"), 3, 0, 2, []byte("p0"), 0, 1, 2, []byte("s0"), 0, 2, 2, []byte("s1"), 0, 3, 2, []byte("s2"), 0, 3)), "6 exports"},
	"missing segment": {with(func(m *mod) { m.segments = m.segments[:1] }), `"s1" is not exported`},
	"segment takes":   {with(func(m *mod) { m.segments[1] = 0 }), "has parameters"},
	"segment nowhere": {with(func(m *mod) { m.segments[1] = 4 }), "function 4 of 4"},
	"passive data":    {raw(11, []byte{1, 1, 0}), "want 0: active"},
	"data outside":    {raw(11, code(1, 0, i32c(65535), opEnd, 2, 1, 1)), "memory at 65536"},
	"data at -1":      {raw(11, code(1, 0, i32c(-1), opEnd, 1, 1)), "memory at 65536"},
	"data by global":  {raw(11, []byte{1, 0, 0x23, 0, opEnd, 0}), "not an i32.const"},
	"no manifest":     {with(func(m *mod) { m.manifest = nil }), "no custom section"},
	"two manifests": {with(func(m *mod) {
		s, _ := m.manifest.AppendSection(nil)
		m.extra = [][]byte{s}
	}), "twice"},
	"section twice":    {with(func(m *mod) { m.extra = [][]byte{section(5, []byte{1, 1, 1, 1})} }), "out of order or twice"},
	"unknown section":  {with(func(m *mod) { m.extra = [][]byte{section(13, nil)} }), "unknown section"},
	"section too long": {with(func(m *mod) { m.extra = [][]byte{{0, 100, 1}} }), "ends early"},
	"section padded":   {raw(5, []byte{1, 1, 1, 1, 0}), "left over"},
	"bodies missing":   {raw(10, []byte{0}), "0 bodies for 4"},
	"many functions":   {raw(3, u32(1<<30)), "limit 12288"},
	"many locals":      {with(func(m *mod) { m.funcs[2] = fn{locals: 1 << 30} }), "locals, limit"},
	"many joins":       {with(func(m *mod) { m.funcs[2] = fn{locals: 1000, body: repeat(40, get(1), opIf, 0x40, opEnd)} }), "joins of control flow"},
	"many joins in all": {with(func(m *mod) {
		for range 20 {
			m.funcs = append(m.funcs, fn{locals: 400, body: repeat(20, get(1), opIf, 0x40, opEnd)})
		}
	}), "joins of control flow"},
	"deep nest": {segment0([]byte(strings.Repeat("\x02\x40", 80)), []byte(strings.Repeat("\x0b", 80))), "nested deeper than 64"},
	"deep calls": {with(func(m *mod) {
		m.funcs = []fn{{}, {}, {}, {}}
		m.noFuel = true
		for i := range 20 {
			m.funcs = append(m.funcs, fn{body: call(3 + i)})
		}
	}), "calls nested deeper than 16"},
	"else alone":      {segment0(opElse), "else without if"},
	"else twice":      {segment0(i32c(0), opIf, 0x40, opElse, opElse, opEnd), "else without if"},
	"branch too deep": {segment0(opBr, 5), "branch depth 5"},
	"body ends early": {segment0(opEnd), "after the end"},
	"no end":          {segment0(opBlock, 0x40), "ends early"},
	"tensor outside":  {with(func(m *mod) { m.manifest.State[0].Offset = PageSize - 16 }), "memory at 65536"},
	"arena outside":   {with(func(m *mod) { m.manifest.Arena.Size = PageSize }), "memory at 65536"},
}

func TestRefused(t *testing.T) {
	for _, table := range []map[string]struct {
		m    *mod
		want string
	}{forever, hostile} {
		for name, c := range table {
			_, err := Verify(c.m.assemble(), Limits{})
			if !errors.Is(err, ErrRefused) || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
			if _, err := Load(t.Context(), c.m.assemble(), Config{}); !errors.Is(err, ErrRefused) {
				t.Errorf("%s: Load: %v", name, err)
			}
		}
	}
}

// TestRefusedByEngine: types are checked by the engine, after the verifier.
func TestRefusedByEngine(t *testing.T) {
	for name, m := range map[string]*mod{
		"operand missing": segment0(opDrop),
		"wrong type":      segment0(f32c(1), set(0)),
		"unknown local":   segment0(i32c(0), set(77)),
		"value left":      segment0(i32c(1)),
		"float counter":   segment0(f32c(1), i32c(0), set(0), opLoop, 0x40, opDrop, upTail(0, 1, 9), opEnd),
		"unknown simd":    segment0(0xfd, 0x9a, 0x01),
	} {
		if _, err := Load(t.Context(), m.assemble(), Config{}); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRefusedByLimits(t *testing.T) {
	program := toy().assemble()
	for _, c := range []struct {
		limits Limits
		want   string
	}{
		{Limits{ModuleBytes: len(program) - 1}, "bytes, limit"},
		{Limits{SegmentCost: 60}, "units, limit 60"},
	} {
		if _, err := Verify(program, c.limits); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.limits, err)
		}
	}
	m := toy()
	m.pages = 3
	if _, err := Verify(m.assemble(), Limits{MemoryPages: 2}); err == nil {
		t.Error("3 pages accepted, limit 2")
	}
	for cut := range program {
		if _, err := Verify(program[:cut], Limits{}); !errors.Is(err, ErrRefused) {
			t.Fatalf("first %d of %d bytes: %v", cut, len(program), err)
		}
	}
}

// TestLoopBounds holds proved bounds against counted reality: random nests of
// loops count their innermost runs in memory.
func TestLoopBounds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	const counter = 1024
	bump := func(at, by int) []byte { // 27 units
		return code(i32c(0), i32c(0), 0x28, 2, u32(at), i32c(by), opI32Add, 0x36, 2, u32(at))
	}
	for range 60 {
		body, trips := code(bump(counter, 1)), 1
		for l := range 1 + rnd.IntN(3) {
			c, step, limit := rnd.IntN(20), 1+rnd.IntN(6), rnd.IntN(20)
			n := 0 // count naively, as the instructions say
			switch rnd.IntN(4) {
			case 0:
				for i := c; ; {
					n++
					if i += step; i >= limit {
						break
					}
				}
				body = static(l, c, body, upTail(l, step, limit))
			case 1:
				n = 1 + c
				body = static(l, n*step, body, downTail(l, step))
			case 2:
				for i := c; ; {
					n++
					if i -= step; i <= 0 {
						break
					}
				}
				body = static(l, c, body, downPosTail(l, step))
			case 3: // a forward exit and a continue, within a static loop
				n = c + 1
				body = static(l, 0, code(opBlock, 0x40, get(3), opBrIf, 0, body, opEnd), upTail(l, 1, n))
			}
			trips *= n
		}
		m := segment0(body)
		p := load(t, with(func(d *mod) {
			*d = *m
			d.manifest.Outputs = append(d.manifest.Outputs, Tensor{Name: "runs", DType: Int32, Shape: []int{}, Offset: counter})
		}), Config{})
		in := instance(t, p)
		fillToy(t, in)
		check(t, in.Step(t.Context()))
		runs := make([]int32, 1)
		check(t, in.ReadInt32("runs", runs))
		if int(runs[0]) != trips {
			t.Fatalf("%d runs, counted %d", runs[0], trips)
		}
		if cost := p.Report().Segments[0].Cost; cost < uint64(27*trips) {
			t.Fatalf("proved cost %d, but %d units ran", cost, 27*trips)
		}
		check(t, p.Close())
	}
}

// TestBudget: a budgeted loop runs as often as its counter says, and the budget
// that it draws pays for every run.
func TestBudget(t *testing.T) {
	const runs, charge = 1024, 60
	const least = 2000 // the toy's other segments need some
	for _, c := range []struct{ n, step, want int }{
		{1, 1, 1}, {10, 1, 10}, {10, 3, 4}, {9, 3, 3}, {0, 1, 1}, {1000, 7, 143}, {5, 1000, 1}, {1 << 20, 1 << 10, 1024},
	} {
		m := segment0(i32c(c.n), set(0), dynamic(0, c.step, charge, code(i32c(0), i32c(0), 0x28, 2, u32(runs), i32c(1), opI32Add, 0x36, 2, u32(runs))))
		m.manifest.Outputs = append(m.manifest.Outputs, Tensor{Name: "runs", DType: Int32, Shape: []int{}, Offset: runs})
		for name, limit := range map[string]uint64{"enough": charge*uint64(c.n) + 500, "short": charge * uint64(c.n)} {
			p, err := Load(t.Context(), m.assemble(), Config{Limits: Limits{SegmentCost: max(limit, least)}})
			check(t, err)
			in := instance(t, p)
			fillToy(t, in)
			err = in.Step(t.Context())
			if limit > least && name == "short" {
				if !errors.Is(err, ErrTrap) {
					t.Errorf("n=%d step=%d with a short budget: %v", c.n, c.step, err)
				}
			} else {
				got := make([]int32, 1)
				check(t, err, in.ReadInt32("runs", got))
				if int(got[0]) != c.want {
					t.Errorf("n=%d step=%d: %d runs, want %d", c.n, c.step, got[0], c.want)
				}
			}
			check(t, p.Close())
		}
	}
}
