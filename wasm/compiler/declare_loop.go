package compiler

import (
	"fmt"

	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler/codegen"
	"github.com/starling-fl/starling/wasm/compiler/ir"
	"github.com/starling-fl/starling/wasm/compiler/plan"
)

// worthDeclaring is the least proved cost of a loop that is declared, some 5 microseconds: less gains nothing that is
// worth its bytes. Others share segments.
const worthDeclaring = 1 << 19

// declareLoop describes a loop to hosts that have kernels of their own. A loop stays undeclared if it is small, computes
// what kernels have not, reads constants (they stand in no tensor of the manifest), or has a result that overlaps what
// is read or written beside it.
func declareLoop(s plan.Stage, calls []codegen.Unit) (b wasm.LoopBody, l wasm.Loop, ok bool) {
	p, isLoop := s.(*plan.Loop)
	if !isLoop || len(calls) != 1 || len(p.Sizes) == 0 {
		return b, l, false
	}
	b.Sizes = p.Sizes
	for _, leaf := range p.Leaves {
		if leaf.DType.Size() != 4 || leaf.Buf.Const != nil {
			return b, l, false
		}
		b.Leaves = append(b.Leaves, leaf.Strides)
	}
	steps := flattener{at: map[*plan.Value]int{}, consts: map[uint32]int{}}
	for _, o := range p.Outs {
		if o.DType.Size() != 4 {
			return b, l, false
		}
		b.Outs = append(b.Outs, wasm.LoopResult{Step: steps.add(o.Value), Strides: o.Strides})
	}
	if b.Steps = steps.list; steps.unknown {
		return b, l, false
	}
	if p.Reduce != ir.Invalid {
		op := map[ir.Op]string{ir.ReduceSum: "add", ir.ReduceProd: "mul", ir.ReduceMax: "max", ir.ReduceMin: "min"}[p.Reduce]
		if op == "" || p.Outs[0].DType != ir.F32 {
			return b, l, false
		}
		order := map[codegen.Order]string{codegen.Serial: "serial", codegen.Columns: "columns", codegen.Row: "row"}
		b.Reduce = wasm.Reduction{Op: op, Kept: p.Kept, Order: order[calls[0].Order]}
	}
	for _, a := range calls[0].Args {
		l.At = append(l.At, uint32(a))
	}
	proved := calls[0].Cost()
	return b, l, proved >= worthDeclaring && b.Valid() && l.Apart(&b) && b.Units() <= proved
}

// bodies are those of a program's loops, by what they say.
type bodies map[string]int

// add puts a loop into a manifest, and its body if none is equal.
func (known bodies) add(m *wasm.Manifest, b wasm.LoopBody, l wasm.Loop) {
	key := fmt.Sprint(b)
	i, ok := known[key]
	if !ok {
		i = len(m.Bodies)
		known[key] = i
		m.Bodies = append(m.Bodies, b)
	}
	l.Body = i
	m.Loops = append(m.Loops, l)
}
