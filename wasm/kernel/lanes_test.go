package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// TestLanesLayout: the assembly reads the fields where they are.
func TestLanesLayout(t *testing.T) {
	var l lanes
	for i, got := range []uintptr{unsafe.Offsetof(l.at), unsafe.Offsetof(l.step), unsafe.Offsetof(l.groups),
		unsafe.Offsetof(l.rows), unsafe.Offsetof(l.jump), unsafe.Sizeof(l)} {
		if want := []uintptr{0, 32, 56, 64, 72, unsafe.Sizeof(laneWords{})}[i]; unsafe.Sizeof(want) == 8 && got != want {
			t.Errorf("offset %d is %d, want %d", i, got, want)
		}
	}
}

// kernelsOfLanes are those that run here beside the plain one.
func kernelsOfLanes() map[string]*laneKernels {
	all := map[string]*laneKernels{}
	for _, k := range Native() {
		if k.Loops() {
			all[k.name] = k.lanes
		}
	}
	return all
}

// edges are arguments where an operation changes what it does: bounds that arguments are clamped to, where results
// overflow, become denormal or nothing, where integers end.
var edges = []float32{89, -104, 88.72284, 88.0296, -87.33655, -103.97208, -0.34657, 0.34657, 7.9053111, -7.9053111,
	4, -4, 0.70710677, 1, 0.5, 1 << 31, -1 << 31, 1 << 23, -1 << 23, 1.5, 2.5, -0.5}

// patterns are bits that an operation may get wrong: special values, the neighbours of edges, and powers of two.
func patterns() (all []uint32) {
	for _, v := range special {
		all = append(all, math.Float32bits(v))
	}
	for _, v := range edges {
		for d := range uint32(9) {
			all = append(all, math.Float32bits(v)+d-4)
		}
	}
	for i := range 32 {
		all = append(all, 1<<i, 1<<i-1, -(1 << i))
	}
	return all
}

// run applies an operation to slices of whole groups; a slice of one group stands for many.
func (k *laneKernels) run(op Op, dst []uint32, in ...[]uint32) {
	l := lanes{groups: uintptr(len(dst) / group), rows: 1}
	l.at[0] = unsafe.Pointer(&dst[0])
	for i, v := range in {
		l.at[1+i] = unsafe.Pointer(&v[0])
		if len(v) == len(dst) {
			l.step[i] = 4 * group
		}
	}
	k.ops[op](l.words())
}

// sameLanes compares results; floats that are NaN are one.
func sameLanes(t *testing.T, what string, float bool, got, want []uint32, in ...[]uint32) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for i, w := range want {
		if g := got[i]; g != w && !(float && g&^signBit > 0x7f800000 && w&^signBit > 0x7f800000) {
			var of []string
			for _, v := range in {
				x := v[i%len(v)]
				of = append(of, fmt.Sprintf("%#x (%v)", x, floatOf(x)))
			}
			t.Fatalf("%s: value %d of %v is %#x (%v), want %#x (%v)", what, i, of, g, floatOf(g), w, floatOf(w))
		}
	}
}

// TestUnaryLanes holds operations of one operand against plain Go: over bits from 0 to 2^32, every 1543rd of them, over
// special values, and over all that is near an edge.
func TestUnaryLanes(t *testing.T) {
	const stride = 1543
	arguments := patterns()
	for _, v := range edges {
		for d := range uint32(1 << 12) {
			arguments = append(arguments, math.Float32bits(v)+d-1<<11)
		}
	}
	for b := uint64(0); b < 1<<32; b += stride {
		arguments = append(arguments, uint32(b))
	}
	arguments = arguments[:len(arguments)/group*group]
	want, got := make([]uint32, len(arguments)), make([]uint32, len(arguments))
	for op := range plain().unary {
		plain().lanes.run(op, want, arguments)
		float := true
		if op != opCopy {
			_, out := kinds(op)
			float = out == "f"
		}
		for name, k := range kernelsOfLanes() {
			k.run(op, got, arguments)
			sameLanes(t, fmt.Sprintf("%s, operation %d", name, op), float, got, want, arguments)
		}
	}
}

