package kernel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// defineLoop computes a loop as its definition says, one point after the other: all values first, then it stores.
func defineLoop(l *Loop, memory []byte) {
	type stored struct {
		o  *Result
		at int
		v  uint32
	}
	var stores []stored
	counters := make([]int, len(l.Sizes))
	at := func(o *Operand) int {
		e := 0
		for i, c := range counters {
			e += c * o.Strides[i]
		}
		return o.At + 4*e
	}
	point := func() []uint32 {
		values := make([]uint32, len(l.Steps))
		for i, s := range l.Steps {
			in := func(o int) uint32 { return values[s.In[o]] }
			switch s.Op {
			case Load:
				values[i] = binary.LittleEndian.Uint32(memory[at(&l.Leaves[s.Leaf]):])
			case Const:
				values[i] = s.Bits
			case Select:
				values[i] = in(0)&in(1) | ^in(0)&in(2)
			default:
				if s.Op.Operands() == 1 {
					values[i] = plain().unary[s.Op](in(0))
				} else {
					values[i] = plain().binary[s.Op](in(0), in(1))
				}
			}
		}
		return values
	}
	var nest func(d, end int, body func())
	nest = func(d, end int, body func()) {
		if d == end {
			body()
			return
		}
		for counters[d] = range l.Sizes[d] {
			nest(d+1, end, body)
		}
		counters[d] = 0
	}
	n := len(l.Sizes)
	nest(0, l.Kept, func() {
		if l.Reduce == None {
			v := point()
			for i := range l.Outs {
				stores = append(stores, stored{&l.Outs[i], at(&l.Outs[i].Operand), v[l.Outs[i].Value]})
			}
			return
		}
		o := &l.Outs[0]
		op := plain().binary[l.Reduce]
		neutral, _ := l.Reduce.neutral()
		if l.Order != Row {
			acc := neutral
			nest(l.Kept, n, func() { acc = op(acc, point()[o.Value]) })
			stores = append(stores, stored{o, at(&o.Operand), acc})
			return
		}
		// The partial results, as vectors of four lanes: four of them, or one, and one for single values.
		last, vectors := l.Sizes[n-1], 1
		if last >= 16 {
			vectors = 4
		}
		var acc [5][4]uint32
		for i := range acc {
			acc[i] = [4]uint32{neutral, neutral, neutral, neutral}
		}
		nest(l.Kept, n, func() {
			v, lane, i := 0, 0, counters[n-1]
			switch {
			case vectors == 4 && i < last/16*16:
				v, lane = i/4%4, i%4
			case i < last/4*4:
				lane = i % 4
			default:
				v = 4
			}
			acc[v][lane] = op(acc[v][lane], point()[o.Value])
		})
		merge := func(x, y [4]uint32) (z [4]uint32) {
			for i := range z {
				z[i] = op(x[i], y[i])
			}
			return z
		}
		t := acc[0]
		if vectors == 4 {
			t = merge(merge(acc[0], acc[1]), merge(acc[2], acc[3]))
		}
		t = merge(t, [4]uint32{t[2], t[3], t[0], t[1]})
		t = merge(t, [4]uint32{t[1], t[0], t[3], t[2]})
		if last%4 != 0 {
			t = merge(t, acc[4])
		}
		stores = append(stores, stored{o, at(&o.Operand), t[0]})
	})
	for _, s := range stores {
		binary.LittleEndian.PutUint32(memory[s.at:], s.v)
	}
}

// layout is memory of a random operand: loops in any order, some that do not move it, backwards, with gaps.
type layout struct {
	strides  []int
	from, to int // elements before and behind the first
}

func randomLayout(rnd *rand.Rand, sizes []int, moves func(i int) bool) (l layout) {
	l.strides = make([]int, len(sizes))
	order := rnd.Perm(len(sizes))
	if rnd.IntN(3) > 0 { // as most tensors are
		slices.Sort(order)
		slices.Reverse(order)
	}
	next := 1
	if rnd.IntN(6) == 0 {
		next = 1 + rnd.IntN(3)
	}
	for _, i := range order {
		if !moves(i) {
			continue
		}
		l.strides[i] = next
		next *= sizes[i]
		if rnd.IntN(8) == 0 {
			next += rnd.IntN(20)
		}
		if rnd.IntN(12) == 0 {
			l.strides[i] = -l.strides[i]
		}
		if d := l.strides[i] * (sizes[i] - 1); d < 0 {
			l.from -= d
		} else {
			l.to += d
		}
	}
	l.to++
	return l
}

