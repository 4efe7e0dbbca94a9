package kernel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/starling-fl/starling/quant/nf4"
)

// every returns all kernels that run here, and can compute the product.
func every(p *Product) []*Kernel {
	return slices.DeleteFunc(append(Native(), Plain), func(k *Kernel) bool { return p.Fused && !k.Fuses() })
}

// bytesOf views floats as the memory they are.
func bytesOf(f []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f))), 4*len(f))
}

// define computes a product as its definition says, one element after the other.
func define(p *Product, memory []byte) {
	value := func(at int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(memory[at:])) }
	b := func(i int) float32 { return value(p.B + 4*i) }
	if q := p.NF4; q != nil {
		b = func(i int) float32 {
			i += p.B
			code := memory[q.Codes+i/2] >> 4
			if i%2 == 1 {
				code = memory[q.Codes+i/2] & 15
			}
			return nf4.Levels[code] * value(q.Scales+4*(i/q.Block))
		}
	}
	type place struct{ a, b, c int }
	places := func(groups ...[]Axis) []place {
		at := []place{{}}
		for _, axes := range groups {
			for _, ax := range axes {
				var next []place
				for _, o := range at {
					for i := range ax.Size {
						next = append(next, place{o.a + i*ax.A, o.b + i*ax.B, o.c + i*ax.C})
					}
				}
				at = next
			}
		}
		return at
	}
	terms := places(p.Terms)
	for _, e := range places(p.Batch, p.Rows, p.Cols) {
		var sum float32
		for _, t := range terms {
			x, y := value(p.A+4*(e.a+t.a)), b(e.b+t.b)
			if p.Fused {
				sum = FMA(x, y, sum) // TestFMA holds it against whole numbers
			} else {
				sum += float32(x * y)
			}
		}
		binary.LittleEndian.PutUint32(memory[p.C+4*e.c:], math.Float32bits(sum))
	}
}

// same compares memories word by word; NaNs of every kind are one.
func same(t *testing.T, what string, got, want []byte) {
	t.Helper()
	for i := 0; i < len(got); i += 4 {
		g, w := binary.LittleEndian.Uint32(got[i:]), binary.LittleEndian.Uint32(want[i:])
		if x, y := math.Float32frombits(g), math.Float32frombits(w); g != w && !(x != x && y != y) {
			t.Fatalf("%s: word %d of %d is %v (%#x), want %v (%#x)", what, i/4, len(got)/4, x, g, y, w)
		}
	}
}

// special are values that a kernel may get wrong while it gets numbers right.
var special = []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)),
	float32(math.NaN()), math.Float32frombits(0x7f800001), math.Float32frombits(0xffc12345),
	math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, math.Float32frombits(0x007fffff),
	math.Float32frombits(0x00800000), math.MaxFloat32, -math.MaxFloat32, 1, -1, 1 + 1.0/(1<<23), 1e-30, 3e38}

// fill writes normal numbers, with some share of special values.
func fill(rnd *rand.Rand, memory []byte, share float64) {
	for i := 0; i+4 <= len(memory); i += 4 {
		v := float32(rnd.NormFloat64())
		if rnd.Float64() < share {
			v = special[rnd.IntN(len(special))]
		}
		binary.LittleEndian.PutUint32(memory[i:], math.Float32bits(v))
	}
}

// factors cuts n into up to three axes.
func factors(rnd *rand.Rand, n int) []int {
	for f := 2 + rnd.IntN(3); f < n; f++ {
		if n%f == 0 && rnd.IntN(2) == 0 {
			return append(factors(rnd, n/f), f)
		}
	}
	return []int{n}
}

