package kernel

import "unsafe"

// A row of A that is zeros makes a row of C that is +0, whatever is in B, as long
// as that is finite: terms of +0 and -0 added to +0 leave +0, rounded once or twice.
// In a training step such rows are the gradients of padding, about a quarter of all
// rows where texts are short, and of rows that only fill a batch up. They are left
// out; the result is the same, bit for bit.

// worthLooking is the least work of a row, in multiply-adds, for which it is looked
// at: below it looking costs some percent of the product.
const worthLooking = 1 << 13

// finite is whether packed columns have neither NaN nor infinities.
type finite uint8

const (
	finiteUnknown finite = iota
	finiteYes
	finiteNo
)

// findIdle marks the rows whose terms, here and in the blocks before, are zeros.
func (w *worker) findIdle(a int, idle []bool, cols int, terms []int, add bool) {
	if cols*w.Plan.terms < worthLooking {
		clear(idle)
		return
	}
	found := false
	beside, step := run(terms)
	if step != 1 {
		beside = 0
	}
	for r := range idle {
		idle[r] = (idle[r] || !add) && w.zeros(a+w.rowA[r], terms, beside)
		found = found || idle[r]
	}
	if found && !w.finiteB() {
		clear(idle)
	}
}

// zeros reports whether all terms of a row are +0 or -0. Of other rows the first term is
// mostly enough to tell. The first beside of them stand side by side.
func (w *worker) zeros(row int, terms []int, beside int) bool {
	if w.floats[row+terms[0]] != 0 { // NaN too
		return false
	}
	const sign = 0x80000000_80000000
	side := w.floats[row+terms[0]:][:beside]
	for ; len(side) >= 16; side = side[16:] {
		p := (*[8]uint64)(unsafe.Pointer(&side[0]))
		if (p[0]|p[1]|p[2]|p[3]|p[4]|p[5]|p[6]|p[7])&^sign != 0 {
			return false
		}
	}
	for _, t := range terms[beside-len(side):] {
		if w.floats[row+t] != 0 {
			return false
		}
	}
	return true
}

// finiteB looks through the packed columns, whole panels, once it is asked. Two numbers at a time: one more in the
// exponent of what is not finite carries into the place of the sign.
func (w *worker) finiteB() bool {
	if w.finite == finiteUnknown {
		const value, one, sign = 0x7fffffff_7fffffff, 0x00800000_00800000, 0x80000000_80000000
		var a, b uint64
		for pairs := unsafe.Slice((*[4]uint64)(unsafe.Pointer(&w.b[0])), len(w.b)/8); len(pairs) > 0; pairs = pairs[1:] {
			p := &pairs[0]
			a |= (p[0]&value + one) | (p[1]&value + one)
			b |= (p[2]&value + one) | (p[3]&value + one)
		}
		w.finite = finiteYes
		if (a|b)&sign != 0 {
			w.finite = finiteNo
		}
	}
	return w.finite == finiteYes
}
