package kernel

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"unsafe"
)

// Blocks of a product: maxTerms x maxCols floats of B are packed at a time and stay
// in the second cache, maxTerms x 8 of A in the first.
const (
	maxTerms = 256
	maxCols  = 512
	maxRows  = 504 // of every tile's height
	high     = 8   // rows of A that are packed together
)

// perWorker is the least work that is worth another goroutine, in multiply-adds:
// some 2 microseconds.
const perWorker = 1 << 17

// Run computes a product in memory, on as many goroutines of a team as it is worth.
// It looks at ctx between blocks of some milliseconds at most; C is undefined after an
// error.
func (k *Kernel) Run(ctx context.Context, pl *Plan, memory []byte, team *Team) error {
	if len(memory) < pl.memory {
		return errRange
	}
	if pl.p.Fused && !k.Fuses() {
		return fmt.Errorf("kernel: %s has no fused multiply-add", k.name)
	}
	base := unsafe.Pointer(unsafe.SliceData(memory))
	if uintptr(base)%4 != 0 {
		return errors.New("kernel: memory is not aligned to 4 bytes")
	}
	j := &job{kernel: k, Plan: pl, ctx: ctx, bytes: memory[:pl.memory]}
	j.floats = unsafe.Slice((*float32)(base), pl.memory/4)
	workers := max(1, min(team.size(), pl.work/perWorker))
	j.cut(workers)
	team.run(j, min(workers, j.tasks())-1)
	return ctx.Err()
}

// job is one run of a product: a grid of tasks, each a block of C.
type job struct {
	*Plan
	kernel *Kernel
	ctx    context.Context
	bytes  []byte
	floats []float32

	few                  bool // B's codes are decoded in registers
	rowBlocks, colBlocks int
	shares               shares
}

// cut chooses the grid of blocks that keeps the workers for the shortest time: all busy,
// and no more operands for each than must be. Who computes a block packs all of its
// columns, and reads all of its rows, half of them from another core's cache.
func (j *job) cut(workers int) {
	const overhead = 40 // of a row's or a column's terms, in multiply-adds each
	j.few = j.thin && j.byCodes() != nil
	j.shares.divide(workers)
	cols := ceil(j.n, maxCols)
	j.rowBlocks, j.colBlocks = 1, cols
	best := math.MaxInt
	for c := cols; c == cols || c <= workers; c++ {
		for r := 1; r == 1 || r*c <= workers && !j.few; r++ {
			_, height := block(0, r, j.rows, high)
			_, width := block(0, c, j.n, panel)
			time := ceil(j.entries*r*c, workers) * (height*width + overhead*(height+width))
			if time < best {
				best, j.rowBlocks, j.colBlocks = time, r, c
			}
		}
	}
}

func ceil(n, by int) int { return (n + by - 1) / by }

func (j *job) tasks() int { return j.entries * j.colBlocks * j.rowBlocks }

// work computes tasks until there are none.
func (j *job) work(me int) {
	w := workers.Get().(*worker)
	w.job = j
	j.shares.work(me, j.tasks(), w)
	w.job = nil
	workers.Put(w)
}

// workers holds the packing memory of goroutines between products.
var workers = sync.Pool{New: func() any { return new(worker) }}

// worker is one goroutine's share: packed panels and tables.
type worker struct {
	*job
	b            []float32                 // packed columns
	a            [maxTerms * high]float32  // packed rows
	decoded      [maxTerms * panel]float32 // 4-bit values on their way to b
	termA, termB [maxTerms]int             // where terms are in A and B
	rowA, rowC   [maxRows]int
	colB         [maxCols]int
	idle         []bool // rows of a task of which every term so far was zero
	finite       finite // of the packed columns
	t            tile
}

// block returns where the i-th of n equal parts of size starts and ends, at
// multiples of unit.
func block(i, n, size, unit int) (from, to int) {
	each := ceil(ceil(size, n), unit) * unit
	return min(i*each, size), min((i+1)*each, size)
}

// task computes one block of C; false: the context has ended.
func (w *worker) task(i int) bool {
	j := w.job
	col, i := i%j.colBlocks, i/j.colBlocks
	row, entry := i%j.rowBlocks, i/j.rowBlocks
	fromRow, toRow := block(row, j.rowBlocks, j.rows, high)
	fromCol, toCol := block(col, j.colBlocks, j.n, panel)
	if fromRow == toRow || fromCol == toCol {
		return true
	}
	var a, b, c [1]int
	locate(a[:], j.outer, entry, stepA)
	locate(b[:], j.outer, entry, stepB)
	locate(c[:], j.outer, entry, stepC)
	if j.few {
		w.few(j.p.A/4+a[0], j.p.B+b[0], j.p.C/4+c[0], fromCol, toCol)
		return j.ctx.Err() == nil
	}
	w.idle = slices.Grow(w.idle[:0], toRow-fromRow)[:toRow-fromRow]
	cols := w.colB[:toCol-fromCol]
	locate(cols, j.cols, fromCol, stepB)
	firstB := j.p.B/4 + b[0]
	if j.p.NF4 != nil {
		firstB = j.p.B + b[0]
	}
	for term := 0; term < j.terms; term += maxTerms {
		n := min(maxTerms, j.terms-term)
		locate(w.termA[:n], j.p.Terms, term, stepA)
		locate(w.termB[:n], j.p.Terms, term, stepB)
		w.packB(firstB, cols, w.termB[:n])
		for from := fromRow; from < toRow; from += maxRows {
			if j.ctx.Err() != nil {
				return false
			}
			rows := min(maxRows, toRow-from)
			locate(w.rowA[:rows], j.p.Rows, from, stepA)
			locate(w.rowC[:rows], j.p.Rows, from, stepC)
			w.rows(j.p.A/4+a[0], j.p.C/4+c[0]+fromCol, w.idle[from-fromRow:][:rows], len(cols), n, term > 0)
		}
	}
	return true
}
