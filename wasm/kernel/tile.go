package kernel

import (
	"unsafe"

	"github.com/starling-fl/starling/quant/nf4"
)

// panel is the width of packed columns: one register of 512 bits, two of 256.
const panel = 16

// tile is a piece of C, some rows high and some panels wide, with what is added to
// it. The assembly knows the fields' places (TestTileLayout). Distances are in bytes.
type tile struct {
	a    *float32 // first row, first term
	row  uintptr  // from one row of A to the next
	term uintptr  // from one term of A to the next
	b    *float32 // first packed panel: 16 floats a term
	next uintptr  // from one panel to the next
	c    *float32
	line uintptr // from one row of C to the next
	k    uintptr // terms, 1 or more
	add  uintptr // 0: C starts from +0, not from memory
	cols uintptr // of the last panel, 1 to 16
	mask *int32  // cols times -1, then 0: 16 in all
}

// masks holds every mask: the one for n columns starts at 16-n.
var masks = [2 * panel]int32{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}

func (t *tile) width(cols int) {
	t.cols = uintptr(cols)
	t.mask = &masks[panel-cols]
}

func at(p *float32, bytes uintptr) *float32 {
	return (*float32)(unsafe.Add(unsafe.Pointer(p), bytes))
}

// words is a tile as the assembly is declared to take it.
type words = [11]uintptr

func (t *tile) words() *words { return (*words)(unsafe.Pointer(t)) }

// tilePlain computes a tile one row high and one panel wide. The conversion of the
// product keeps compilers from fusing it with the sum: on some processors Go would
// round once (The Go Programming Language Specification, "Floating-point operators").
func tilePlain(w *words) {
	t := (*tile)(unsafe.Pointer(w))
	c := unsafe.Slice(t.c, t.cols)
	var sum [panel]float32
	if t.add != 0 {
		copy(sum[:], c)
	}
	a, b := t.a, t.b
	for k := t.k; ; {
		x := *a
		for j, y := range (*[panel]float32)(unsafe.Pointer(b)) {
			sum[j] += float32(x * y)
		}
		if k--; k == 0 { // no address behind the last term is made
			break
		}
		a, b = at(a, t.term), at(b, 4*panel)
	}
	copy(c, sum[:])
}

func transposePlain(dst *float32, to int, src *float32, from int, n int) {
	d := unsafe.Slice(dst, (n-1)*to+8)
	for r := range 8 {
		for i, v := range unsafe.Slice(at(src, uintptr(4*r*from)), n) {
			d[i*to+r] = v
		}
	}
}

func gatherPlain(dst *float32, to int, src *float32, from int, n int) {
	for i := range n {
		copy(unsafe.Slice(at(dst, uintptr(4*i*to)), panel), unsafe.Slice(at(src, uintptr(4*i*from)), panel))
	}
}

func decodePlain(dst *float32, to int, codes *byte, n int, scale float32) {
	d := unsafe.Slice(dst, (n/panel-1)*to+panel)
	for i, c := range unsafe.Slice(codes, n/2) {
		at := 2*i/panel*to + 2*i%panel
		d[at] = levels[c>>4] * scale
		d[at+1] = levels[c&15] * scale
	}
}

// levels is here for the assembly, which cannot name a variable of another package.
var levels = nf4.Levels
