package wasm

import (
	"fmt"

	"github.com/starling-fl/starling/wasm/cost"
)

// Report holds what Verify proved about a program.
type Report struct {
	Manifest     *Manifest // what the program says of itself
	MemoryPages  uint32
	Functions    int
	CodeBytes    int  // function bodies
	StaticLoops  int  // loops with a proved constant trip count
	DynamicLoops int  // loops that draw on the budget
	Budgeted     bool // the module declares the budget global
	Relaxed      bool // it has f32x4.relaxed_madd: only hosts with relaxed SIMD compile it
	// CostLimit is the most a segment may cost: static cost plus loop budget.
	CostLimit uint64
	Prepare   []SegmentReport
	Segments  []SegmentReport // of a step with all rounds: see Manifest.Unrolled
}

// SegmentReport is the proved bound of one segment.
type SegmentReport struct {
	// Cost bounds the units that a call executes outside dynamic loops; with
	// what those draw from the budget it never exceeds Report.CostLimit.
	Cost uint64
	// Budget is the number of units that the host grants to budgeted loops on each call.
	Budget uint64
}

// Verify checks a program against every rule of the format without running or
// compiling it. A nil error means: the module imports nothing, its memory is
// fixed and within limits, its manifest describes it, and each of its segments
// ends within limits.SegmentCost units. Types are the engine's business: Verify
// does not check that operands fit.
func Verify(program []byte, limits Limits) (*Report, error) {
	_, report, err := verify(program, limits.withDefaults())
	return report, err
}

func verify(program []byte, limits Limits) (*module, *Report, error) {
	if len(program) > limits.ModuleBytes {
		return nil, nil, refuse("module", "%d bytes, limit %d", len(program), limits.ModuleBytes)
	}
	m, err := parseModule(program)
	if err != nil {
		return nil, nil, err
	}
	if m.pages > limits.MemoryPages {
		return nil, nil, refuse("memory section", "%d pages, limit %d", m.pages, limits.MemoryPages)
	}
	report := &Report{Manifest: m.manifest, MemoryPages: m.pages, Functions: len(m.funcs), Budgeted: m.fuel, CostLimit: limits.SegmentCost}
	v := &verifier{module: m, report: report, cost: make([]uint64, len(m.funcs)), depth: make([]int, len(m.funcs))}
	for i := range m.bodies {
		if err := v.function(i); err != nil {
			return nil, nil, err
		}
	}
	for i := range m.manifest.Prepare {
		s, err := v.segment(true, i)
		if err != nil {
			return nil, nil, err
		}
		report.Prepare = append(report.Prepare, s)
	}
	for _, c := range m.manifest.Calls() {
		s, err := v.segment(false, c.Segment)
		if err != nil {
			return nil, nil, err
		}
		report.Segments = append(report.Segments, s)
	}
	if err := m.step.checkProductWork(report.Segments, limits.SegmentCost); err != nil {
		return nil, nil, err
	}
	return m, report, nil
}

// verifier proves bounds function by function. Calls only go to lower indices,
// so callees are done when a caller asks for their cost.
type verifier struct {
	module *module
	report *Report
	cost   []uint64
	depth  []int // of calls below a function
	flow   int   // so far, see checkFlow

	// Buffers of the function under verification, reused for the next.
	code  []instr
	ends  []int32
	stack []block
}

func (v *verifier) segment(prepare bool, i int) (SegmentReport, error) {
	index, err := v.module.segmentIndex(prepare, i)
	if err != nil {
		return SegmentReport{}, err
	}
	units := v.cost[index]
	if units > v.report.CostLimit {
		return SegmentReport{}, refuse("segment "+segmentExport(prepare, i), "costs up to %d units, limit %d", units, v.report.CostLimit)
	}
	return SegmentReport{Cost: units, Budget: v.report.CostLimit - units}, nil
}

// block is an open structured instruction during the walk.
type block struct {
	op   uint16
	cost uint64 // so far, of the current arm
	then uint64 // cost of the first arm, once in the second
	loop loopBound
}

// body is one function under verification.
type body struct {
	index  int
	offset int // in the file
	code   []instr
	ends   []int32 // for block, loop, if: index of the matching end
	stack  []block
}

func (b *body) refuse(k int, format string, args ...any) error {
	return refuse(fmt.Sprintf("function %d +%#x", b.index, b.offset+int(b.code[k].at)), format, args...)
}

func (v *verifier) function(index int) error {
	b, err := v.decode(index)
	if err != nil {
		return err
	}
	v.report.CodeBytes += len(v.module.bodies[index])
	b.stack = append(v.stack[:0], block{op: opBlock})
	for k := range b.code {
		if err := v.step(b, k); err != nil {
			return err
		}
	}
	v.code, v.ends, v.stack = b.code, b.ends, b.stack
	return nil
}

