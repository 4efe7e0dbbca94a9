package kernel

// LoopPlan is a loop that was held against a memory's size and made a program for blocks of it. The loops are rows
// times columns: columns are the innermost one, or, of a reduction in the order of Columns, those of the results.
type LoopPlan struct {
	memory int   // bytes
	work   int   // what the whole loop costs, see Work
	sizes  []int // of the loops around the columns, outer first
	rows   int   // their rounds
	mid    int   // neighbouring rows that are reduced to one
	cols   int
	tall   bool // a block is some rows, or some columns of some rows; else a piece of one row
	groups bool // so is, and columns are whole groups: kernels go from row to row
	block  int  // lanes of a block at most

	reduce  Op
	order   Order
	neutral uint32
	combine func(x, y uint32) uint32

	code   [sections][]instr
	places []place
	moving []int // places that are in memory where they can be
	splits []int // places of a group a row
	outs   []out
	result int // where results gather, in bytes
	arena  int // bytes of all buffers
}

// The sections of a plan's program, by when they run.
const (
	onStart   = iota // once
	onRow            // when a block is of another row: what does not change along it; of several rows at once, if tall
	onColumns        // when a block is of other columns: what is the same in all rows; where tall
	onBlock
	sections
)

// extent is how many values something has.
type extent uint8

// The extents, as bits: whether it changes along columns, and along rows.
const (
	single extent = iota
	alongCols
	alongRows
	whole
)

// Operations of plans alone, behind the kernels'.
const (
	opFetch  = opPair + pairs + iota // a leaf
	opConst                          // a constant
	opSpread                         // one value a row to all columns, or to one group a row
	opRepeat                         // one row to all rows
)

// instr computes one place from others.
type instr struct {
	op     Op
	extent extent
	dst    int
	in     [3]int
	bits   uint32 // of opConst
}

// place is where values are: a buffer, or memory.
type place struct {
	extent extent
	one    bool  // a group of equal values
	split  bool  // a group of equal values a row
	moves  bool  // is one of pl.moving
	walk   *walk // of a leaf, or of the result that is computed in place
	result bool
	uses   []use // of a moving or a split place, by kernels, which take whole groups
	offset int   // of its buffer, in bytes
	last   int   // the last instruction of onBlock that has it as an operand
}

// use is an operand of an instruction of onBlock; 0 is its result.
type use struct{ instr, operand int }

// walk is an operand, in bytes.
type walk struct {
	at    int
	by    []int // of the loops of rows
	col   int
	chain int // rows that follow each other without a gap, from each multiple of it on
}

// out is a result and the place of its values.
type out struct {
	walk
	place int
}

// PrepareLoop checks a loop against a memory of the given bytes: no kernel reads or writes outside of it. The limits
// are 16 loops, 2^28 rounds of one and 2^40 of all, 256 leaves and results, 4096 steps, and strides up to 2^28.
func PrepareLoop(l Loop, memory int) (*LoopPlan, error) {
	if err := l.check(memory); err != nil {
		return nil, err
	}
	pl := &LoopPlan{memory: memory, reduce: l.Reduce, order: l.Order, mid: 1}
	pl.neutral, _ = l.Reduce.neutral()
	pl.combine = plain().binary[l.Reduce]
	p := planner{l: &l, pl: pl}
	p.arrange()
	p.steps()
	p.results()
	p.allocate()
	pl.work = pl.cost()
	return pl, nil
}

// planner makes a plan.
type planner struct {
	l      *Loop
	pl     *LoopPlan
	loops  []int // those of rows, outer first
	inner  int   // that of columns; -1: there is no loop
	value  []int // the place of each step's value
	wide   map[int]int
	leaves map[int]int
	consts map[uint32]int
	made   map[int]int // by place, the instruction of onBlock that computes it
}

// arrange parts loops into rows and columns. Loops of one round are left out.
func (p *planner) arrange() {
	l, pl := p.l, p.pl
	p.inner = len(l.Sizes) - 1
	switch {
	case l.Reduce == None:
		for p.inner > 0 && l.Sizes[p.inner] == 1 {
			p.inner--
		}
	case l.Order == Columns, l.Order == Serial && l.Kept > 0 && l.Sizes[l.Kept-1] >= group:
		pl.order = Columns // one chain a result, as in Serial
		p.inner = l.Kept - 1
	}
	pl.rows, pl.cols = 1, 1
	if p.inner >= 0 {
		pl.cols = l.Sizes[p.inner]
	}
	for i := range l.Sizes {
		if i == p.inner {
			continue
		}
		if l.Sizes[i] > 1 {
			p.loops = append(p.loops, i)
			pl.sizes = append(pl.sizes, l.Sizes[i])
		}
		pl.rows *= l.Sizes[i]
		if i >= l.Kept {
			pl.mid *= l.Sizes[i]
		}
	}
	pl.tall = pl.cols <= maxTall || pl.byColumns()
	pl.groups = pl.tall && pl.cols%group == 0
}

// byColumns tells whether columns are results, and rows are reduced.
func (pl *LoopPlan) byColumns() bool { return pl.reduce != None && pl.order == Columns }

