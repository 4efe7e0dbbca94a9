package plan

import (
	"slices"

	"github.com/starling-fl/starling/wasm/compiler/ir"
)

// Products of many pairs of matrices, as attention's scores are of sequences and heads, give more than a processor's
// caches hold, and the stages behind them read all of it from memory, once each. Block by block instead, a few pairs
// through all of these stages, it stays in a cache, and the arena holds one block of what nothing else reads. Each value
// is computed from the same operands in the same order, so the bits are those of the whole.

const (
	blockBytes  = 768 << 10 // what a block of scores may take: it lies within the second cache of most processors
	mostBlocks  = 24        // of a run, as each adds its calls to the program
	mostBetween = 16        // stages that are looked at behind the last one of a run
)

// block finds runs of stages that can work block by block, and lets them. Stages that are wanted under a condition are
// left alone.
func (p *Plan) block(under map[*ir.Node]*ir.Node, most int) {
	b := &blocking{plan: p, under: under, most: most, arena: map[*Buffer]bool{}, at: map[*Buffer]span{}}
	for _, buf := range p.Arena {
		b.arena[buf] = true
	}
	for i, s := range p.Stages {
		for _, r := range refsOf(s) {
			at, known := b.at[r.Buf]
			if !known {
				at = span{i, i}
			}
			b.at[r.Buf] = span{at.first, i}
		}
	}
	var stages []Stage
	for i := 0; i < len(p.Stages); {
		d, ok := p.Stages[i].(*Dot)
		if ok && len(d.Batch) > 0 && b.arena[d.C.Buf] && d.C.Buf.Bytes > most && !b.conditional(d) {
			if done, next := b.run(i); next > i {
				stages = append(stages, done...)
				i = next
				continue
			}
		}
		stages = append(stages, p.Stages[i])
		i++
	}
	p.Stages = stages
}

type blocking struct {
	plan  *Plan
	under map[*ir.Node]*ir.Node
	most  int // bytes of a block
	arena map[*Buffer]bool
	at    map[*Buffer]span // the stages that refer to a buffer
}

func (b *blocking) conditional(s Stage) bool {
	return slices.ContainsFunc(s.writes(), func(buf *Buffer) bool { return b.under[buf.Node] != nil })
}

// run writes the run that begins with stage i in blocks. It returns what stands in place of the stages up to the next
// one; i where there is no such run.
func (b *blocking) run(i int) (stages []Stage, next int) {
	for members, between := b.members(i); len(members) > 1; members = members[:len(members)-1] {
		last := members[len(members)-1]
		apart := between[:min(len(between), last+1-i-len(members))]
		run := make([]Stage, len(members))
		for k, at := range members {
			run[k] = b.plan.Stages[at]
		}
		for _, n := range counts(run[0].(*Dot).C.Buf.Bytes, b.most) {
			if blocks := b.blocks(run, span{i, last}, apart, n); blocks != nil {
				return blocks, last + 1
			}
		}
	}
	return nil, i
}

// counts lists how many blocks may be tried, the best first: the fewest that are small enough, else as many as may be.
func counts(bytes, most int) (list []int) {
	enough := min((bytes+most-1)/most, mostBlocks)
	for n := enough; n <= mostBlocks; n++ {
		list = append(list, n)
	}
	for n := enough - 1; n > 1; n-- {
		list = append(list, n)
	}
	return list
}

// members lists the stages of the run that begins with stage i, and those between them that do not depend on it: these
// can run before it. A stage is one of a run where it refers to something as large as the first one's result, or lies
// between two that do and is a loop.
func (b *blocking) members(i int) (members, between []int) {
	all := b.plan.Stages
	large := all[i].(*Dot).C.Buf.Bytes
	written, read := map[*Buffer]bool{}, map[*Buffer]bool{}
	touches := func(s Stage) bool {
		return slices.ContainsFunc(refsOf(s), func(r Ref) bool { return r.Buf.Bytes >= large && b.arena[r.Buf] })
	}
	certain, apart := 0, 0 // how many of either up to the last stage that touches what is large
	for j := i; j < len(all) && j <= i+mostBetween+len(members); j++ {
		s := all[j]
		_, loop := s.(*Loop)
		_, dot := s.(*Dot)
		depends := slices.ContainsFunc(s.reads(), func(r *Buffer) bool { return written[r] }) ||
			slices.ContainsFunc(s.writes(), func(w *Buffer) bool { return written[w] || read[w] })
		member := loop && depends || (loop || dot) && touches(s)
		if b.conditional(s) || depends && !member {
			break
		}
		if !member {
			between = append(between, j)
			continue
		}
		members = append(members, j)
		for _, w := range s.writes() {
			written[w] = true
		}
		for _, r := range s.reads() {
			read[r] = true
		}
		if touches(s) {
			certain, apart = len(members), len(between)
		}
	}
	return members[:certain], between[:apart]
}

