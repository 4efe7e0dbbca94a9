package kernel

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"
)

// guarded returns a memory of size bytes between pages that cannot be touched: it
// starts behind the first, or ends before the last.
func guarded(t *testing.T, size int, atEnd bool) []byte {
	t.Helper()
	page := syscall.Getpagesize()
	pages := (size + page - 1) / page * page
	b, err := syscall.Mmap(-1, 0, pages+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(b) })
	for _, guard := range [][]byte{b[:page], b[page+pages:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	if atEnd {
		return b[page+pages-size:][:size:size]
	}
	return b[page:][:size:size]
}

// touch runs f and reports whether it met a page that cannot be touched.
func touch(f func()) (fault any) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { fault = recover() }()
	f()
	return nil
}

// TestGuardPages: whatever product was prepared for a memory, no kernel reads or writes
// a byte before or behind it. Operands stand at both edges.
func TestGuardPages(t *testing.T) {
	b := guarded(t, 4096, true)
	if touch(func() { tilePlain(beyond(b)) }) == nil {
		t.Fatal("the guard does not hold")
	}
	rnd := rand.New(rand.NewPCG(8, 9))
	for i := range 300 {
		p, size := random(rnd, 1<<16)
		if i%4 == 0 {
			p, size = thin(rnd)
		}
		pl, err := Prepare(p, size)
		if err != nil {
			t.Fatal(err)
		}
		for _, atEnd := range []bool{false, true} {
			memory := guarded(t, size, atEnd)
			fill(rnd, memory, 0)
			want := append([]byte(nil), memory...)
			define(&p, want)
			for _, k := range every(&p) {
				if fault := touch(func() { err = k.Run(t.Context(), pl, memory, nil) }); fault != nil || err != nil {
					t.Fatalf("product %d, %s, %+v: %v, %v", i, k.name, p, fault, err)
				}
				same(t, fmt.Sprintf("product %d, %s", i, k.name), memory, want)
			}
		}
	}
}

// TestHostileProducts: products made by chance, most of them impossible, are refused,
// or keep to the memory.
func TestHostileProducts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(10, 11))
	const size = 8192
	memory := guarded(t, size, true)
	number := func() int {
		switch rnd.IntN(20) {
		case 0:
			return rnd.Int() >> rnd.IntN(63)
		case 1:
			return -rnd.Int() >> rnd.IntN(63)
		}
		return rnd.IntN(40)
	}
	ran := 0
	for range 30000 {
		p := Product{A: 4 * number(), B: 4 * number(), C: 4 * number()}
		if rnd.IntN(4) == 0 {
			p.B = number()
			p.NF4 = &NF4{Codes: number(), Scales: 4 * number(), Len: number() + 1000, Block: 16 * (1 + rnd.IntN(4))}
		}
		for _, g := range []*[]Axis{&p.Batch, &p.Rows, &p.Cols, &p.Terms} {
			for range rnd.IntN(3) {
				*g = append(*g, Axis{number(), number(), number(), number()})
			}
		}
		if n := len(p.Cols); n > 0 {
			p.Cols[n-1].C = 1
		}
		pl, err := Prepare(p, size)
		if err != nil || pl.work > 1<<18 {
			continue
		}
		ran++
		for _, k := range every(&p) {
			if fault := touch(func() { err = k.Run(t.Context(), pl, memory, nil) }); fault != nil || err != nil {
				t.Fatalf("%s, %+v: %v, %v", k.name, p, fault, err)
			}
		}
	}
	if ran < 50 {
		t.Errorf("only %d products ran", ran)
	}
}

// beyond is a tile whose operands are behind b.
func beyond(b []byte) *words {
	t := &tile{k: 1, cols: 16}
	t.a = at((*float32)(unsafe.Pointer(&b[0])), uintptr(len(b)))
	t.b, t.c = t.a, t.a
	return t.words()
}
