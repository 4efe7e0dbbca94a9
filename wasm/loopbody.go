package wasm

import (
	"fmt"

	"github.com/starling-fl/starling/wasm/cost"
	"github.com/starling-fl/starling/wasm/kernel"
)

// LoopBody is what declared loops compute: nested loops, the leaves that they read, what
// they do with them at every point, and the results that they store. Loops that differ in
// addresses only share one.
type LoopBody struct {
	Sizes  []int        `json:"sizes"`            // outer first, 1 to 8, each 2 or more
	Leaves []Walk       `json:"leaves,omitempty"` // what is read
	Steps  []LoopStep   `json:"steps"`            // in order
	Outs   []LoopResult `json:"outs"`             // what is stored; one of a reduction
	Reduce Reduction    `json:"reduce,omitzero"`  // of nothing: every point has results of its own
}

// Walk says by how many elements, of 4 bytes, each loop moves a leaf or a result.
type Walk []int

// LoopResult stores the value of a step.
type LoopResult struct {
	Step    int  `json:"step"`
	Strides Walk `json:"strides"`
}

// Reduction combines the values of the inner loops' points into one result, float32.
type Reduction struct {
	Op    string `json:"op"`             // "add", "mul", "max" or "min"
	Kept  int    `json:"kept,omitempty"` // loops that are not reduced over: the outer ones
	Order string `json:"order"`          // "serial", "columns" or "row", see docs/WASM.md
}

var (
	reduceOps = map[string]kernel.Op{"add": kernel.Add, "mul": kernel.Mul, "max": kernel.Max, "min": kernel.Min}
	orders    = map[string]kernel.Order{"serial": kernel.Serial, "columns": kernel.Columns, "row": kernel.Row}
)

// Points returns how often the steps are computed.
func (b *LoopBody) Points() uint64 {
	n := uint64(1)
	for _, s := range b.Sizes {
		n = cost.Mul(n, uint64(s))
	}
	return n
}

// Units is the least that a twin of the body can cost, in the units of a segment.
func (b *LoopBody) Units() uint64 {
	each := uint64(0)
	for i := range b.Steps {
		each += loopOps[b.Steps[i].Op].units
	}
	return cost.Mul(b.Points(), each)
}

// Valid tells whether a manifest may hold the body.
func (b *LoopBody) Valid() bool { return b.check("") == nil }

// check holds a body against the limits, apart from any addresses.
func (b *LoopBody) check(where string) error {
	if n := len(b.Sizes); n < 1 || n > maxRank {
		return refuse(where, "%d sizes, want 1 to %d", n, maxRank)
	}
	for i, s := range b.Sizes {
		if s < 2 || s > maxElements {
			return refuse(where, "size %d is %d, want 2 to %d", i, s, maxElements)
		}
	}
	if n := b.Points(); n > maxElements {
		return refuse(where, "sizes of more than %d points", maxElements)
	}
	if n := len(b.Leaves) + len(b.Outs); len(b.Outs) < 1 || n > maxParams {
		return refuse(where, "%d outs, %d leaves: want one of the former or more, at most %d together", len(b.Outs), len(b.Leaves), maxParams)
	}
	if n := len(b.Steps); n < 1 || n > maxLoopSteps {
		return refuse(where, "%d steps, want 1 to %d", n, maxLoopSteps)
	}
	for i := range b.Steps {
		if err := b.Steps[i].check(where, i, len(b.Leaves)); err != nil {
			return err
		}
	}
	for i := range b.Leaves {
		if err := b.Leaves[i].check(where, "leaf", i, len(b.Sizes)); err != nil {
			return err
		}
	}
	kept := len(b.Sizes)
	if b.Reduce != (Reduction{}) {
		if err := b.checkReduce(where); err != nil {
			return err
		}
		kept = b.Reduce.Kept
	}
	for i := range b.Outs {
		o := &b.Outs[i]
		if o.Step < 0 || o.Step >= len(b.Steps) {
			return refuse(where, "out %d: step %d of %d", i, o.Step, len(b.Steps))
		}
		if err := o.Strides.check(where, "out", i, len(b.Sizes)); err != nil {
			return err
		}
		if err := b.checkDistinct(where, i, kept); err != nil {
			return err
		}
	}
	return nil
}

func (w Walk) check(where, what string, i, loops int) error {
	if len(w) != loops {
		return refuse(where, "%s %d: %d strides for %d sizes", what, i, len(w), loops)
	}
	for _, s := range w {
		if s < -maxElements || s > maxElements {
			return refuse(where, "%s %d: stride %d, limit %d either way", what, i, s, maxElements)
		}
	}
	return nil
}

func (b *LoopBody) checkReduce(where string) error {
	r := &b.Reduce
	_, op := reduceOps[r.Op]
	_, order := orders[r.Order]
	switch {
	case !op:
		return refuse(where, "reduce op %.20q: want add, mul, max or min", r.Op)
	case !order:
		return refuse(where, "reduce order %.20q: want serial, columns or row", r.Order)
	case r.Kept < 0 || r.Kept >= len(b.Sizes):
		return refuse(where, "reduce kept %d of %d loops: one or more are reduced over", r.Kept, len(b.Sizes))
	case r.Order == "columns" && r.Kept == 0:
		return refuse(where, "reduce order columns, but kept is 0")
	case r.Order == "row" && b.Sizes[len(b.Sizes)-1] < 4:
		return refuse(where, "reduce order row of %d, want 4 or more", b.Sizes[len(b.Sizes)-1])
	case len(b.Outs) != 1:
		return refuse(where, "%d outs of a reduction, want 1", len(b.Outs))
	}
	return nil
}

// checkDistinct refuses a result whose elements are not all distinct, as checkResult does.
func (b *LoopBody) checkDistinct(where string, out, kept int) error {
	strides := b.Outs[out].Strides
	for _, s := range strides[kept:] {
		if s != 0 {
			return refuse(where, "out %d moves by %d along a loop that is reduced over", out, s)
		}
	}
	axes := make([]Axis, kept)
	for i := range axes {
		axes[i] = Axis{b.Sizes[i], operandC: strides[i]}
	}
	if step, ok := distinct(axes); !ok {
		return refuse(where, "two elements of out %d are one, or it runs backwards: a loop moves it by %d", out, step)
	}
	return nil
}

// checkBodies holds every body against the limits.
func (m *Manifest) checkBodies() error {
	if len(m.Bodies) > len(m.Loops) {
		return refuse("manifest", "%d bodies for %d loops", len(m.Bodies), len(m.Loops))
	}
	for i := range m.Bodies {
		if err := m.Bodies[i].check(fmt.Sprintf("body %d", i)); err != nil {
			return err
		}
	}
	return nil
}
