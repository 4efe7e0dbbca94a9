package codegen

import (
	"slices"

	"github.com/starling-fl/starling/wasm/compiler/emit"
	"github.com/starling-fl/starling/wasm/compiler/plan"
	"github.com/starling-fl/starling/wasm/cost"
)

// Matrix products follow Goto and van de Geijn ("Anatomy of high-performance matrix multiplication", 2008), cut down to
// one core and 16 vector registers: a block of B, kc x nc, is packed into panels of 8 columns and stays in the second
// cache; 4 rows of A are packed at a time, each element repeated in all four lanes, and stay in the first; a 4 x 8 tile
// of C is held in 8 registers while k runs. Partial sums over blocks of k go through C, so that every element of C is
// the sum of its terms in ascending order of k, outer axes of k first, whatever the blocking.
const (
	maxKC   = 256
	maxNC   = 512
	maxMC   = 512
	maxRows = 8 // of any shape's tile

	maxUnitFLOPs = 2 * cost.Short / cost.MultiplyAdd // of one call

	scratchA      = 0                    // offset of the packed rows of A in a part's memory
	scratchFinite = maxRows * maxKC * 16 // of a word: 1 where the packed block of B is finite, 2 where not, 0 before one looks
	scratchIdle   = scratchFinite + 4    // of a word: 1 where the last strip of A that was looked at is idle
	scratchB      = scratchFinite + 16   // of the packed block of B
)

// section is a run of equal blocks of an axis.
type section struct{ at, size int }

// sections cuts n into blocks of at most limit, all equal where a divisor of at least half the limit exists.
func sections(n, limit int) []section {
	size := min(n, limit)
	for s := size; s >= (limit+1)/2 && s > 0; s-- {
		if n%s == 0 {
			size = s
			break
		}
	}
	var out []section
	for at := 0; at < n; at += size {
		out = append(out, section{at, min(size, n-at)})
	}
	return out
}

// product is one block of a matrix product with everything that is fixed in its code. Strides are in bytes, those of
// a 4-bit B in elements.
type product struct {
	outerBatch, outerN, outerK, outerM []plan.Axis
	mc, nc, kc                         int
	am, ak                             int // strides of A
	bk, bn                             int // strides of B
	cm                                 int // stride of C
	nf4, fused                         bool
	start                              int // first element of a 4-bit B, modulo 8
}

// dot writes a product part by part.
func (g *Generator) dot(d *plan.Dot, fused bool) (units []Unit) {
	for i, part := range g.parts(d) {
		units = append(units, g.part(part, i, fused)...)
	}
	return units
}

// part writes the i-th part of a product.
func (g *Generator) part(d *plan.Dot, i int, fused bool) []Unit {
	lane := int32(g.scratch + i*g.lane)
	pop := func(axes []plan.Axis) ([]plan.Axis, plan.Axis) {
		if len(axes) == 0 {
			return nil, plan.Axis{Size: 1, C: 1}
		}
		return axes[:len(axes)-1], axes[len(axes)-1]
	}
	scale := func(axes []plan.Axis) []plan.Axis {
		out := make([]plan.Axis, len(axes))
		for i, a := range axes {
			out[i] = plan.Axis{Size: a.Size, A: 4 * a.A, B: 4 * a.B, C: 4 * a.C}
			if d.B.Buf.NF4 {
				out[i].B = a.B
			}
		}
		return out
	}
	mo, m := pop(scale(d.M))
	no, n := pop(scale(d.N))
	ko, k := pop(scale(d.K))
	base := product{outerBatch: scale(d.Batch), outerN: no, outerK: ko, outerM: mo, am: m.A, ak: k.A, bk: k.B, bn: n.B,
		cm: m.C, nf4: d.B.Buf.NF4, fused: fused}
	addrB := d.B.Addr()
	if base.nf4 {
		addrB = d.B.Off / 4
	}
	var units []Unit
	// emitUnits cuts a block that takes too long for one call along one of its outer loops. Cutting the loop over k
	// is allowed like the others: the parts run in order and add to C.
	var emitUnits func(p product, a, b, c int, acc int32)
	emitUnits = func(p product, a, b, c int, acc int32) {
		flops := 2 * uint64(p.mc*p.nc*p.kc)
		outer := []*[]plan.Axis{&p.outerBatch, &p.outerN, &p.outerK, &p.outerM}
		for _, axes := range outer {
			for _, ax := range *axes {
				flops *= uint64(ax.Size)
			}
		}
		if g.dear(p, flops) {
			for _, axes := range outer {
				at := slices.IndexFunc(*axes, func(a plan.Axis) bool { return a.Size > 1 })
				if at < 0 {
					continue
				}
				ax := (*axes)[at]
				parts := 2
				for parts < ax.Size && (ax.Size%parts != 0 || flops/uint64(parts) > maxUnitFLOPs) {
					parts++
				}
				each := ax
				each.Size /= parts
				*axes = slices.Clone(*axes)
				(*axes)[at] = each
				for i := range parts {
					from := i * each.Size
					partAcc := acc
					if i > 0 && axes == &p.outerK {
						partAcc = 1
					}
					emitUnits(p, a+from*ax.A, b+from*ax.B, c+from*ax.C, partAcc)
				}
				return
			}
		}
		u := Unit{Func: g.driver(p), Part: i, FLOPs: flops}
		u.Args = []int32{lane, int32(a), int32(b), int32(c), acc}
		if p.nf4 {
			u.Args = append(u.Args, int32(d.B.Buf.Addr), int32(d.B.Buf.Scales))
		}
		units = append(units, u)
	}
	ksections := sections(k.Size, maxKC)
	koffsets := []plan.Axis{{}}
	if len(ksections) > 1 {
		// A driver would run all rounds of the outer loops for one block of the innermost, which is not the declared order:
		// they are written out instead.
		koffsets, base.outerK = offsets(ko), nil
	}
	for _, ms := range sections(m.Size, maxMC) {
		for _, ns := range sections(n.Size, maxNC) {
			for i := range len(koffsets) * len(ksections) {
				ks, ko := ksections[i%len(ksections)], koffsets[i/len(ksections)]
				p := base
				p.mc, p.nc, p.kc = ms.size, ns.size, ks.size
				if p.nf4 {
					p.start = (addrB + ns.at*n.B + ks.at*k.B + ko.B) & 7
				}
				acc := int32(0)
				if i > 0 {
					acc = 1
				}
				emitUnits(p, d.A.Addr()+ms.at*m.A+ks.at*k.A+ko.A, addrB+ns.at*n.B+ks.at*k.B+ko.B,
					d.C.Addr()+ms.at*m.C+4*ns.at, acc)
			}
		}
	}
	return units
}

