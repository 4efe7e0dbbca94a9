package kernel

import (
	"context"
	"errors"
	"sync"
	"unsafe"
)

// Loops tells whether loops are faster on this kernel than the programs' own code.
func (k *Kernel) Loops() bool { return k.lanes != nil }

// RunLoop computes a loop in memory, on as many goroutines of a team as it is worth. It looks at ctx between blocks;
// results are undefined after an error.
func (k *Kernel) RunLoop(ctx context.Context, pl *LoopPlan, memory []byte, team *Team) error {
	if len(memory) < pl.memory {
		return errLoopMemory
	}
	base := unsafe.Pointer(unsafe.SliceData(memory))
	if uintptr(base)%4 != 0 {
		return errors.New("kernel: memory is not aligned to 4 bytes")
	}
	lanes := k.lanes
	if lanes == nil {
		lanes = plain().lanes
	}
	workers := pl.workers(team.size())
	j := loopJobs.Get().(*loopJob)
	j.LoopPlan, j.lanes, j.ctx, j.memory = pl, lanes, ctx, base
	j.cut(workers)
	workers = min(workers, j.tasks)
	j.shares.divide(workers)
	team.run(&j.offer, workers-1)
	*j = loopJob{offer: j.offer, shares: j.shares}
	loopJobs.Put(j)
	return ctx.Err()
}

var errLoopMemory = errors.New("kernel: memory is smaller than the one that the loop was held against")

// loopJob is one run of a loop.
type loopJob struct {
	*LoopPlan
	lanes  *laneKernels
	ctx    context.Context
	memory unsafe.Pointer
	offer  offer
	shares shares

	height, width int // rows and columns of a block
	pieces        int // blocks of neighbouring columns
	units         int // of work that cannot be divided
	tasks         int // runs of units
}

var loopJobs = sync.Pool{New: func() any {
	j := new(loopJob)
	j.offer.job = j
	return j
}}

// cut chooses blocks and tasks. A unit is a block of rows or, of long ones, a piece of one; of a reduction it is all
// that makes one result or a block of them.
func (j *loopJob) cut(workers int) {
	j.width, j.height = min(j.cols, j.block), 1
	results := j.rows / j.mid
	if j.byColumns() && results < workers {
		j.width = min(j.width, ceil(ceil(j.cols, ceil(workers, results)), group)*group)
	}
	j.pieces = ceil(j.cols, j.width)
	j.width = min(j.cols, ceil(ceil(j.cols, j.pieces), group)*group)
	j.pieces = ceil(j.cols, j.width)
	if j.tall {
		j.height = min(j.block/j.width, j.rows)
		whole := group / min(group, j.width&-j.width) // blocks end with a group where they can
		if j.height > whole {
			j.height -= j.height % whole
		}
		if n := len(j.sizes); n > 1 && j.groups { // and with the rows that an operand steps alike between
			for h := j.height; h > j.height/2; h-- {
				if j.sizes[n-1]%h == 0 {
					j.height = h
					break
				}
			}
		}
	}
	switch {
	case j.byColumns():
		j.units = results * j.pieces
	case j.reduce != None && (j.mid > 1 || !j.tall):
		j.units = results
	default:
		j.units = ceil(j.rows, j.height) * j.pieces
	}
	j.tasks = 1
	if workers > 1 {
		j.tasks = min(j.units, 4*workers)
	}
}

func (j *loopJob) work(me int) {
	w := loopWorkers.Get().(*loopWorker)
	w.begin(j)
	j.shares.work(me, j.tasks, w)
	w.end()
	loopWorkers.Put(w)
}

// loopWorkers holds the buffers of goroutines between loops.
var loopWorkers = sync.Pool{New: func() any { return new(loopWorker) }}

// loopWorker is one goroutine's share of a loop: buffers, and the program with their addresses.
type loopWorker struct {
	*loopJob
	arena  []uint32
	base   unsafe.Pointer // the arena from its first whole group on
	at     []unsafe.Pointer
	code   [sections][]bound
	part   partials
	result []uint32 // of a reduction, as many as a block has
	count  int      // blocks until the context is looked at

	// The block, and what was computed for an earlier one: from row and col on, high by wide.
	row, col, high, wide         int
	ofRow, ofCol, ofHigh, ofWide int
	fromRow, toRow               int           // of which values along rows are there
	index                        [maxLoops]int // of row
}

