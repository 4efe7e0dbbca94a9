package kernel

import (
	"encoding/binary"
	"unsafe"

	"github.com/starling-fl/starling/quant/nf4"
)

// To decode 4-bit columns and pack them is worth it where many rows are multiplied with them. A decoder that writes has
// one row, and most of its time went into that. Few rows are multiplied with codes, which a kernel decodes in its
// registers: what is packed are codes as they are, a word of eight terms at a time, and their scales behind them.

const (
	fewRows  = 3    // at most, each of which decodes the codes anew
	perWord  = 8    // codes in 32 bits
	maxCodes = 1024 // terms that are packed at a time
)

// isThin reports whether B is columns of whole blocks, each along memory, that few rows are multiplied with.
func (pl *Plan) isThin() bool {
	q := pl.p.NF4
	if q == nil || q.Block != nf4.Block || pl.rows > fewRows || pl.terms%nf4.Block != 0 || pl.p.B%nf4.Block != 0 {
		return false
	}
	for _, a := range pl.outer {
		if a.B%nf4.Block != 0 {
			return false
		}
	}
	apart, even := single(pl.cols, stepB)
	along, whole := single(pl.p.Terms, stepB)
	_, line := single(pl.p.Terms, stepA)
	return even && apart%nf4.Block == 0 && whole && along == 1 && line
}

// single says by how much nested axes move an operand, where they do as one axis does.
func single(axes []Axis, step func(Axis) int) (by int, ok bool) {
	if len(axes) == 0 {
		return 0, true
	}
	by = step(axes[len(axes)-1])
	for i, a := range axes {
		if step(a) != by*rounds(axes[i+1:]) {
			return 0, false
		}
	}
	return by, true
}

// byCodes is the kernel's function for few rows, nil where it has none.
func (j *job) byCodes() func(*words) {
	if j.p.Fused {
		return j.kernel.fusedCodes
	}
	return j.kernel.codes
}

// few computes columns from..to-1 of all rows, or stops with the context. a, b and c are where its operands start.
func (w *worker) few(a, b, c, from, to int) {
	rows := w.Plan.rows
	locate(w.rowA[:rows], w.p.Rows, 0, stepA)
	locate(w.rowC[:rows], w.p.Rows, 0, stepC)
	apart, _ := single(w.cols, stepB)
	along, _ := single(w.p.Terms, stepA)
	t, run := &w.t, w.byCodes()
	t.term = uintptr(4 * along)
	for col := from; col < to; col += panel {
		n := min(panel, to-col)
		t.width(n)
		for term := 0; term < w.terms && w.ctx.Err() == nil; term += maxCodes {
			k := min(maxCodes, w.terms-term)
			w.packWords(b+col*apart+term, n, apart, k)
			t.b, t.next, t.k, t.add = &w.decoded[0], uintptr(4*panel*k/perWord), uintptr(k/nf4.Block), uintptr(min(term, 1))
			for row := range rows {
				atA, atC := a+w.rowA[row]+term*along, c+w.rowC[row]+col
				corners(w.floats, atA, (k-1)*along, 0)
				corners(w.floats, atC, n-1, 0)
				t.a, t.c = &w.floats[atA], &w.floats[atC]
				run(t.words())
			}
		}
	}
	t.a, t.b, t.c = nil, nil, nil
}

// packWords packs k values' codes of n columns, which start with the given value and are apart from one another: first
// the words, 16 columns of each, then the scales. Columns that there are not have what was there before.
func (w *worker) packWords(value, n, apart, k int) {
	q := w.p.NF4
	codes, scales := w.bytes[q.Codes:][:(q.Len+1)/2], w.floats[q.Scales/4:][:ceil(q.Len, nf4.Block)]
	words, blocks := k/perWord, k/nf4.Block
	to := w.decoded[panel*words:]
	for col := 0; col < n; {
		at := value + col*apart
		some, their := codes[at/2:][:k/2], scales[at/nf4.Block:][:blocks]
		if n-col < 8 {
			for i := range words {
				*(*uint32)(unsafe.Pointer(&w.decoded[i*panel+col])) = binary.LittleEndian.Uint32(some[4*i:])
			}
			for i, s := range their {
				to[i*panel+col] = s
			}
			col++
			continue
		}
		last := at + 7*apart
		_, _ = codes[last/2:][:k/2], scales[last/nf4.Block:][:blocks]
		w.kernel.transpose(&w.decoded[col], panel, (*float32)(unsafe.Pointer(&some[0])), apart/perWord, words)
		fast := blocks &^ 7
		if fast > 0 {
			w.kernel.transpose(&to[col], panel, &their[0], apart/nf4.Block, fast)
		}
		for i := fast; i < blocks; i++ {
			for c := range 8 {
				to[i*panel+col+c] = scales[(at+c*apart)/nf4.Block+i]
			}
		}
		col += 8
	}
}