// decode reads a body into instructions and matches every block with its end.
func (v *verifier) decode(index int) (*body, error) {
	r := &reader{buf: v.module.bodies[index], where: fmt.Sprintf("function %d", index), base: v.module.offsets[index]}
	groups := r.count(maxLocals, "local groups")
	locals := uint64(0)
	for range groups {
		locals += uint64(r.u32())
		if t := r.byte(); r.err == nil && !isValType(t) {
			r.fail("local of type %#x: numbers and v128 only", t)
		}
	}
	if locals > maxLocals {
		r.fail("%d locals, limit %d", locals, maxLocals)
	}
	locals += uint64(len(v.module.types[v.module.funcs[index]].params))
	b := &body{index: index, offset: r.base, code: v.code[:0], ends: v.ends[:0]}
	control := 1
	open := []int32{-1} // the function itself
	for r.err == nil && len(open) > 0 {
		k := int32(len(b.code))
		in := readInstr(r)
		b.code = append(b.code, in)
		b.ends = append(b.ends, -1)
		if in.joins() {
			control++
		}
		switch in.op {
		case opRelaxedMadd:
			if v.report.Relaxed = true; !v.module.manifest.Fused {
				r.fail("f32x4.relaxed_madd in a program that is not fused")
			}
		case opBlock, opLoop, opIf:
			if open = append(open, k); len(open) > maxBlockDepth {
				r.fail("blocks nested deeper than %d", maxBlockDepth)
			}
		case opEnd:
			if at := open[len(open)-1]; at >= 0 {
				b.ends[at] = k
			}
			open = open[:len(open)-1]
		}
	}
	if r.err == nil && r.left() != 0 {
		r.fail("%d bytes after the end", r.left())
	}
	v.checkFlow(r, max(int(locals), control)*control)
	return b, r.err
}

// checkFlow bounds what compiling may take. Engines that turn locals into single
// assignments may need a value for every local at every join of control flow, and
// walk the joins of a function more than once for each: wazero takes about a
// microsecond and 80 bytes for each pair of local and join, half a minute and
// 1.5 GB for one function of 128 KiB that is made for it.
func (v *verifier) checkFlow(r *reader, flow int) {
	if v.flow += flow; r.err == nil && (flow > maxFlow || v.flow > maxModuleFlow) {
		r.fail("joins of control flow times locals or joins: %d here, %d up to here, limits %d and %d", flow, v.flow, maxFlow, maxModuleFlow)
	}
}

// step accounts for one instruction and holds it against the rules.
func (v *verifier) step(b *body, k int) error {
	in := b.code[k]
	top := &b.stack[len(b.stack)-1]
	top.cost = cost.Add(top.cost, cost.Of(in.op))
	switch in.op {
	case opBlock, opIf:
		b.stack = append(b.stack, block{op: in.op})
	case opLoop:
		bound, err := b.loopBound(k)
		if err != nil {
			return err
		}
		if bound.dynamic && !v.module.fuel {
			return b.refuse(k, "a budgeted loop, but the module declares no budget global")
		}
		b.stack = append(b.stack, block{op: opLoop, loop: bound})
	case opElse:
		if top.op != opIf {
			return b.refuse(k, "else without if")
		}
		top.op, top.then, top.cost = opElse, top.cost, 0
	case opEnd:
		return v.end(b, k)
	case opBr, opBrIf:
		return b.branch(k)
	case opCall:
		return v.call(b, k)
	case opLocalSet, opLocalTee:
		return b.localWrite(k)
	case opGlobalSet:
		if !b.chargeAt(k - 6) {
			return b.refuse(k, "the loop budget is written outside a charge")
		}
	case opMemoryCopy, opMemoryFill:
		// The length is the operand on top: it must be the constant just pushed.
		if k == 0 || b.code[k-1].op != opI32Const {
			return b.refuse(k, "memory.copy and memory.fill need a constant length directly before them")
		}
		top.cost = cost.Add(top.cost, cost.Filled*uint64(uint32(b.code[k-1].arg))/16)
	}
	return nil
}

// end closes a block and adds what it may cost to the one around it.
func (v *verifier) end(b *body, k int) error {
	top := b.stack[len(b.stack)-1]
	b.stack = b.stack[:len(b.stack)-1]
	units := max(top.cost, top.then)
	if top.op == opLoop {
		l := top.loop
		if l.dynamic {
			// Over n counts the loop runs at most n/step+1 times; the charge of
			// n*l.charge pays for n/step, the one more is paid here.
			if cost.Mul(l.step, l.charge) < units {
				return b.refuse(k, "the loop's charge of %d a count, %d counts an iteration, is below the iteration's cost of %d", l.charge, l.step, units)
			}
			v.report.DynamicLoops++
		} else {
			units = cost.Mul(units, l.trips)
			v.report.StaticLoops++
		}
	}
	if len(b.stack) == 0 {
		v.cost[b.index] = units
		return nil
	}
	around := &b.stack[len(b.stack)-1]
	around.cost = cost.Add(around.cost, units)
	return nil
}

// branch allows jumps forward, and backward only the tail of a loop.
func (b *body) branch(k int) error {
	depth := b.code[k].arg
	if depth >= int64(len(b.stack)) {
		return b.refuse(k, "branch depth %d of %d", depth, len(b.stack))
	}
	target := &b.stack[len(b.stack)-1-int(depth)]
	if target.op == opLoop && k != target.loop.branch {
		return b.refuse(k, "a jump back to a loop other than its tail")
	}
	return nil
}

// localWrite keeps counters of open loops from being written.
func (b *body) localWrite(k int) error {
	for i := range b.stack {
		if s := &b.stack[i]; s.op == opLoop && s.loop.counter == b.code[k].arg && s.loop.write != k {
			return b.refuse(k, "local %d counts an open loop", b.code[k].arg)
		}
	}
	return nil
}

func (v *verifier) call(b *body, k int) error {
	callee := b.code[k].arg
	if callee >= int64(b.index) {
		return b.refuse(k, "call of function %d: only lower indices, so that there is no recursion", callee)
	}
	top := &b.stack[len(b.stack)-1]
	top.cost = cost.Add(top.cost, v.cost[callee])
	if d := v.depth[callee] + 1; d > v.depth[b.index] {
		if d > maxCallDepth {
			return b.refuse(k, "calls nested deeper than %d", maxCallDepth)
		}
		v.depth[b.index] = d
	}
	return nil
}