// bound is an instruction with its addresses.
type bound struct {
	run func(*laneWords) // nil: not a kernel
	lanes
	*instr
}

// begin readies a worker: it finds places for all values, and computes those that never change.
func (w *loopWorker) begin(j *loopJob) {
	w.loopJob = j
	if n := j.arenaWords(); len(w.arena) < n {
		w.arena = make([]uint32, n)
	}
	w.base = unsafe.Pointer(unsafe.SliceData(w.arena))
	w.base = unsafe.Add(w.base, -uintptr(w.base)%(4*group))
	w.at = w.at[:0]
	for i := range j.places {
		w.at = append(w.at, unsafe.Add(w.base, j.places[i].offset))
	}
	for s := range w.code {
		w.code[s] = w.code[s][:0]
		for i := range j.code[s] {
			in := &j.code[s][i]
			b := bound{instr: in}
			if in.op < opFetch {
				b.run = j.lanes.ops[in.op]
				b.at[0], b.groups, b.rows = w.at[in.dst], 1, 1
				for o, at := range in.operands() {
					b.at[1+o] = w.at[at]
					if f := &j.places[at]; !f.one && !f.split {
						b.step[o] = 4 * group
					}
				}
			}
			w.code[s] = append(w.code[s], b)
		}
	}
	w.result = words32((*uint32)(unsafe.Add(w.base, j.LoopPlan.result)), j.block+group)
	w.ofRow, w.ofCol, w.ofHigh, w.ofWide, w.count = -1, -1, -1, -1, 0
	w.row, w.col, w.high, w.wide = 0, 0, 1, 1
	w.fromRow, w.toRow = 0, 0
	w.locate()
	w.exec(onStart)
}

// end lets go of the program's memory: it may be unmapped when the collector next looks at the worker.
func (w *loopWorker) end() {
	w.loopJob = nil
	clear(w.at)
	for s := range w.code {
		clear(w.code[s])
	}
}

func (pl *LoopPlan) arenaWords() int { return pl.arena/4 + group }

// task computes a run of units; false: the context has ended.
func (w *loopWorker) task(i int) bool {
	from, to := i*w.units/w.tasks, (i+1)*w.units/w.tasks
	results := w.reduce != None && (w.mid > 1 || !w.tall) && !w.byColumns()
	switch {
	case w.byColumns():
		for u := from; u < to; u++ {
			if !w.reduceColumns(u/w.pieces*w.mid, u%w.pieces*w.width) {
				return false
			}
		}
	case results:
		for row := from * w.mid; row < to*w.mid; row += w.mid {
			if !w.reduceRows(row) {
				return false
			}
		}
	default:
		for u := from; u < to; u++ {
			row := u / w.pieces * w.height
			col := u % w.pieces * w.width
			if !w.compute(row, min(w.height, w.rows-row), col, min(w.width, w.cols-col)) {
				return false
			}
			if w.reduce != None {
				w.reduceBlock()
				continue
			}
			for i := range w.outs {
				if o := &w.outs[i]; w.places[o.place].walk != &o.walk || w.at[o.place] == w.buffer(o.place) {
					w.store(&o.walk, w.at[o.place])
				}
			}
		}
	}
	return true
}

func (w *loopWorker) buffer(place int) unsafe.Pointer {
	return unsafe.Add(w.base, w.places[place].offset)
}

// compute runs the program for one block.
func (w *loopWorker) compute(row, high, col, wide int) bool {
	if w.count--; w.count < 0 {
		if w.ctx.Err() != nil {
			return false
		}
		w.count = 32
	}
	w.row, w.high, w.col, w.wide = row, high, col, wide
	w.locate()
	switch {
	case len(w.code[onRow]) == 0:
	case w.groups:
		w.along(row, high)
	case w.ofRow != row:
		w.exec(onRow)
	}
	if w.ofWide != wide {
		w.resize(onColumns)
	}
	if w.ofWide != wide || w.ofHigh != high {
		w.resize(onBlock)
	}
	if (w.ofCol != col || w.ofWide != wide) && w.tall {
		w.exec(onColumns)
	}
	w.ofRow, w.ofCol, w.ofHigh, w.ofWide = row, col, high, wide
	for _, at := range w.moving {
		w.move(at)
	}
	for _, at := range w.splits {
		p := unsafe.Add(w.buffer(at), 4*group*(row-w.fromRow))
		for _, u := range w.places[at].uses {
			w.code[onBlock][u.instr].at[u.operand] = p
		}
	}
	w.exec(onBlock)
	return true
}