// random makes a product in a memory of words float32: sizes, loops, strides and
// places as they come, C's elements distinct, operands anywhere, at the edges too.
func random(rnd *rand.Rand, words int) (p Product, memory int) {
	for {
		sizes := [4]int{1 + rnd.IntN(3), 1 + rnd.IntN(40), 1 + rnd.IntN(70), 1 + rnd.IntN(40)}
		if rnd.IntN(4) == 0 { // more than a block of terms or of columns
			sizes[0], sizes[1], sizes[2+rnd.IntN(2)] = 1, 1+rnd.IntN(9), 200+rnd.IntN(400)
		}
		groups := [4]*[]Axis{&p.Batch, &p.Rows, &p.Cols, &p.Terms}
		p = Product{}
		for g, n := range sizes {
			if n == 1 && rnd.IntN(2) == 0 {
				continue
			}
			for _, f := range factors(rnd, n) {
				*groups[g] = append(*groups[g], Axis{Size: f})
			}
		}
		if n := len(p.Cols); n > 0 {
			p.Cols[n-1].C = 1
		}
		// Each operand's axes get strides in some order; mostly dense, sometimes with room, sometimes 0 or backwards.
		layout := func(of func(*Axis) *int, result bool, which ...int) {
			var axes []*Axis
			for _, g := range which {
				for i := range *groups[g] {
					axes = append(axes, &(*groups[g])[i])
				}
			}
			if rnd.IntN(2) == 0 {
				rnd.Shuffle(len(axes), func(i, j int) { axes[i], axes[j] = axes[j], axes[i] })
			}
			stride := 1
			if result && len(p.Cols) > 0 {
				last := &p.Cols[len(p.Cols)-1]
				i := slices.Index(axes, last)
				axes = append(append(axes[:i:i], axes[i+1:]...), last)
			}
			for i := len(axes) - 1; i >= 0; i-- {
				*of(axes[i]) = stride
				stride *= axes[i].Size
				if rnd.IntN(5) == 0 {
					stride += rnd.IntN(5)
				}
				if !result && rnd.IntN(12) == 0 {
					*of(axes[i]) *= rnd.IntN(2) - 1
				}
			}
		}
		layout(func(a *Axis) *int { return &a.A }, false, 0, 1, 3)
		layout(func(a *Axis) *int { return &a.B }, false, 0, 3, 2)
		layout(func(a *Axis) *int { return &a.C }, true, 0, 1, 2)
		var lo, hi [3]int
		for _, g := range groups {
			for _, a := range *g {
				for o, by := range [3]int{a.A, a.B, a.C} {
					lo[o], hi[o] = lo[o]+min(0, by*(a.Size-1)), hi[o]+max(0, by*(a.Size-1))
				}
			}
		}
		span := func(o int) int { return hi[o] - lo[o] + 1 }
		need := span(0) + span(2)
		nf4 := rnd.IntN(3) == 0
		block := 16 << rnd.IntN(3)
		n := span(1) + rnd.IntN(40)
		if nf4 {
			need += (n+7)/8 + (n+block-1)/block
		} else {
			need += span(1)
		}
		if need > words {
			continue
		}
		p.Fused = rnd.IntN(2) == 0
		// The operands fill the memory in some order: the first starts with it, the last ends with it.
		next := 0
		put := map[int]func(){
			0: func() { p.A, next = 4*(next-lo[0]), next+span(0) },
			2: func() { p.C, next = 4*(next-lo[2]), next+span(2) },
			1: func() {
				if !nf4 {
					p.B, next = 4*(next-lo[1]), next+span(1)
					return
				}
				p.B = rnd.IntN(n-span(1)+1) - lo[1]
				p.NF4 = &NF4{Len: n, Block: block}
				p.NF4.Scales, next = 4*next, next+(n+block-1)/block
				p.NF4.Codes, next = 4*next+4*((n+7)/8)-(n+1)/2, next+(n+7)/8
			},
		}
		for _, o := range rnd.Perm(3) {
			put[o]()
		}
		return p, 4 * next
	}
}

