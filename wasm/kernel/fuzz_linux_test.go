package kernel

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// FuzzRun: whatever product a stranger declares, it is refused, or every kernel keeps to the memory, writes nothing
// of it but C, and computes what the definition says where C is apart from what it is made of. The memory stands
// between pages that cannot be touched, at either of them.
func FuzzRun(f *testing.F) {
	rnd := rand.New(rand.NewPCG(12, 13))
	for range 20 {
		p, size := random(rnd, 1<<11)
		f.Add(append(binary.AppendUvarint(nil, uint64(size/4)), encode(&p)...))
	}
	p, size := thin(rnd)
	for size >= 4<<11 {
		p, size = thin(rnd)
	}
	f.Add(append(binary.AppendUvarint(nil, uint64(size/4)), encode(&p)...))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		words, n := binary.Uvarint(data)
		if n <= 0 {
			return
		}
		size := 4 * int(words%(1<<11))
		p := decode(data[n:])
		pl, err := Prepare(p, size)
		if err != nil || pl.work > 1<<16 || size == 0 {
			return
		}
		memory := guarded(t, size, len(data)%2 == 0)
		fill(rand.New(rand.NewPCG(words, uint64(len(data)))), memory, .05)
		before := bytes.Clone(memory)
		lo, hi := p.C, p.C+4 // what C spans, in bytes
		for _, axes := range [][]Axis{p.Batch, p.Rows, p.Cols, p.Terms} {
			for _, a := range axes {
				lo, hi = lo+4*min(0, a.C*(a.Size-1)), hi+4*max(0, a.C*(a.Size-1))
			}
		}
		var want []byte
		if distinct(&p, lo, hi) {
			want = bytes.Clone(before)
			define(&p, want)
		}
		for _, k := range every(&p) {
			for _, cores := range []int{1, 3} {
				copy(memory, before)
				j := &job{kernel: k, Plan: pl, ctx: t.Context(), bytes: memory}
				j.floats = unsafe.Slice((*float32)(unsafe.Pointer(&memory[0])), size/4)
				j.cut(cores)
				if fault := touch(func() { j.work(0) }); fault != nil {
					t.Fatalf("%s, %+v: %v", k.name, p, fault)
				}
				if !bytes.Equal(memory[:lo], before[:lo]) || !bytes.Equal(memory[hi:], before[hi:]) {
					t.Fatalf("%s, %+v: wrote outside of C, bytes %d to %d", k.name, p, lo, hi)
				}
				if want != nil {
					same(t, k.name, memory, want)
				}
			}
		}
	})
}

// encode writes a product as decode reads it.
func encode(p *Product) (b []byte) {
	put := func(v int) { b = binary.AppendVarint(b, int64(v)) }
	bit := func(v bool) { put(map[bool]int{true: 1}[v]) }
	put(p.A)
	put(p.B)
	put(p.C)
	bit(p.Fused)
	bit(p.NF4 != nil)
	if q := p.NF4; q != nil {
		put(q.Codes)
		put(q.Scales)
		put(q.Len)
		put(q.Block)
	}
	for _, axes := range [][]Axis{p.Batch, p.Rows, p.Cols, p.Terms} {
		put(len(axes))
		for _, a := range axes {
			put(a.Size)
			put(a.A)
			put(a.B)
			put(a.C)
		}
	}
	return b
}

// decode reads a product from any bytes; what is missing is 0.
func decode(b []byte) (p Product) {
	get := func() int {
		v, n := binary.Varint(b)
		b = b[max(n, 0):]
		return int(v)
	}
	p.A, p.B, p.C, p.Fused = get(), get(), get(), get() == 1
	if get() == 1 {
		p.NF4 = &NF4{Codes: get(), Scales: get(), Len: get(), Block: get()}
	}
	for _, axes := range []*[]Axis{&p.Batch, &p.Rows, &p.Cols, &p.Terms} {
		for range uint(get()) % 5 {
			*axes = append(*axes, Axis{Size: get(), A: get(), B: get(), C: get()})
		}
	}
	return p
}

// distinct reports whether a product that was prepared is one that the verifier would let pass: no group moves what it
// must not, and C's elements differ and stand apart from A and B. A result is defined only then.
func distinct(p *Product, lo, hi int) bool {
	apart := func(at, n int) bool { return at+n <= lo || at >= hi }
	reach := func(at int, step func(Axis) int) bool {
		from, to := at, at+4
		for _, axes := range [][]Axis{p.Batch, p.Rows, p.Cols, p.Terms} {
			for _, a := range axes {
				d := 4 * step(a) * (a.Size - 1)
				from, to = from+min(0, d), to+max(0, d)
			}
		}
		return apart(from, to-from)
	}
	if !reach(p.A, stepA) {
		return false
	}
	switch q := p.NF4; {
	case q == nil && !reach(p.B, stepB):
		return false
	case q != nil && (!apart(q.Codes, (q.Len+1)/2) || !apart(q.Scales, 4*ceil(q.Len, q.Block))):
		return false
	}
	still := func(axes []Axis, step func(Axis) int) bool {
		for _, a := range axes {
			if step(a) != 0 {
				return false
			}
		}
		return true
	}
	if !still(p.Rows, stepB) || !still(p.Cols, stepA) || !still(p.Terms, stepC) {
		return false
	}
	seen := map[int]bool{}
	at := make([]int, 1)
	axes := append(append(append([]Axis{}, p.Batch...), p.Rows...), p.Cols...)
	for i := range rounds(axes) {
		locate(at, axes, i, stepC)
		if seen[at[0]] {
			return false
		}
		seen[at[0]] = true
	}
	return true
}