// randomLoop makes a loop and the memory it needs: operands side by side or with gaps, in any order.
func randomLoop(rnd *rand.Rand) (l Loop, memory int) {
	for range 1 + rnd.IntN(4) {
		l.Sizes = append(l.Sizes, 1+rnd.IntN(9))
	}
	big := rnd.IntN(len(l.Sizes))
	l.Sizes[big] = 1 + rnd.IntN(200)
	if last := len(l.Sizes) - 1; rnd.IntN(2) == 0 {
		l.Sizes[last] = []int{16, 32, 48, 64, 128, 30, 600, 2100}[rnd.IntN(8)]
		if l.Sizes[last] > 200 {
			l.Sizes[big] = min(l.Sizes[big], 4)
			if big == last {
				l.Sizes[last] = 3000
			}
		}
	}
	n := len(l.Sizes)
	for i := 0; points(l.Sizes) > 8000; i++ {
		l.Sizes[i%n] = max(1, l.Sizes[i%n]/2)
	}
	l.Kept = n
	if rnd.IntN(2) == 0 {
		l.Reduce = []Op{Add, Mul, Max, Min}[rnd.IntN(4)]
		if rnd.IntN(2) == 0 {
			l.Reduce = Add
		}
		l.Kept = rnd.IntN(n)
		orders := []Order{Serial}
		if l.Kept > 0 {
			orders = append(orders, Columns)
		}
		if l.Sizes[n-1] >= 4 {
			orders = append(orders, Row)
		}
		l.Order = orders[rnd.IntN(len(orders))]
	}
	put := func(o *Operand, a layout) {
		o.Strides = a.strides
		if rnd.IntN(3) == 0 {
			memory += 4 * rnd.IntN(9)
		}
		o.At = memory + 4*a.from
		memory += 4 * (a.from + a.to)
	}
	var inPlace []Operand
	for range 1 + rnd.IntN(4) {
		var o Operand
		still := rnd.IntN(1 << n)
		if rnd.IntN(2) == 0 {
			still = 0
		}
		put(&o, randomLayout(rnd, l.Sizes, func(i int) bool { return still>>i&1 == 0 }))
		l.Leaves = append(l.Leaves, o)
		if still == 0 && l.Reduce == None {
			inPlace = append(inPlace, o)
		}
	}
	l.Steps = randomSteps(rnd, len(l.Leaves))
	outs := 1
	if l.Reduce == None {
		outs += rnd.IntN(3)
	}
	for range outs {
		r := Result{Value: len(l.Steps) - 1 - rnd.IntN(3)}
		if k := len(inPlace); k > 0 && rnd.IntN(2) == 0 {
			r.Operand = inPlace[k-1]
			inPlace = inPlace[:k-1]
			l.Outs = append(l.Outs, r)
			continue
		}
		put(&r.Operand, randomLayout(rnd, l.Sizes, func(i int) bool { return i < l.Kept }))
		l.Outs = append(l.Outs, r)
	}
	return l, memory
}

// kinds are what an operation takes and gives: floats, integers, bools. Bits of a float are not looked at, as those
// of a NaN are left open.
func kinds(op Op) (in, out string) {
	switch {
	case op >= Neg && op <= Round:
		return "f", "f"
	case op == IsFinite || op == IsNaN:
		return "f", "b"
	case op == INeg || op == IAbs:
		return "i", "i"
	case op == IntToFloat:
		return "i", "f"
	case op == FloatToInt:
		return "f", "i"
	case op >= Add && op <= Min:
		return "ff", "f"
	case op >= Eq && op <= Ge:
		return "ff", "b"
	case op >= IAdd && op <= IMin:
		return "ii", "i"
	case op >= IEq && op <= IGe:
		return "ii", "b"
	case op == Not:
		return "b", "b"
	case op == And || op == Or || op == Xor:
		return "bb", "b"
	case op == Select:
		return "bff", "f"
	}
	panic("an operation of no kind")
}