// TestKernels holds every kernel, on one core and on more, against the definition:
// random products of random values, among them every special one.
func TestKernels(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	const words = 1 << 17
	for i := range 400 {
		p, size := random(rnd, words)
		if i%4 == 0 {
			p, size = thin(rnd)
		}
		start := make([]float32, size/4)
		fill(rnd, bytesOf(start), []float64{0, 0, .001, .05, .5}[i%5])
		want := bytesOf(slices.Clone(start))
		define(&p, want)
		pl, err := Prepare(p, size)
		if err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
		for _, k := range every(&p) {
			for _, cores := range []int{1, 3} {
				memory := slices.Clone(start)
				got := bytesOf(memory)
				// Small as the products are, they are cut as large ones would be.
				j := &job{kernel: k, Plan: pl, ctx: t.Context(), bytes: got, floats: memory}
				j.cut(cores)
				j.work(cores - 1)
				same(t, fmt.Sprintf("product %d, %s, %d cores, %+v", i, k.name, cores, p), got, want)
			}
		}
	}
}

// TestRun computes a product that is large enough for several goroutines.
func TestRun(t *testing.T) {
	const m, n, k = 300, 230, 290
	p := Product{B: 4 * m * k, C: 4 * (m*k + n*k), Rows: []Axis{{m, k, 0, n}}, Cols: []Axis{{n, 0, k, 1}},
		Terms: []Axis{{k, 1, 1, 0}}}
	memory := make([]float32, m*k+n*k+m*n)
	fill(rand.New(rand.NewPCG(3, 4)), bytesOf(memory), 0)
	for _, fused := range []bool{false, true} {
		p.Fused = fused
		testRun(t, &p, memory)
	}
}