// TestLanes holds all operations against plain Go over special values and random bits: of any number of groups,
// operands that are one group, results in place of an operand.
func TestLanes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(22, 23))
	some := patterns()
	for op := Neg; op < opPair+pairs; op++ {
		ints, float := false, true
		operands := 1
		if op >= opPair {
			operands = 3
		} else if op != opCopy {
			in, out := kinds(op)
			ints, float, operands = in[0] != 'f', out == "f", len(in)
		}
		for round := range 300 {
			n := group * (1 + rnd.IntN(11))
			if round == 0 { // each with each
				n = len(some) * len(some) / group * group
			}
			in := make([][]uint32, operands)
			for o := range in {
				in[o] = make([]uint32, n)
				for i := range in[o] {
					switch {
					case round == 0 && o == 0:
						in[o][i] = some[i/len(some)]
					case round == 0 && o == 1:
						in[o][i] = some[i%len(some)]
					case rnd.IntN(2) == 0:
						in[o][i] = rnd.Uint32()
					default:
						in[o][i] = some[rnd.IntN(len(some))]
					}
					if op == Select && o == 0 && !ints {
						in[o][i] = maskOf(rnd.IntN(2) == 0)
					}
				}
				if rnd.IntN(4) == 0 && round > 0 {
					in[o] = in[o][:group]
				}
			}
			want := make([]uint32, n)
			plain().lanes.run(op, want, in...)
			place := rnd.IntN(2 + operands)
			for name, k := range kernelsOfLanes() {
				mine := make([][]uint32, operands)
				for o := range in {
					mine[o] = slices.Clone(in[o])
				}
				got := make([]uint32, n)
				if place < operands && len(mine[place]) == n {
					got = mine[place]
				}
				k.run(op, got, mine...)
				sameLanes(t, fmt.Sprintf("%s, operation %d, %d lanes", name, op, n), float, got, want, in...)
			}
		}
	}
}

// TestReducingLanes holds reductions and what spreads values against plain Go.
func TestReducingLanes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(24, 25))
	for round := range 400 {
		rows, groups := 1+rnd.IntN(9), 1+rnd.IntN(20)
		by := groups*group + rnd.IntN(3)
		src := make([]float32, rows*by)
		share := 0.
		if round%2 == 0 {
			share = .02
		}
		fill(rnd, bytesOf(src), share)
		in := unsafe.Slice((*uint32)(unsafe.Pointer(&src[0])), len(src))
		for name, k := range kernelsOfLanes() {
			for _, op := range []Op{Add, Mul, Max, Min} {
				what := fmt.Sprintf("%s, operation %d, %d rows of %d groups", name, op, rows, groups)
				want, got := make([]uint32, rows+1), make([]uint32, rows+1)
				plain().lanes.rows[op](&want[0], &in[0], rows, groups)
				k.rows[op](&got[0], &in[0], rows, groups)
				sameLanes(t, what, true, got, want)

				want = make([]uint32, (groups+1)*group)
				for i := range want {
					want[i] = bitsOf(special[rnd.IntN(len(special))])
				}
				got = slices.Clone(want)
				plain().lanes.columns[op](&want[0], &in[0], rows, 4*by, groups)
				k.columns[op](&got[0], &in[0], rows, 4*by, groups)
				sameLanes(t, what+" in columns", true, got, want)
			}
			cols := group + rnd.IntN(100)*rnd.IntN(2)
			want, got := make([]uint32, rows*cols), make([]uint32, rows*cols+group)
			plain().lanes.spread(&want[0], &in[0], rows, cols)
			got[rows*cols+group-1] = 12345
			k.spread(&got[0], &in[0], rows, cols)
			sameLanes(t, fmt.Sprintf("%s, %d spread over %d", name, rows, cols), false, got[:rows*cols], want)
			if got[rows*cols+group-1] != 12345 {
				t.Fatalf("%s, %d spread over %d: 16 lanes behind are written", name, rows, cols)
			}
		}
	}
}

// TestRowsOfLanes holds operations against plain Go where operands and results are rows apart, one row for all, one
// group a row or one group for all.
func TestRowsOfLanes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(26, 27))
	for _, op := range []Op{Neg, Exp, Add, Div, Max, Select, opCopy, opPair, opPair + 7} {
		for range 200 {
			rows, groups := 1+rnd.IntN(7), 1+rnd.IntN(9)
			l := lanes{groups: uintptr(groups), rows: uintptr(rows)}
			src := make([]float32, 5000)
			fill(rnd, bytesOf(src), .02)
			for o := range 4 {
				gap := 4 * group * rnd.IntN(3)
				l.jump[o] = uintptr(gap)
				if o == 0 {
					continue
				}
				switch l.step[o-1] = 4 * group; rnd.IntN(4) {
				case 0:
					l.jump[o] = uintptr(-4 * group * groups)
				case 1:
					l.step[o-1], l.jump[o] = 0, 4*group
				case 2:
					l.step[o-1], l.jump[o] = 0, 0
				}
				l.at[o] = unsafe.Pointer(&src[rnd.IntN(2000)])
			}
			want := make([]float32, rows*(groups+3)*group)
			l.at[0] = unsafe.Pointer(&want[0])
			plain().lanes.ops[op](l.words())
			for name, k := range kernelsOfLanes() {
				got := make([]float32, len(want))
				l.at[0] = unsafe.Pointer(&got[0])
				k.ops[op](l.words())
				same(t, fmt.Sprintf("%s, operation %d, %+v", name, op, l), bytesOf(got), bytesOf(want))
			}
		}
	}
}
