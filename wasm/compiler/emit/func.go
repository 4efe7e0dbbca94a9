package emit

import (
	"encoding/binary"
	"math"

	"github.com/starling-fl/starling/wasm/cost"
)

// Instructions that only this file writes.
const (
	block     Opcode = 0x02
	loop      Opcode = 0x03
	ifTrue    Opcode = 0x04
	otherwise Opcode = 0x05
	end       Opcode = 0x0b
	brIf      Opcode = 0x0d
	call      Opcode = 0x10
	localGet  Opcode = 0x20
	localSet  Opcode = 0x21
	localTee  Opcode = 0x22
	i32Const  Opcode = 0x41
	i64Const  Opcode = 0x42
	f32Const  Opcode = 0x43
	f64Const  Opcode = 0x44

	noResult = 0x40 // of a block
)

// Local names a local variable or parameter of one function.
type Local uint32

// Func is the code of one function under construction. Its methods append one instruction each, in the order called.
type Func struct {
	// Index is the function's index in its module, the operand of Call.
	Index   uint32
	typ     uint32
	nparams uint32
	locals  []ValType
	code    []byte
	free    map[ValType][]Local
	spent   []arm // of the function and the blocks that are open
}

// arm is what a block costs so far, and what its other arm did.
type arm struct{ units, then uint64 }

func (f *Func) charge(units uint64) {
	top := &f.spent[len(f.spent)-1]
	top.units = cost.Add(top.units, units)
}

// Cost is the most that a call executes, in the units of package cost.
func (f *Func) Cost() uint64 { return f.spent[0].units }

// open writes the start of a block.
func (f *Func) open(op Opcode, result byte) {
	f.Op(op)
	f.code = append(f.code, result)
	f.spent = append(f.spent, arm{})
}

// close writes the end of a block that runs so many times.
func (f *Func) close(times uint64) {
	f.Op(end)
	last := len(f.spent) - 1
	inner := f.spent[last]
	f.spent = f.spent[:last]
	f.charge(cost.Mul(max(inner.units, inner.then), times))
}

// Param returns the i-th parameter.
func (f *Func) Param(i int) Local { return Local(i) }

// New returns a local variable of type t. One that was given back with Free may be used again, so its value is
// undefined until it is set.
func (f *Func) New(t ValType) Local {
	if l := f.free[t]; len(l) > 0 {
		f.free[t] = l[:len(l)-1]
		return l[len(l)-1]
	}
	f.locals = append(f.locals, t)
	return Local(len(f.locals) - 1)
}

// Free gives locals back, so that New may return them again.
func (f *Func) Free(ls ...Local) {
	if f.free == nil {
		f.free = map[ValType][]Local{}
	}
	for _, l := range ls {
		t := f.locals[l]
		f.free[t] = append(f.free[t], l)
	}
}

// Key identifies type, locals and code.
func (f *Func) Key() string {
	b := AppendUint(nil, uint64(f.typ))
	for _, t := range f.locals {
		b = append(b, byte(t))
	}
	return string(append(append(b, 0), f.code...))
}

func (f *Func) encode() []byte {
	var runs []byte
	n := 0
	ls := f.locals[f.nparams:]
	for i := 0; i < len(ls); {
		j := i
		for j < len(ls) && ls[j] == ls[i] {
			j++
		}
		runs = AppendUint(runs, uint64(j-i))
		runs = append(runs, byte(ls[i]))
		n++
		i = j
	}
	b := AppendUint(nil, uint64(n))
	b = append(b, runs...)
	b = append(b, f.code...)
	return append(b, 0x0b)
}

// Op appends a plain one-byte instruction.
func (f *Func) Op(op Opcode) {
	f.code = append(f.code, byte(op))
	f.charge(cost.Of(uint16(op)))
}

// SIMD appends a vector instruction without immediates.
func (f *Func) SIMD(op SIMDOp) {
	f.code = append(f.code, 0xfd)
	f.code = AppendUint(f.code, uint64(op))
	f.charge(cost.Of(0xfd<<8 + uint16(op)))
}

// SIMDLane appends a vector instruction with a lane immediate.
func (f *Func) SIMDLane(op SIMDOp, lane int) {
	f.SIMD(op)
	f.code = append(f.code, byte(lane))
}

// Shuffle appends i8x16.shuffle.
func (f *Func) Shuffle(lanes [16]byte) {
	f.SIMD(I8x16Shuffle)
	f.code = append(f.code, lanes[:]...)
}

// Shuffle32 appends i8x16.shuffle moving 32-bit lanes: each of the four is 0..3 for the first, 4..7 for the second operand.
func (f *Func) Shuffle32(a, b, c, d int) {
	var l [16]byte
	for i, s := range [4]int{a, b, c, d} {
		for j := range 4 {
			l[4*i+j] = byte(4*s + j)
		}
	}
	f.Shuffle(l)
}

