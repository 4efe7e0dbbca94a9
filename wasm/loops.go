package wasm

import (
	"fmt"
	"slices"

	"github.com/starling-fl/starling/wasm/kernel"
)

// Loop declares that one segment of a step computes a body of the manifest on memory, and
// nothing else. A host may compute it by other means instead of running the segment, its
// twin: the result is the same, bit for bit, NaNs' payloads and signs apart.
type Loop struct {
	Segment int      `json:"segment"` // index
	Body    int      `json:"body"`    // index among the manifest's bodies
	At      []uint32 `json:"at"`      // addresses of the first elements: of the leaves, then of the results
}

// checkLoops checks what the manifest alone shows of its loops, given its memory.
// Products have passed.
func (m *Manifest) checkLoops(memory declared) error {
	if len(m.Loops) > len(m.Segments) {
		return refuse("manifest", "%d loops for %d segments", len(m.Loops), len(m.Segments))
	}
	if err := m.checkBodies(); err != nil {
		return err
	}
	products, next, used, steps := m.Products, 0, 0, 0
	for i := range m.Loops {
		l := &m.Loops[i]
		where := fmt.Sprintf("loop %d", i)
		if l.Segment < next || l.Segment >= len(m.Segments) {
			return refuse(where, "segment s%d: not in order, or not among the step's %d", l.Segment, len(m.Segments))
		}
		next = l.Segment + 1
		for len(products) > 0 && products[0].First+products[0].Count <= l.Segment {
			products = products[1:]
		}
		if len(products) > 0 && products[0].First <= l.Segment {
			return refuse(where, "segment s%d is a product's", l.Segment)
		}
		if l.Body < 0 || l.Body > used || l.Body >= len(m.Bodies) {
			return refuse(where, "body %d: bodies stand in the order of their first use, there are %d", l.Body, len(m.Bodies))
		}
		used = max(used, l.Body+1)
		if steps += len(m.Bodies[l.Body].Steps); steps > maxAllSteps {
			return refuse(where, "%d steps of all loops up to here, limit %d", steps, maxAllSteps)
		}
		if err := memory.checkLoop(where, l, &m.Bodies[l.Body]); err != nil {
			return err
		}
	}
	if used < len(m.Bodies) {
		return refuse("manifest", "body %d is no loop's", used)
	}
	return nil
}

// checkLoop holds every address of a loop against the declared memory: leaves lie in a
// plain tensor or the arena, results in an output, a state or the arena, apart from
// each other and from every leaf that is not the same elements in the same order.
func (d declared) checkLoop(where string, l *Loop, b *LoopBody) error {
	spans, err := l.spans(where, b)
	if err != nil {
		return err
	}
	for i, s := range spans {
		_, what := b.operand(i)
		switch h := d.holder(s, anyType); {
		case h == "":
			return refuse(where, "%s, bytes %d to %d, is in no plain tensor and not in the arena", what, s.from, s.to)
		case i >= len(b.Leaves) && !replaced(h):
			return refuse(where, "%s, bytes %d to %d, is in no output or state and not in the arena", what, s.from, s.to)
		}
	}
	return l.checkApart(where, b, spans)
}

// Apart tells whether a loop of a valid body keeps its results apart, as a manifest's must:
// from each other, and from every leaf that is not the same elements in the same order.
func (l *Loop) Apart(b *LoopBody) bool {
	spans, err := l.spans("", b)
	return err == nil && l.checkApart("", b, spans) == nil
}

// spans returns the memory of each leaf, then of each result.
func (l *Loop) spans(where string, b *LoopBody) ([]span, error) {
	if len(l.At) != len(b.Leaves)+len(b.Outs) {
		return nil, refuse(where, "at: %d addresses for %d leaves and %d outs", len(l.At), len(b.Leaves), len(b.Outs))
	}
	spans := make([]span, len(l.At))
	for i := range spans {
		w, what := b.operand(i)
		var err error
		if spans[i], err = w.bytes(where, what, b.Sizes, l.At[i]); err != nil {
			return nil, err
		}
	}
	return spans, nil
}

func (l *Loop) checkApart(where string, b *LoopBody, spans []span) error {
	for o := len(b.Leaves); o < len(spans); o++ {
		out, what := b.operand(o)
		for i := range o {
			if !spans[o].overlaps(spans[i]) {
				continue
			}
			in, other := b.operand(i)
			same := i < len(b.Leaves) && b.Reduce == (Reduction{}) && l.At[i] == l.At[o] && slices.Equal(in, out)
			if !same {
				return refuse(where, "%s overlaps %s", what, other)
			}
		}
	}
	return nil
}

// operand returns the i-th of the leaves and results, and what to call it.
func (b *LoopBody) operand(i int) (Walk, string) {
	if n := len(b.Leaves); i >= n {
		return b.Outs[i-n].Strides, fmt.Sprintf("out %d", i-n)
	}
	return b.Leaves[i], fmt.Sprintf("leaf %d", i)
}

// bytes returns the memory from the first to the last byte of a walk. There are at most
// 2^28 points, and strides are as small.
func (w Walk) bytes(where, what string, sizes []int, at uint32) (span, error) {
	var lo, hi int64
	for i, s := range w {
		d := int64(s) * int64(sizes[i]-1)
		lo, hi = lo+min(d, 0), hi+max(d, 0)
	}
	return elements(where, what, at, lo, hi)
}

// checkLoopWork refuses a loop of more work than its twin was proved to do, loops on a
// budget left out.
func (m *Manifest) checkLoopWork(segments []SegmentReport) error {
	for i := range m.Loops {
		l := &m.Loops[i]
		if n, units := m.Bodies[l.Body].Units(), segments[l.Segment].Cost; n > units {
			return refuse(fmt.Sprintf("loop %d", i), "steps of %d units, but segment s%d costs at most %d", n, l.Segment, units)
		}
	}
	return nil
}

// forKernel puts a verified loop in the kernels' terms.
func (l *Loop) forKernel(b *LoopBody) kernel.Loop {
	k := kernel.Loop{Sizes: b.Sizes, Kept: len(b.Sizes)}
	for i, at := range l.At {
		w, _ := b.operand(i)
		o := kernel.Operand{At: int(at), Strides: w}
		if i < len(b.Leaves) {
			k.Leaves = append(k.Leaves, o)
		} else {
			k.Outs = append(k.Outs, kernel.Result{Operand: o, Value: b.Outs[i-len(b.Leaves)].Step})
		}
	}
	for _, s := range b.Steps {
		step := kernel.Step{Op: loopOps[s.Op].kernel, Leaf: s.Leaf, Bits: s.Bits}
		copy(step.In[:], s.In)
		k.Steps = append(k.Steps, step)
	}
	if r := &b.Reduce; r.Op != "" {
		k.Kept, k.Reduce, k.Order = r.Kept, reduceOps[r.Op], orders[r.Order]
	}
	return k
}
