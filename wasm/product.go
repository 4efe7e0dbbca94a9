package wasm

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/starling-fl/starling/wasm/cost"
)

// Product declares that segments First to First+Count-1 of a step compute one
// matrix product, C = A * B, and nothing else. A host may compute it with
// a kernel of its own instead of running the segments, its twin: the result is
// the same, bit for bit, NaNs' payloads and signs apart (docs/WASM.md).
//
// Element (batch, row, column) of C is a sum of products of float32: it starts
// from +0, and for every term in order, the last axis of Terms counting fastest,
// the product is rounded, then added, and the sum rounded. In a fused program
// (Manifest.Fused) the product is added as it is, and the sum rounded: a fused
// multiply-add (IEEE 754, section 5.4.1). Its segments are a twin only where the
// host has one, f32x4.relaxed_madd: elsewhere they trap, and a kernel must compute
// the product.
type Product struct {
	First int    `json:"first"`         // index of the first segment
	Count int    `json:"count"`         // segments
	A     uint32 `json:"a"`             // address of the first element, a multiple of 4
	B     uint32 `json:"b"`             // the same; of an NF4 tensor: index of the first value in it
	C     uint32 `json:"c"`             // address of the first element, a multiple of 4
	NF4   int    `json:"nf4,omitempty"` // place of the frozen NF4 tensor that holds B among them, from 1; 0: none

	Batch []Axis `json:"batch,omitempty"` // outer first, as in all four; none: once
	Rows  []Axis `json:"rows,omitempty"`  // of A and C
	Cols  []Axis `json:"cols,omitempty"`  // of B and C; neighbours in the last one are neighbours in memory in C
	Terms []Axis `json:"terms,omitempty"` // of A and B: what is summed over

	// Parts cuts the segments into runs, two or more, that do not depend on each other: the
	// first Parts[0] segments, the next Parts[1], and so on. A host may run parts at once, on
	// one memory. That they do not write what another part reads or writes is the program's
	// word; its own results depend on it, and nothing else.
	Parts []int `json:"parts,omitempty"`

	// Moves says what changes from round to round; nil outside of repeats.
	Moves *Moves `json:"moves,omitempty"`
}

// Axis is one loop of a product: its size, 2 or more, and by how many elements A, B
// and C move from one round to the next.
type Axis [4]int

// Size returns the number of rounds.
func (a Axis) Size() int { return a[0] }

// The operands of a product, as they index an Axis.
const (
	operandA = 1 + iota
	operandB
	operandC
)

func (p *Product) groups() [4][]Axis { return [4][]Axis{p.Batch, p.Rows, p.Cols, p.Terms} }

// MultiplyAdds returns the number of terms of all elements of C.
func (p *Product) MultiplyAdds() uint64 {
	n := uint64(1)
	for _, g := range p.groups() {
		for _, a := range g {
			n = cost.Mul(n, uint64(a.Size()))
		}
	}
	return n
}

// checkProducts checks what the manifest alone shows of its products, given its
// memory.
func (m *Manifest) checkProducts(memory declared) error {
	if len(m.Products) > len(m.Segments) {
		return refuse("manifest", "%d products for %d segments", len(m.Products), len(m.Segments))
	}
	next := 0
	for i := range m.Products {
		p := &m.Products[i]
		where := fmt.Sprintf("product %d", i)
		if p.First < next || p.First >= len(m.Segments) || p.Count < 1 || p.Count > len(m.Segments)-p.First {
			return refuse(where, "%d segments from s%d on: not in order, or not among the step's %d", p.Count, p.First,
				len(m.Segments))
		}
		next = p.First + p.Count
		when := m.Segments[p.First].When
		for _, s := range m.Segments[p.First:next] {
			if s.When != when {
				return refuse(where, "its segments have conditions at %d and %d", when, s.When)
			}
		}
		if err := p.checkParts(where); err != nil {
			return err
		}
		if err := p.checkAxes(where); err != nil {
			return err
		}
		if err := memory.checkOperands(where, p, m.Frozen); err != nil {
			return err
		}
		// Kernels, and workers with a part each, look at it once, the twin before every segment.
		c, err := p.bytes(where, operandC, p.C)
		if err != nil {
			return err
		}
		if when != 0 && c.overlaps(span{from: uint64(when), to: uint64(when) + 1}) {
			return refuse(where, "C has its condition in it, at %d", when)
		}
	}
	return nil
}