// along computes what changes along rows alone, for some more rows than the block has.
func (w *loopWorker) along(row, high int) {
	if w.fromRow <= row && row+high <= w.toRow {
		return
	}
	w.high = min(max(high, rowsAtOnce), w.rows-row)
	w.fromRow, w.toRow = row, row+w.high
	w.resize(onRow)
	w.exec(onRow)
	w.high = high
}

// values returns how many values of an extent the block has.
func (w *loopWorker) values(e extent, one bool) int {
	switch {
	case one:
		return 1
	case e == alongCols:
		return w.wide
	case e == alongRows:
		return w.high
	}
	return w.high * w.wide
}

// resize tells the instructions of a section how many rows and groups the block has.
func (w *loopWorker) resize(section int) {
	for i := range w.code[section] {
		b := &w.code[section][i]
		b.rows, b.groups = 1, uintptr(ceil(w.values(b.extent, w.places[b.dst].one), group))
		if !w.groups || b.extent != whole || b.run == nil {
			continue
		}
		b.jump[0] = w.jump(b.dst)
		rows := b.jump[0] != 0
		for o, at := range b.operands() {
			b.jump[1+o] = w.jump(at)
			rows = rows || b.jump[1+o] != 0
		}
		if rows {
			b.rows, b.groups = uintptr(w.high), uintptr(w.wide/group)
		}
	}
	if section == onBlock {
		for _, at := range w.moving { // to be told anew
			w.at[at] = nil
		}
	}
}

// jump is how far it is from the end of a row of an operand to the next, in bytes.
func (w *loopWorker) jump(at int) uintptr {
	switch f := &w.places[at]; {
	case f.one:
	case f.split:
		return 4 * group
	case f.extent == alongCols:
		return uintptr(-4 * w.wide)
	case f.moves && len(w.sizes) > 0:
		return uintptr(f.walk.by[len(w.sizes)-1] - 4*w.wide)
	}
	return 0
}

// locate finds the counters of the block's first row.
func (w *loopWorker) locate() {
	r := w.row
	for i := len(w.sizes) - 1; i > 0; i-- {
		q := r / w.sizes[i]
		w.index[i], r = r-q*w.sizes[i], q
	}
	w.index[0] = r
}

// first is the address of the block's first value of an operand.
func (w *loopWorker) first(o *walk) int {
	at := o.at + w.col*o.col
	for i, by := range o.by {
		at += w.index[i] * by
	}
	return at
}

// together tells whether the values of an operand in the block's rows follow each other without a gap.
func (w *loopWorker) together(o *walk) bool {
	switch {
	case o.col == 0 && w.cols > 1:
	case w.high == 1:
		return o.col == 4 || w.wide == 1
	case w.wide < w.cols:
		return false
	}
	return (o.col == 4 || o.col == 0) && (w.high == 1 || w.row%o.chain+w.high <= o.chain)
}

// alike tells whether an operand steps alike from each of the block's rows to the next.
func (w *loopWorker) alike() bool {
	last := len(w.sizes) - 1
	return w.high == 1 || w.index[last]+w.high <= w.sizes[last]
}

// move has a place stand in memory for this block, if kernels can take it there, and fetches it otherwise.
func (w *loopWorker) move(at int) {
	f := &w.places[at]
	n := w.values(f.extent, f.one)
	var p unsafe.Pointer
	var jump uintptr
	switch {
	case w.groups && f.extent == whole && w.alike():
		p, jump = unsafe.Add(w.memory, w.first(f.walk)), w.jump(at)
	case (n%group == 0 || len(f.uses) == 0) && w.together(f.walk):
		p = unsafe.Add(w.memory, w.first(f.walk))
	default:
		p = w.buffer(at)
		if !f.result {
			w.fetch(f, p)
		}
	}
	if p == w.at[at] {
		return
	}
	w.at[at] = p
	for _, u := range f.uses {
		b := &w.code[onBlock][u.instr]
		b.at[u.operand], b.jump[u.operand] = p, jump
	}
}

func (w *loopWorker) exec(section int) {
	code := w.code[section]
	for i := range code {
		b := &code[i]
		if b.run != nil {
			b.run(b.words())
			continue
		}
		w.other(b.instr)
	}
}