func randomSteps(rnd *rand.Rand, leaves int) (steps []Step) {
	of := map[byte][]int{} // steps by kind
	add := func(s Step, kind byte) {
		of[kind] = append(of[kind], len(steps))
		steps = append(steps, s)
	}
	for _, kind := range []byte("ffi") {
		add(Step{Op: Load, Leaf: rnd.IntN(leaves)}, kind)
	}
	add(Step{Op: Const, Bits: math.Float32bits(special[rnd.IntN(len(special))])}, "fi"[rnd.IntN(2)])
	for range 1 + rnd.IntN(12) {
		op := Neg + Op(rnd.IntN(int(lastOp-Neg)+1))
		if rnd.IntN(2) == 0 {
			op = []Op{Add, Sub, Mul, Max, Exp, Select}[rnd.IntN(6)]
		}
		in, out := kinds(op)
		s := Step{Op: op}
		for o := range in {
			k := of[in[o]]
			if len(k) == 0 {
				add(Step{Op: Lt, In: [3]int{0, 1}}, 'b')
				k = of['b']
			}
			s.In[o] = k[max(0, len(k)-1-rnd.IntN(4))]
		}
		add(s, out[0])
	}
	return steps
}

func points(sizes []int) int {
	n := 1
	for _, s := range sizes {
		n *= s
	}
	return n
}

// TestLoops holds every kernel against the definition of a loop, over random ones, alone and in a team.
func TestLoops(t *testing.T) {
	rnd := rand.New(rand.NewPCG(20, 21))
	team := NewTeam(3)
	defer team.Stop()
	for i := range 400 {
		l, size := randomLoop(rnd)
		pl, err := PrepareLoop(l, size)
		if err != nil {
			t.Fatalf("loop %d, %+v: %v", i, l, err)
		}
		memory := make([]float32, size/4)
		fill(rnd, bytesOf(memory), .05)
		want := slices.Clone(memory)
		defineLoop(&l, bytesOf(want))
		if i%2 == 0 {
			pl.work = 1 << 30 // worth a team
		}
		for _, k := range append(Native(), Plain) {
			for _, with := range []*Team{nil, team} {
				got := slices.Clone(memory)
				if err := k.RunLoop(t.Context(), pl, bytesOf(got), with); err != nil {
					t.Fatal(err)
				}
				same(t, fmt.Sprintf("loop %d, %s, %+v", i, k.name, l), bytesOf(got), bytesOf(want))
			}
		}
	}
}