// checkParts holds the parts against the segments.
func (p *Product) checkParts(where string) error {
	if len(p.Parts) == 1 || len(p.Parts) > maxParts {
		return refuse(where, "%d parts, want none or 2 to %d", len(p.Parts), maxParts)
	}
	left := p.Count
	for i, n := range p.Parts {
		if n < 1 || n > left {
			return refuse(where, "part %d of %d segments, %d are left", i, n, left)
		}
		left -= n
	}
	if len(p.Parts) > 0 && left > 0 {
		return refuse(where, "%d segments in no part", left)
	}
	return nil
}

// checkAxes bounds sizes and steps, so that addresses can be computed in 64 bits
// without a thought, and makes sure that no two elements of C are one.
func (p *Product) checkAxes(where string) error {
	// What an axis of each group does not move.
	still := [4][]int{{}, {operandB}, {operandA}, {operandC}}
	for g, axes := range p.groups() {
		if len(axes) > maxRank {
			return refuse(where, "%d axes of one kind, limit %d", len(axes), maxRank)
		}
		n := uint64(1)
		for _, a := range axes {
			if a.Size() < 2 || a.Size() > maxElements {
				return refuse(where, "axis of %d rounds, want 2 to %d", a.Size(), maxElements)
			}
			if n = cost.Mul(n, uint64(a.Size())); n > maxElements {
				return refuse(where, "more than %d rounds of one kind", maxElements)
			}
			for _, step := range a[1:] {
				if step < -maxElements || step > maxElements {
					return refuse(where, "axis step %d, limit %d either way", step, maxElements)
				}
			}
			for _, o := range still[g] {
				if a[o] != 0 {
					return refuse(where, "%s axis moves %c by %d", [...]string{"batch", "row", "column", "term"}[g], 'A'+o-1, a[o])
				}
			}
		}
	}
	return p.checkResult(where)
}

// checkResult refuses a C whose elements are not all distinct, or are not in
// rows: from the smallest step to the largest, each must pass what the ones below
// it span.
func (p *Product) checkResult(where string) error {
	if n := len(p.Cols); n > 0 && p.Cols[n-1][operandC] != 1 {
		return refuse(where, "the last column axis moves C by %d, want 1", p.Cols[n-1][operandC])
	}
	if step, ok := distinct(slices.Concat(p.Batch, p.Rows, p.Cols)); !ok {
		return refuse(where, "two elements of C are one, or C runs backwards: an axis moves it by %d", step)
	}
	return nil
}

// distinct reports whether no two elements of C are one, or else a step of C that makes them so.
// It sorts the axes.
func distinct(axes []Axis) (step int, ok bool) {
	slices.SortFunc(axes, func(a, b Axis) int { return cmp.Compare(a[operandC], b[operandC]) })
	span := int64(0)
	for _, a := range axes {
		if int64(a[operandC]) <= span {
			return a[operandC], false
		}
		span += int64(a[operandC]) * int64(a.Size()-1)
	}
	return 0, true
}

// extent returns the least and the greatest element that an operand reaches,
// relative to its first. As the rounds of a group multiply to 2^28 at most and
// steps are as small, both stay below 2^59.
func (p *Product) extent(operand int) (lo, hi int64) {
	for _, g := range p.groups() {
		for _, a := range g {
			if d := int64(a[operand]) * int64(a.Size()-1); d < 0 {
				lo += d
			} else {
				hi += d
			}
		}
	}
	return lo, hi
}

// declared is a manifest's memory: spans by address that do not overlap.
type declared []span

