package kernel

import (
	"math"
	"slices"
)

// results places what is stored or reduced: all of it is whole.
func (p *planner) results() {
	pl := p.pl
	for i := range p.l.Outs {
		o := &p.l.Outs[i]
		at := p.spread(p.value[o.Value], whole)
		// A leaf as it is may be overwritten before it is stored, or have gaps, as another result may.
		f := &pl.places[at]
		again := slices.ContainsFunc(pl.outs, func(o out) bool { return o.place == at })
		gaps := f.moves && (pl.reduce == None || !pl.byColumns() && f.walk.chain < pl.rows)
		if again || gaps || f.one || f.extent != whole {
			at = p.emit(whole, instr{op: opCopy, in: [3]int{at}})
		}
		pl.outs = append(pl.outs, out{p.walk(&o.Operand), at})
	}
	p.pair()
	for i, in := range pl.code[onBlock] {
		for _, at := range in.operands() {
			pl.places[at].last = i
		}
	}
	for i := range pl.outs {
		if pl.reduce == None {
			p.direct(&pl.outs[i])
		}
		pl.places[pl.outs[i].place].last = math.MaxInt
	}
	for at := range pl.places {
		if pl.places[at].moves {
			pl.moving = append(pl.moving, at)
		}
	}
	for i, in := range pl.code[onBlock] {
		for o, at := range append([]int{in.dst}, in.operands()...) {
			if f := &pl.places[at]; (f.moves || f.split) && in.op < opFetch {
				f.uses = append(f.uses, use{i, o})
			}
		}
	}
}

// pair makes one of two neighbouring operations where nobody else wants the first one's value: what it would store and
// load again stays in registers.
func (p *planner) pair() {
	code := p.pl.code[onBlock]
	uses := make([]int, len(p.pl.places))
	for i := range code {
		for _, at := range code[i].operands() {
			uses[at]++
		}
	}
	for _, o := range p.pl.outs {
		uses[o.place]++
	}
	gone := make([]bool, len(code))
	for i := range code {
		in := &code[i]
		second := slices.Index(pairable[:], in.op)
		if second < 0 || in.extent != whole {
			continue
		}
		for o, at := range in.operands() {
			made, ok := p.made[at]
			if !ok || uses[at] != 1 || code[made].extent != whole {
				continue
			}
			first := slices.Index(pairable[:], code[made].op)
			if first < 0 {
				continue
			}
			if in.op == Sub && o == 1 {
				second++
			}
			gone[made] = true
			in.op, in.in = opPair+Op(4*first+second), [3]int{code[made].in[0], code[made].in[1], in.in[1-o]}
			break
		}
	}
	left := code[:0]
	for i := range code {
		delete(p.made, code[i].dst)
		if !gone[i] {
			left = append(left, code[i])
		}
	}
	for i := range left {
		p.made[left[i].dst] = i
	}
	p.pl.code[onBlock] = left
}

// direct has a result's values computed where they are to stand, if nothing that is read there comes later.
func (p *planner) direct(o *out) {
	pl := p.pl
	made, ok := p.made[o.place]
	if !ok || o.col != 4 && (o.col != 0 || pl.cols > 1) || pl.places[o.place].moves ||
		pl.code[onBlock][made].op >= opFetch {
		return
	}
	reads := func(at int) bool {
		w := pl.places[at].walk
		return w != nil && pl.overlap(w, &o.walk)
	}
	for _, in := range pl.code[onBlock][made+1:] {
		if reads(in.dst) || slices.ContainsFunc(in.operands(), reads) {
			return
		}
	}
	f := &pl.places[o.place]
	f.walk, f.moves, f.result = &o.walk, true, true
}

// overlap tells whether two operands may share a byte.
func (pl *LoopPlan) overlap(a, b *walk) bool {
	fromA, toA := pl.span(a)
	fromB, toB := pl.span(b)
	return fromA < toB && fromB < toA
}

func (pl *LoopPlan) span(w *walk) (from, to int) {
	from, to = w.at, w.at+4
	move := func(d int) { from, to = from+min(0, d), to+max(0, d) }
	for i, by := range w.by {
		move(by * (pl.sizes[i] - 1))
	}
	move(w.col * (pl.cols - 1))
	return from, to
}

// Blocks are as large as the first cache lets them: the larger, the less it matters what an operation costs to begin.
const (
	maxTall   = 1024 // columns of which a block has several rows
	leastLane = 256  // of a block
	mostLanes = 2048
	nearBytes = 40 << 10 // of buffers that each block goes through

	rowsAtOnce = 32 // of which values along rows are computed, where a block has fewer
)

// allocate gives every place a buffer. Those of a block are used again once nobody reads them.
func (p *planner) allocate() {
	pl := p.pl
	var free []int
	slots := 0
	slot := make([]int, len(pl.places))
	for i := range pl.code[onBlock] {
		in := &pl.code[onBlock][i]
		release := func() {
			for _, at := range in.operands() {
				if f := &pl.places[at]; f.last == i && !f.moves && p.inBlock(at) {
					free = append(free, slot[at])
					f.last = -1 // an operand may be there twice
				}
			}
		}
		if in.op < opFetch { // lane by lane: the result may take an operand's place
			release()
		}
		if !pl.places[in.dst].moves {
			if len(free) == 0 {
				free = append(free, slots)
				slots++
			}
			slot[in.dst] = free[len(free)-1]
			free = free[:len(free)-1]
		}
		release()
	}
	near := slots + len(pl.moving)
	for _, in := range pl.code[onColumns] {
		if in.op == opRepeat {
			near++
		}
	}
	pl.block = min(max(nearBytes/4/max(near, 1)&^(group-1), leastLane), mostLanes)
	if pl.tall && !pl.byColumns() {
		pl.block = max(pl.block, ceil(pl.cols, group)*group)
	}
	full := 4 * (pl.block + group)
	next := slots * full
	for at := range pl.places {
		switch f := &pl.places[at]; {
		case p.inBlock(at) && !f.moves:
			f.offset = slot[at] * full
		case f.one:
			f.offset, next = next, next+4*group
		case f.split:
			f.offset, next = next, next+max(full, 4*group*rowsAtOnce)
		default:
			f.offset, next = next, next+full
		}
	}
	pl.result, pl.arena = next, next+full
}

// inBlock tells whether an instruction of onBlock computes a place.
func (p *planner) inBlock(at int) bool {
	_, ok := p.made[at]
	return ok
}