// offsets returns where every round of nested axes stands, in order.
func offsets(axes []plan.Axis) []plan.Axis {
	at := []plan.Axis{{}}
	for _, ax := range axes {
		var next []plan.Axis
		for _, o := range at {
			for i := range ax.Size {
				next = append(next, plan.Axis{A: o.A + i*ax.A, B: o.B + i*ax.B})
			}
		}
		at = next
	}
	return at
}

// driver writes the loops around one block: batch, outer columns, outer k { pack B; outer rows { rows of C } }.
func (g *Generator) driver(p product) *emit.Func {
	pack := g.packB(p)
	rows := g.rows(p)
	params := 5
	if p.nf4 {
		params = 7
	}
	f := g.M.NewFunc(repeat(emit.I32, params)...)
	lane, a, b, c, acc := f.Param(0), f.Param(1), f.Param(2), f.Param(3), f.Param(4)
	cur := f.New(emit.I32)
	move := func(ax plan.Axis) {
		f.AddConst(a, ax.A)
		f.AddConst(b, ax.B)
		f.AddConst(c, ax.C)
	}
	// over runs body for every index of the axes and leaves the addresses as they were.
	var over func(axes []plan.Axis, body func())
	over = func(axes []plan.Axis, body func()) {
		if len(axes) == 0 {
			body()
			return
		}
		ax := axes[0]
		if ax.Size == 1 {
			over(axes[1:], body)
			return
		}
		i := f.New(emit.I32)
		f.Loop(i, ax.Size, 1, func() {
			over(axes[1:], body)
			move(ax)
		})
		f.Free(i)
		move(plan.Axis{A: -ax.Size * ax.A, B: -ax.Size * ax.B, C: -ax.Size * ax.C})
	}
	over(p.outerBatch, func() {
		over(p.outerN, func() {
			f.Get(acc)
			f.Set(cur)
			over(p.outerK, func() {
				f.Get(lane)
				f.Get(b)
				if p.nf4 {
					f.Get(f.Param(5))
					f.Get(f.Param(6))
				}
				f.Call(pack)
				if p.looksForIdle() {
					f.Get(lane)
					f.I32(0)
					f.Store(emit.I32Store, scratchFinite)
				}
				over(p.outerM, func() {
					f.Get(lane)
					f.Get(a)
					f.Get(c)
					f.Get(cur)
					f.Call(rows)
				})
				f.I32(1)
				f.Set(cur)
			})
		})
	})
	return g.M.Adopt(f)
}

// rows writes func(lane, a, c, acc): all rows of one block, against the packed block of B.
func (g *Generator) rows(p product) *emit.Func {
	full := p.mc / g.Shape.Rows
	var tile, last *emit.Func
	if full > 0 {
		tile = g.panel(p, g.Shape.Rows)
	}
	if p.mc%g.Shape.Rows > 0 {
		last = g.panel(p, p.mc%g.Shape.Rows)
	}
	f := g.M.NewFunc(repeat(emit.I32, 4)...)
	lane, a, c, acc := f.Param(0), f.Param(1), f.Param(2), f.Param(3)
	one := func(rows int, tile *emit.Func) {
		g.unlessIdle(f, lane, a, c, acc, p, rows, func() {
			g.packA(f, lane, a, p, rows)
			f.Get(lane)
			f.Get(c)
			f.Get(acc)
			f.Call(tile)
		})
	}
	if full > 0 {
		i := f.New(emit.I32)
		f.Loop(i, full, 1, func() {
			one(g.Shape.Rows, tile)
			f.AddConst(a, g.Shape.Rows*p.am)
			f.AddConst(c, g.Shape.Rows*p.cm)
		})
	}
	if last != nil {
		one(p.mc%g.Shape.Rows, last)
	}
	return g.M.Adopt(f)
}