// checkOperands holds every address of a product against the declared memory: A and
// B lie in a tensor of float32 or the arena, C in an output, a state or the arena,
// apart from both.
func (d declared) checkOperands(where string, p *Product, frozen []Tensor) error {
	a, err := p.bytes(where, operandA, p.A)
	if err != nil {
		return err
	}
	c, err := p.bytes(where, operandC, p.C)
	if err != nil {
		return err
	}
	if d.holder(a, Float32) == "" {
		return refuse(where, "A, bytes %d to %d, is in no float32 tensor and not in the arena", a.from, a.to)
	}
	if !replaced(d.holder(c, Float32)) {
		return refuse(where, "C, bytes %d to %d, is in no float32 output or state and not in the arena", c.from, c.to)
	}
	if c.overlaps(a) {
		return refuse(where, "C overlaps A")
	}
	if p.NF4 != 0 {
		return p.checkCodes(where, frozen)
	}
	b, err := p.bytes(where, operandB, p.B)
	if err != nil {
		return err
	}
	if d.holder(b, Float32) == "" {
		return refuse(where, "B, bytes %d to %d, is in no float32 tensor and not in the arena", b.from, b.to)
	}
	if c.overlaps(b) {
		return refuse(where, "C overlaps B")
	}
	return nil
}

// bytes returns the memory from the first to the last byte of an operand. Nothing can wrap: see extent.
func (p *Product) bytes(where string, operand int, at uint32) (span, error) {
	lo, hi := p.extent(operand)
	from, to := int64(at)+4*lo, int64(at)+4*hi+4
	if at%4 != 0 || from < 0 || to > 1<<32 {
		return span{}, refuse(where, "%c at %d, bytes %d to %d: not a multiple of 4, or outside of any memory", 'A'+operand-1, at, from, to)
	}
	return span{from: uint64(from), to: uint64(to)}, nil
}

func (s span) overlaps(o span) bool { return s.from < o.to && o.from < s.to }

// holder returns the role of the plain tensor of a type, or "arena", that holds all of
// s; else nothing.
func (d declared) holder(s span, t DType) string {
	i := sort.Search(len(d), func(i int) bool { return d[i].to > s.from })
	if i >= len(d) || s.from < d[i].from || s.to > d[i].to {
		return ""
	}
	if h := d[i].holds; h != t && h != anyType {
		return ""
	}
	return d[i].role
}

// replaced reports whether steps write what has a role.
func replaced(role string) bool { return role == "arena" || role == "output" || role == "state" }

// checkCodes holds a 4-bit B against its tensor. C cannot touch that: frozen tensors
// are apart from the arena, outputs and states.
func (p *Product) checkCodes(where string, frozen []Tensor) error {
	if p.NF4 < 1 || p.NF4 > len(frozen) || frozen[p.NF4-1].NF4 == nil {
		return refuse(where, "B: tensor %d of the %d frozen ones is not an NF4 tensor", p.NF4, len(frozen))
	}
	t := &frozen[p.NF4-1]
	lo, hi := p.extent(operandB)
	lo, hi = lo+int64(p.B), hi+int64(p.B)
	if n := t.Len(); lo < 0 || hi >= int64(n) {
		return refuse(where, "B, values %d to %d, is not within %q of %d", lo, hi, t.Name, n)
	}
	return nil
}

// checkProductWork refuses a product of more work than its twin was proved to do,
// loops on a budget left out: whichever of the two a host runs, a step takes no
// longer. A fused product, which may have no twin, is charged to its segments, each
// of which has the limit of any.
func (m *Manifest) checkProductWork(segments []SegmentReport, limit uint64) error {
	for i := range m.Products {
		p := &m.Products[i]
		if m.Fused {
			n := uint64(p.Count)
			each := cost.Add(cost.Mul(p.MultiplyAdds(), cost.MultiplyAdd), n-1) / n
			if each > limit {
				return refuse(fmt.Sprintf("product %d", i), "%d multiply-adds in %d segments: %d units each, limit %d",
					p.MultiplyAdds(), n, each, limit)
			}
			for j := p.First; j < p.First+p.Count; j++ {
				if s := &segments[j]; s.Cost < each {
					s.Cost, s.Budget = each, limit-each
				}
			}
			continue
		}
		var units uint64
		for _, s := range segments[p.First : p.First+p.Count] {
			units = cost.Add(units, s.Cost)
		}
		if n := p.MultiplyAdds(); cost.Mul(n, cost.MultiplyAdd) > units {
			return refuse(fmt.Sprintf("product %d", i),
				"%d multiply-adds, but its segments cost at most %d units, less than %d for each", n, units, cost.MultiplyAdd)
		}
	}
	return nil
}