func (f *Func) memarg(offset uint32, align byte) {
	f.code = append(f.code, align)
	f.code = AppendUint(f.code, uint64(offset))
}

// Load appends a scalar load or store with a constant offset.
func (f *Func) Load(op Opcode, offset uint32) {
	f.Op(op)
	f.memarg(offset, naturalAlign(op))
}

// Store is Load under the name that reads better for stores.
func (f *Func) Store(op Opcode, offset uint32) { f.Load(op, offset) }

// VLoad appends a vector load or store with a constant offset.
func (f *Func) VLoad(op SIMDOp, offset uint32) {
	f.SIMD(op)
	f.memarg(offset, vectorAlign(op))
}

// VStoreLane appends a lane store such as v128.store32_lane.
func (f *Func) VStoreLane(op SIMDOp, offset uint32, lane int) {
	f.VLoad(op, offset)
	f.code = append(f.code, byte(lane))
}

// indexed appends an instruction with an index.
func (f *Func) indexed(op Opcode, index uint64) {
	f.Op(op)
	f.code = AppendUint(f.code, index)
}

// Get appends local.get.
func (f *Func) Get(l Local) { f.indexed(localGet, uint64(l)) }

// Set appends local.set.
func (f *Func) Set(l Local) { f.indexed(localSet, uint64(l)) }

// Tee appends local.tee.
func (f *Func) Tee(l Local) { f.indexed(localTee, uint64(l)) }

// I32 appends i32.const.
func (f *Func) I32(v int32) {
	f.Op(i32Const)
	f.code = AppendInt(f.code, int64(v))
}

// I64 appends i64.const.
func (f *Func) I64(v int64) {
	f.Op(i64Const)
	f.code = AppendInt(f.code, v)
}

// F32 appends f32.const, bit for bit.
func (f *Func) F32(v float32) {
	f.Op(f32Const)
	f.code = binary.LittleEndian.AppendUint32(f.code, math.Float32bits(v))
}

// F64 appends f64.const, bit for bit.
func (f *Func) F64(v float64) {
	f.Op(f64Const)
	f.code = binary.LittleEndian.AppendUint64(f.code, math.Float64bits(v))
}

// V32 appends v128.const with four equal 32-bit lanes.
func (f *Func) V32(bits uint32) {
	f.SIMD(V128Const)
	for range 4 {
		f.code = binary.LittleEndian.AppendUint32(f.code, bits)
	}
}

// VBytes appends v128.const.
func (f *Func) VBytes(b [16]byte) {
	f.SIMD(V128Const)
	f.code = append(f.code, b[:]...)
}

// Call appends a call of g.
func (f *Func) Call(g *Func) {
	f.indexed(call, uint64(g.Index))
	f.charge(g.Cost())
}

// Block opens a block without result; Else and End close arms and blocks.
func (f *Func) Block() { f.open(block, noResult) }

// If opens an if without result.
func (f *Func) If() { f.open(ifTrue, noResult) }

// IfType opens an if with a result.
func (f *Func) IfType(t ValType) { f.open(ifTrue, byte(t)) }

// Else starts the other arm of an if.
func (f *Func) Else() {
	f.Op(otherwise)
	top := &f.spent[len(f.spent)-1]
	top.then, top.units = top.units, 0
}

// End closes a block or if.
func (f *Func) End() { f.close(1) }

// BrIf appends a conditional branch to the n-th enclosing label.
func (f *Func) BrIf(n int) { f.indexed(brIf, uint64(n)) }

// Loop runs body trips times, trips >= 1, counting the local i from trips*step down to 0 by step. It has the shape
// that the loader can prove to end: "i32.const c; local.set i; loop ... i -= step; br_if 0; end". body must not write i.
func (f *Func) Loop(i Local, trips, step int, body func()) {
	f.I32(int32(trips * step))
	f.Set(i)
	f.open(loop, noResult)
	body()
	f.Get(i)
	f.I32(int32(step))
	f.Op(I32Sub)
	f.Tee(i)
	f.BrIf(0)
	f.close(uint64(trips))
}

// LoopUp runs body with the local i = 0, step, 2*step, ... while i < limit (limit >= 1): the other provable shape.
func (f *Func) LoopUp(i Local, limit, step int, body func()) {
	f.I32(0)
	f.Set(i)
	f.open(loop, noResult)
	body()
	f.Get(i)
	f.I32(int32(step))
	f.Op(I32Add)
	f.Tee(i)
	f.I32(int32(limit))
	f.Op(I32LtU)
	f.BrIf(0)
	f.close(uint64((limit + step - 1) / step))
}

// AddConst adds a constant to an i32 local, writing nothing for zero.
func (f *Func) AddConst(l Local, v int) {
	if v == 0 {
		return
	}
	f.Get(l)
	f.I32(int32(v))
	f.Op(I32Add)
	f.Set(l)
}
