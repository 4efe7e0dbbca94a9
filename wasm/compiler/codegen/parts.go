package codegen

import "github.com/starling-fl/starling/wasm/compiler/plan"

// A product for a host that has no kernels is cut into parts, which several of its workers may compute at once: blocks
// of C by batch, rows or columns, never by terms, so that every element has the same sum. Each part packs into memory of
// its own.

const (
	maxParts  = 4
	partFLOPs = 1 << 22 // of the least part: 0.1 ms, some twenty times what it takes to hand it over
	partRows  = 32      // of the least part cut by rows: every part packs all of B
	partCols  = 64      // of the least part cut by columns: every part packs all of A
)

// Reserve sets memory aside for packing, as much for each part as the dearest of the stages takes.
func (g *Generator) Reserve(stages []plan.Stage) {
	for _, s := range stages {
		d, ok := s.(*plan.Dot)
		if !ok {
			continue
		}
		inner := func(axes []plan.Axis) int {
			if len(axes) == 0 {
				return 1
			}
			return axes[len(axes)-1].Size
		}
		cols := roundUp(min(inner(d.N), maxNC), g.Shape.Cols)
		g.lane = max(g.lane, roundUp(scratchB+4*cols*min(inner(d.K), maxKC), 16))
		g.Scratch = max(g.Scratch, g.lane*len(g.parts(d)))
	}
}

// LargestScratch is the largest scratch space that Reserve sets aside for these stages on any host.
func LargestScratch(stages []plan.Stage) (most int) {
	for _, shape := range []Shape{Wazero, V8, V8Fused} {
		g := New(nil, shape, 0, 0)
		g.Reserve(stages)
		most = max(most, g.Scratch)
	}
	return most
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// parts cuts a product; one that is not worth it stays whole.
func (g *Generator) parts(d *plan.Dot) []*plan.Dot {
	n := min(maxParts, dotFLOPs(d)/partFLOPs)
	if !g.Shape.Parts || n < 2 {
		return []*plan.Dot{d}
	}
	last := func(axes []plan.Axis) int { return max(0, len(axes)-1) }
	for _, by := range []struct {
		axes *[]plan.Axis
		at   int // the axis among them
		unit int // parts are multiples of it, but for the last
		size int // the least part
	}{
		{&d.Batch, 0, 1, 1},
		{&d.M, last(d.M), g.Shape.Rows, partRows},
		{&d.M, 0, 1, 1},
		{&d.N, last(d.N), g.Shape.Cols, partCols},
	} {
		if len(*by.axes) == 0 {
			continue
		}
		if p := cut(d, by.axes, by.at, min(n, (*by.axes)[by.at].Size/by.size), by.unit); len(p) > 1 {
			return p
		}
	}
	return []*plan.Dot{d}
}

// cut divides one of the axes of d, which are at axes, into n parts.
func cut(d *plan.Dot, axes *[]plan.Axis, at, n, unit int) (parts []*plan.Dot) {
	if n < 2 {
		return nil
	}
	whole := *axes
	ax := whole[at]
	each := roundUp((ax.Size+n-1)/n, unit)
	for from := 0; from < ax.Size; from += each {
		part := ax
		part.Size = min(each, ax.Size-from)
		*axes = append([]plan.Axis(nil), whole...)
		(*axes)[at] = part
		p := *d
		p.A.Off += 4 * from * ax.A
		p.B.Off += 4 * from * ax.B
		p.C.Off += 4 * from * ax.C
		parts = append(parts, &p)
	}
	*axes = whole
	return parts
}

func dotFLOPs(d *plan.Dot) int {
	n := 2
	for _, axes := range [][]plan.Axis{d.Batch, d.M, d.N, d.K} {
		for _, ax := range axes {
			n *= ax.Size
		}
	}
	return n
}
