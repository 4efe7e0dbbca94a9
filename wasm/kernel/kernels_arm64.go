package kernel

import "unsafe"

// native: every processor that Go runs on in 64 bits has NEON, with FMLA.
func native() []*Kernel { return []*Kernel{neon} }

// Its decoder and what copies whole rows are plain Go: they are little beside the products.
var neon = &Kernel{name: "neon", heights: []int{4, 2, 1}, widths: 1,
	tiles:     [][]func(*words){{neonTile(4, false)}, {neonTile(2, false)}, {neonTile(1, false)}},
	fused:     [][]func(*words){{neonTile(4, true)}, {neonTile(2, true)}, {neonTile(1, true)}},
	transpose: transpose128, gather: gatherPlain, decode: decodePlain}

// neonTile computes tiles of any width. The assembly knows whole panels only: there are no masks, and what lies
// behind C's last column is not ours. Part of a panel is computed on the stack.
func neonTile(rows int, fused bool) func(*words) {
	return func(w *words) {
		t := (*tile)(unsafe.Pointer(w))
		if t.cols == panel {
			neonWhole(rows, fused, w)
			return
		}
		var c [4 * panel]float32
		if t.add != 0 {
			for r := range rows {
				copy(c[r*panel:], unsafe.Slice(at(t.c, uintptr(r)*t.line), t.cols))
			}
		}
		part := *t
		part.c, part.line = &c[0], 4*panel
		neonWhole(rows, fused, part.words())
		for r := range rows {
			copy(unsafe.Slice(at(t.c, uintptr(r)*t.line), t.cols), c[r*panel:])
		}
	}
}

// neonWhole calls by name, so that a tile may stay on the stack.
func neonWhole(rows int, fused bool, w *words) {
	switch {
	case rows == 4 && fused:
		fused128x4(w)
	case rows == 2 && fused:
		fused128x2(w)
	case fused:
		fused128x1(w)
	case rows == 4:
		tile128x4(w)
	case rows == 2:
		tile128x2(w)
	default:
		tile128x1(w)
	}
}