func testRun(t *testing.T, p *Product, memory []float32) {
	pl, err := Prepare(*p, 4*len(memory))
	if err != nil {
		t.Fatal(err)
	}
	want := bytesOf(slices.Clone(memory))
	define(p, want)
	for _, k := range every(p) {
		for _, cores := range []int{1, 2, 7} {
			got, team := bytesOf(slices.Clone(memory)), NewTeam(cores)
			err := k.Run(t.Context(), pl, got, team)
			if team.Stop(); err != nil {
				t.Fatal(err)
			}
			same(t, k.name, got, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, k := range every(p) {
		got, team := bytesOf(slices.Clone(memory)), NewTeam(2)
		err := k.Run(ctx, pl, got, team)
		if team.Stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v after cancellation", k.name, err)
		}
		same(t, k.name+" after cancellation", got, bytesOf(memory))
	}
	if err := Plain.Run(t.Context(), pl, want[:len(want)-4], nil); err == nil {
		t.Error("ran in a memory that is too short")
	}
	if err := Plain.Run(t.Context(), pl, append([]byte{0}, want...)[1:], nil); err == nil {
		t.Error("ran in a memory that is not aligned")
	}
}

// TestPrepareRefuses tries products that reach a byte too far, or would with sums
// that wrap.
func TestPrepareRefuses(t *testing.T) {
	const size = 1 << 12
	good := func() Product {
		return Product{A: 0, B: 1024, C: 2048, Rows: []Axis{{8, 16, 0, 8}}, Cols: []Axis{{8, 0, 1, 1}},
			Terms: []Axis{{16, 1, 8, 0}}}
	}
	if _, err := Prepare(good(), size); err != nil {
		t.Fatal(err)
	}
	const huge = 1 << 28
	for name, change := range map[string]func(p *Product){
		"A before":          func(p *Product) { p.A = -4 },
		"A off by a byte":   func(p *Product) { p.A = 1 },
		"A behind":          func(p *Product) { p.A = size - 4*8*16 + 4 },
		"A far":             func(p *Product) { p.A = math.MaxInt - 3 },
		"A runs back":       func(p *Product) { p.Rows[0].A = -1 },
		"A runs far":        func(p *Product) { p.Rows[0].A = 200 },
		"B behind":          func(p *Product) { p.B = size - 4*8*16 + 4 },
		"C behind":          func(p *Product) { p.C = size - 4*64 + 4 },
		"C runs far":        func(p *Product) { p.Rows[0].C = 100 },
		"C with gaps":       func(p *Product) { p.Cols[0].C = 2 },
		"size 0":            func(p *Product) { p.Terms[0].Size = 0 },
		"size below 0":      func(p *Product) { p.Terms[0].Size = -3 },
		"huge size":         func(p *Product) { p.Terms[0].Size = huge + 1 },
		"huge product":      func(p *Product) { p.Terms = []Axis{{huge, 0, 0, 0}, {2, 0, 0, 0}} },
		"huge work":         func(p *Product) { p.Batch, p.Terms = []Axis{{1 << 28, 0, 0, 0}}, []Axis{{1 << 28, 0, 0, 0}} },
		"sizes that wrap":   func(p *Product) { p.Terms = []Axis{{1 << 27, 0, 0, 0}, {1 << 27, 0, 0, 0}, {1 << 10, 0, 0, 0}} },
		"huge step":         func(p *Product) { p.Rows[0].A = huge + 1 },
		"least step":        func(p *Product) { p.Rows[0].A = math.MinInt },
		"largest reach":     func(p *Product) { p.Terms = []Axis{{huge, huge, 0, 0}} },
		"steps that cancel": func(p *Product) { p.Terms = []Axis{{3, huge, 0, 0}, {3, -huge, 0, 0}} },
		"codes outside":     func(p *Product) { p.B, p.NF4 = 0, &NF4{Codes: size - 63, Scales: 0, Len: 128, Block: 64} },
		"codes before":      func(p *Product) { p.B, p.NF4 = 0, &NF4{Codes: -1, Scales: 0, Len: 128, Block: 64} },
		"scales outside":    func(p *Product) { p.B, p.NF4 = 0, &NF4{Codes: 0, Scales: size - 4, Len: 128, Block: 64} },
		"scales unaligned":  func(p *Product) { p.B, p.NF4 = 0, &NF4{Codes: 0, Scales: 2, Len: 128, Block: 64} },
		"few values":        func(p *Product) { p.B, p.NF4 = 0, &NF4{Codes: 0, Scales: 0, Len: 127, Block: 64} },
		"value before":      func(p *Product) { p.B, p.NF4 = -1, &NF4{Codes: 0, Scales: 0, Len: 200, Block: 64} },
		"value behind":      func(p *Product) { p.B, p.NF4 = 73, &NF4{Codes: 0, Scales: 0, Len: 200, Block: 64} },
		"block of 0":        func(p *Product) { p.B, p.NF4 = 0, &NF4{Codes: 0, Scales: 0, Len: 128} },
		"odd block":         func(p *Product) { p.B, p.NF4 = 0, &NF4{Codes: 0, Scales: 0, Len: 128, Block: 24} },
		"huge tensor":       func(p *Product) { p.B, p.NF4 = 0, &NF4{Codes: 0, Scales: 0, Len: math.MaxInt, Block: 64} },
		"huge block":        func(p *Product) { p.B, p.NF4 = 0, &NF4{Codes: 0, Scales: 0, Len: 128, Block: math.MaxInt &^ 15} },
	} {
		p := good()
		change(&p)
		if _, err := Prepare(p, size); err == nil {
			t.Errorf("%s: prepared", name)
		}
	}
}

// TestTileLayout: the assembly reads the fields of a tile by their places.
func TestTileLayout(t *testing.T) {
	typ := reflect.TypeFor[tile]()
	if typ.Size() != unsafe.Sizeof(words{}) || unsafe.Sizeof(uintptr(0)) != 8 {
		t.Fatalf("a tile has %d bytes", typ.Size())
	}
	for i, name := range []string{"a", "row", "term", "b", "next", "c", "line", "k", "add", "cols", "mask"} {
		if f := typ.Field(i); f.Name != name || f.Offset != uintptr(8*i) {
			t.Errorf("field %d is %s at %d, want %s at %d", i, f.Name, f.Offset, name, 8*i)
		}
	}
}