// blocks cuts a run into n blocks, one after another; nil where it cannot be. A block of what one stage of the run writes
// and another refers to is a piece of memory of its own.
func (b *blocking) blocks(run []Stage, over span, between []int, n int) (stages []Stage) {
	pieces := make([][]Stage, len(run))
	writers := map[*Buffer]Stage{}
	for k, s := range run {
		if pieces[k] = evenly(s, n); pieces[k] == nil {
			return nil
		}
		for _, w := range s.writes() {
			writers[w] = s
		}
	}
	shared := map[*Buffer]bool{}
	for _, s := range run {
		for _, r := range refsOf(s) {
			if w := writers[r.Buf]; w != nil && w != s {
				shared[r.Buf] = true
			}
		}
	}
	for _, list := range pieces {
		for c, s := range list {
			for _, e := range extents(s) {
				if each := e.buf.Bytes / n; shared[e.buf] && (e.buf.Bytes%(4*n) != 0 || e.lo < c*each || e.hi > (c+1)*each) {
					return nil
				}
			}
		}
	}
	var local []*Buffer // what nothing else refers to: each block has its own
	for _, buf := range b.plan.Arena {
		if shared[buf] && b.at[buf].first >= over.first && b.at[buf].last <= over.last {
			local = append(local, buf)
		}
	}
	b.plan.Arena = slices.DeleteFunc(b.plan.Arena, func(buf *Buffer) bool { return slices.Contains(local, buf) })
	for _, at := range between {
		stages = append(stages, b.plan.Stages[at])
	}
	for c := range n {
		own := map[*Buffer]*Buffer{}
		for _, buf := range local {
			own[buf] = &Buffer{Node: buf.Node, Bytes: buf.Bytes / n}
			b.plan.Arena = append(b.plan.Arena, own[buf])
		}
		for _, list := range pieces {
			each(list[c], func(r *Ref) {
				if to := own[r.Buf]; to != nil {
					*r = Ref{to, r.Off - c*to.Bytes}
				}
			})
			stages = append(stages, list[c])
		}
	}
	return stages
}

// evenly cuts a stage into n parts of as many results each, along the outermost axes; nil where they do not divide so.
func evenly(s Stage, n int) (parts []Stage) {
	if n == 1 {
		return []Stage{s}
	}
	var sizes []int
	least := func(int) int { return 1 }
	part := func(axis, from, count int) Stage { return nil }
	switch s := s.(type) {
	case *Loop:
		sizes = s.Sizes[:s.Kept]
		least = func(axis int) int {
			if axis == s.Kept-1 {
				return leastVectors
			}
			return 1
		}
		part = func(axis, from, count int) Stage { return s.part(axis, from, count) }
	case *Dot:
		for _, a := range s.Batch {
			sizes = append(sizes, a.Size)
		}
		part = func(axis, from, count int) Stage { return s.part(axis, from, count) }
	}
	axis := slices.IndexFunc(sizes, func(n int) bool { return n > 1 })
	if axis < 0 {
		return nil
	}
	size := sizes[axis]
	switch {
	case size%n == 0 && size/n >= least(axis):
		for c := range n {
			parts = append(parts, part(axis, c*size/n, size/n))
		}
	case n%size == 0 && least(axis) == 1:
		for c := range size {
			inner := evenly(part(axis, c, 1), n/size)
			if inner == nil {
				return nil
			}
			parts = append(parts, inner...)
		}
	}
	return parts
}

// part is a product over some steps of an axis of its batch.
func (d *Dot) part(axis, from, count int) *Dot {
	p := *d
	a := d.Batch[axis]
	p.Batch = slices.Clone(d.Batch)
	if p.Batch[axis].Size = count; count == 1 {
		p.Batch = slices.Delete(p.Batch, axis, axis+1)
	}
	p.A.Off += 4 * from * a.A
	p.B.Off += 4 * from * a.B
	p.C.Off += 4 * from * a.C
	return &p
}

// extent is the bytes of a buffer between which a stage refers to it.
type extent struct {
	buf    *Buffer
	lo, hi int
}

func extents(s Stage) (list []extent) {
	add := func(r Ref, size int, steps func(yield func(count, stride int))) {
		e := extent{r.Buf, r.Off, r.Off + size}
		steps(func(count, stride int) {
			d := (count - 1) * stride * size
			e.lo, e.hi = e.lo+min(d, 0), e.hi+max(d, 0)
		})
		list = append(list, e)
	}
	switch s := s.(type) {
	case *Loop:
		leaf := func(l Leaf) {
			add(l.Ref, l.DType.Size(), func(yield func(count, stride int)) {
				for i, stride := range l.Strides {
					yield(s.Sizes[i], stride)
				}
			})
		}
		for _, l := range s.Leaves {
			leaf(l)
		}
		for _, o := range s.Outs {
			leaf(o.Leaf)
		}
	case *Dot:
		for i, r := range []Ref{s.A, s.B, s.C} {
			add(r, 4, func(yield func(count, stride int)) {
				for _, axes := range [][]Axis{s.Batch, s.M, s.N, s.K} {
					for _, a := range axes {
						yield(a.Size, [3]int{a.A, a.B, a.C}[i])
					}
				}
			})
		}
	}
	return list
}