// walk puts an operand in the plan's terms.
func (p *planner) walk(o *Operand) walk {
	const size = 4
	w := walk{at: o.At, by: make([]int, len(p.loops)), chain: 1}
	row := size
	if p.inner >= 0 {
		if p.pl.cols > 1 {
			w.col = o.Strides[p.inner] * size
		}
		if w.col != 0 {
			row = size * p.pl.cols
		}
	}
	for i, axis := range p.loops {
		w.by[i] = o.Strides[axis] * size
	}
	for i := len(w.by) - 1; i >= 0 && (w.col == 0 || w.col == size) && w.by[i] == row*w.chain; i-- {
		w.chain *= p.pl.sizes[i]
	}
	return w
}

func (w *walk) extent() extent {
	e := single
	if w.col != 0 {
		e |= alongCols
	}
	for _, by := range w.by {
		if by != 0 {
			e |= alongRows
		}
	}
	return e
}

// extentOf is a value's extent in blocks: in pieces of a row all that changes along columns is whole.
func (p *planner) extentOf(e extent) extent {
	if !p.pl.tall && e&alongCols != 0 {
		return whole
	}
	return e
}

// section is where values of an extent are computed.
func (p *planner) section(e extent) int {
	switch {
	case e == single:
		return onStart
	case e == alongCols:
		return onColumns
	case e == alongRows && (p.pl.groups || !p.pl.tall):
		return onRow
	}
	return onBlock
}

func (p *planner) place(e extent) int {
	one := e == single || e == alongRows && !p.pl.tall
	p.pl.places = append(p.pl.places, place{extent: e, one: one, last: -1})
	return len(p.pl.places) - 1
}

// emit adds an instruction for values of an extent, and returns its result's place.
func (p *planner) emit(e extent, in instr) int {
	in.extent, in.dst = e, p.place(e)
	s := p.section(e)
	if in.op == opRepeat {
		s = onColumns
	}
	p.pl.code[s] = append(p.pl.code[s], in)
	if s == onBlock {
		p.made[in.dst] = len(p.pl.code[s]) - 1
	}
	return in.dst
}

// steps writes the program of all steps that a result needs.
func (p *planner) steps() {
	l := p.l
	p.value = make([]int, len(l.Steps))
	p.wide, p.leaves = map[int]int{}, map[int]int{}
	p.consts, p.made = map[uint32]int{}, map[int]int{}
	needed := make([]bool, len(l.Steps))
	for _, o := range l.Outs {
		needed[o.Value] = true
	}
	for i := len(l.Steps) - 1; i >= 0; i-- {
		if needed[i] {
			for _, in := range l.Steps[i].In[:l.Steps[i].Op.Operands()] {
				needed[in] = true
			}
		}
	}
	for i := range l.Steps {
		if needed[i] {
			p.value[i] = p.step(&l.Steps[i])
		}
	}
}

func (p *planner) step(s *Step) int {
	switch s.Op {
	case Load:
		return p.load(s.Leaf)
	case Const:
		return p.constant(s.Bits)
	}
	e := single
	for _, in := range s.In[:s.Op.Operands()] {
		e |= p.pl.places[p.value[in]].extent
	}
	e = p.extentOf(e)
	in := instr{op: s.Op}
	for o := range s.Op.Operands() {
		in.in[o] = p.spread(p.value[s.In[o]], e)
	}
	return p.emit(e, in)
}

// spread returns the place of values as an operand of an operation of some extent.
func (p *planner) spread(from int, e extent) int {
	switch f := &p.pl.places[from]; {
	case f.one || f.extent == e || p.pl.groups && f.extent == alongCols:
		return from
	case f.extent == alongCols:
		return p.once(p.wide, from, func() int { return p.emit(e, instr{op: opRepeat, in: [3]int{from}}) })
	}
	return p.once(p.wide, from, func() int {
		if !p.pl.groups {
			return p.emit(e, instr{op: opSpread, in: [3]int{from}})
		}
		at := p.emit(alongRows, instr{op: opSpread, in: [3]int{from}})
		p.pl.places[at].split = true
		p.pl.splits = append(p.pl.splits, at)
		return at
	})
}

func (p *planner) once(memo map[int]int, key int, make func() int) int {
	at, ok := memo[key]
	if !ok {
		at = make()
		memo[key] = at
	}
	return at
}

func (p *planner) constant(bits uint32) int {
	at, ok := p.consts[bits]
	if !ok {
		at = p.emit(single, instr{op: opConst, bits: bits})
		p.consts[bits] = at
	}
	return at
}

// load places a leaf: in memory where its values stand as operations want them, which each block finds out; else
// they are fetched.
func (p *planner) load(leaf int) int {
	return p.once(p.leaves, leaf, func() int {
		w := p.walk(&p.l.Leaves[leaf])
		e := p.extentOf(w.extent())
		inner := w.col == 4 || w.col == 0
		gaps := p.pl.tall && w.chain == 1 && p.pl.rows > 1 // the rows are apart
		if p.section(e) != onBlock || !inner || gaps && !(p.pl.groups && e == whole) {
			at := p.emit(e, instr{op: opFetch})
			p.pl.places[at].walk = &w
			return at
		}
		at := p.place(e)
		p.pl.places[at].walk, p.pl.places[at].moves = &w, true
		return at
	})
}

// operands are the places that an instruction reads.
func (in *instr) operands() []int {
	switch {
	case in.op == opFetch || in.op == opConst:
		return nil
	case in.op >= opPair && in.op < opFetch:
		return in.in[:3]
	case in.op > lastOp:
		return in.in[:1]
	}
	return in.in[:in.op.Operands()]
}