// TestPrepareLoop refuses what would reach outside the memory, or means nothing.
func TestPrepareLoop(t *testing.T) {
	fine := func() Loop {
		return Loop{Sizes: []int{4, 20}, Kept: 2,
			Leaves: []Operand{{At: 0, Strides: []int{20, 1}}, {At: 320, Strides: []int{-20, 1}}},
			Steps:  []Step{{Op: Load}, {Op: Load, Leaf: 1}, {Op: Const}, {Op: Select, In: [3]int{1, 0, 2}}},
			Outs:   []Result{{Operand{At: 640, Strides: []int{20, 1}}, 3}}}
	}
	const size = 960
	good := fine()
	good.Leaves[1].At += 240
	if _, err := PrepareLoop(good, size); err != nil {
		t.Fatal(err)
	}
	reduce := func(l *Loop) {
		l.Kept, l.Reduce, l.Outs[0].Strides, l.Order = 1, Add, []int{1, 0}, Row
	}
	reduced := good
	reduced.Outs = slices.Clone(good.Outs)
	reduce(&reduced)
	if _, err := PrepareLoop(reduced, size); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(l *Loop){
		"a size of 0":              func(l *Loop) { l.Sizes[0] = 0 },
		"a negative size":          func(l *Loop) { l.Sizes[1] = -20 },
		"a huge size":              func(l *Loop) { l.Sizes[0] = 1 << 29 },
		"too many points":          func(l *Loop) { l.Sizes[0], l.Sizes[1] = 1<<28, 1<<28 },
		"a leaf before memory":     func(l *Loop) { l.Leaves[1].At = 236 },
		"a leaf behind memory":     func(l *Loop) { l.Leaves[0].At = size - 4*79 + 4 },
		"an address below 0":       func(l *Loop) { l.Leaves[0].At = -4 },
		"an odd address":           func(l *Loop) { l.Leaves[0].At = 2 },
		"a huge address":           func(l *Loop) { l.Leaves[0].At = math.MaxInt &^ 3 },
		"a result behind memory":   func(l *Loop) { l.Outs[0].At += 4 },
		"a huge stride":            func(l *Loop) { l.Leaves[0].Strides[0] = math.MaxInt },
		"the least stride":         func(l *Loop) { l.Leaves[0].Strides[0] = math.MinInt },
		"too few strides":          func(l *Loop) { l.Leaves[0].Strides = []int{1} },
		"too few of a result":      func(l *Loop) { l.Outs[0].Strides = nil },
		"no operation":             func(l *Loop) { l.Steps[3].Op = None },
		"an unknown operation":     func(l *Loop) { l.Steps[3].Op = lastOp + 1 },
		"itself as an operand":     func(l *Loop) { l.Steps[3].In[2] = 3 },
		"a negative operand":       func(l *Loop) { l.Steps[3].In[0] = -1 },
		"no such leaf":             func(l *Loop) { l.Steps[0].Leaf = 2 },
		"a negative leaf":          func(l *Loop) { l.Steps[0].Leaf = -1 },
		"no such value":            func(l *Loop) { l.Outs[0].Value = 4 },
		"no result":                func(l *Loop) { l.Outs = nil },
		"kept and nothing reduced": func(l *Loop) { l.Kept = 1 },
		"too many loops":           func(l *Loop) { l.Sizes = slices.Repeat(l.Sizes, 9) },
		"too many steps":           func(l *Loop) { l.Steps = slices.Repeat(l.Steps, 1025) },
		"too many results":         func(l *Loop) { l.Outs = slices.Repeat(l.Outs, 257) },
		"two results of one":       func(l *Loop) { reduce(l); l.Outs = slices.Repeat(l.Outs, 2) },
		"a result that stays":      func(l *Loop) { l.Outs[0].Strides[0] = 0 },
		"a result that moves":      func(l *Loop) { reduce(l); l.Outs[0].Strides[1] = 1 },
		"reduced by division":      func(l *Loop) { reduce(l); l.Reduce = Div },
		"nothing reduced over":     func(l *Loop) { reduce(l); l.Kept = 2 },
		"less than nothing kept":   func(l *Loop) { reduce(l); l.Kept = -1 },
		"columns of no results":    func(l *Loop) { reduce(l); l.Kept, l.Order, l.Outs[0].Strides[0] = 0, Columns, 0 },
		"an unknown order":         func(l *Loop) { reduce(l); l.Order = Row + 1 },
		"a row of 3":               func(l *Loop) { reduce(l); l.Sizes[1] = 3 },
	} {
		l := fine()
		l.Leaves[1].At += 240
		spoil(&l)
		if _, err := PrepareLoop(l, size); err == nil {
			t.Errorf("%s: prepared", name)
		}
	}
}

// TestLoopMemory: a plan is for one size of memory.
func TestLoopMemory(t *testing.T) {
	l := Loop{Sizes: []int{8}, Kept: 1, Leaves: []Operand{{Strides: []int{1}}}, Steps: []Step{{Op: Load}},
		Outs: []Result{{Operand{At: 32, Strides: []int{1}}, 0}}}
	pl, err := PrepareLoop(l, 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := Plain.RunLoop(t.Context(), pl, make([]byte, 60), nil); err == nil {
		t.Error("ran in a smaller memory")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Plain.RunLoop(ctx, pl, make([]byte, 64), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
