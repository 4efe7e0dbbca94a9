package wasm

// Opcodes that the rules speak of (Core 2.0, section 5.4). Two-byte opcodes are
// prefix<<8 | index.
const (
	opUnreachable = 0x00
	opBlock       = 0x02
	opLoop        = 0x03
	opIf          = 0x04
	opElse        = 0x05
	opEnd         = 0x0b
	opBr          = 0x0c
	opBrIf        = 0x0d
	opReturn      = 0x0f
	opCall        = 0x10
	opDrop        = 0x1a
	opSelect      = 0x1b
	opLocalGet    = 0x20
	opLocalSet    = 0x21
	opLocalTee    = 0x22
	opGlobalGet   = 0x23
	opGlobalSet   = 0x24
	opI32Load     = 0x28
	opI64Store32  = 0x3e
	opI32Const    = 0x41
	opI64Const    = 0x42
	opF32Const    = 0x43
	opF64Const    = 0x44
	opI32Eqz      = 0x45
	opI32LtS      = 0x48
	opI32LtU      = 0x49
	opI32GtS      = 0x4a
	opI64LtS      = 0x53
	opI32Add      = 0x6a
	opI32Sub      = 0x6b
	opI64Sub      = 0x7d
	opI64Mul      = 0x7e
	opI64ExtendU  = 0xad
	opLastNumeric = 0xc4
	opMemoryCopy  = 0xfc0a
	opMemoryFill  = 0xfc0b
	opRelaxedMadd = 0xfe05 // f32x4.relaxed_madd, which is 0xfd 0x105

	blockEmpty = 0x40
)

// instr is one decoded instruction. arg is its integer immediate: a constant, an
// index, a branch depth or a block type; for others 0.
type instr struct {
	op  uint16
	at  int32 // offset in the body
	arg int64
}

// readInstr decodes one instruction, refusing everything outside the numeric,
// memory, local, structured control and fixed SIMD instructions.
func readInstr(r *reader) instr {
	in := instr{at: int32(r.pos)}
	op := r.byte()
	in.op = uint16(op)
	switch {
	case op == opUnreachable, op == 0x01, op == opElse, op == opEnd, op == opReturn, op == opDrop, op == opSelect:
	case op == opBlock, op == opLoop, op == opIf:
		t := r.byte()
		in.arg = int64(t)
		if t != blockEmpty && (op == opLoop || !isValType(t)) {
			r.fail("block type %#x", t)
		}
	case op == opBr, op == opBrIf, op == opCall, op >= opLocalGet && op <= opGlobalSet:
		in.arg = int64(r.u32())
	case op >= opI32Load && op <= opI64Store32:
		r.memarg()
	case op == opI32Const:
		in.arg = int64(r.s32())
	case op == opI64Const:
		in.arg = r.s64()
	case op == opF32Const:
		r.bytes(4)
	case op == opF64Const:
		r.bytes(8)
	case op >= opI32Eqz && op <= opLastNumeric:
	case op == 0xfc:
		in.op = 0xfc00 | r.bulk()
	case op == 0xfd:
		if sub := r.simd(); sub == relaxedMadd {
			in.op = opRelaxedMadd
		} else {
			in.op = 0xfd00 | uint16(sub)
		}
	default:
		r.fail("opcode %#x is not allowed", op)
	}
	return in
}

// memarg reads the alignment and offset of a memory access.
func (r *reader) memarg() {
	if a := r.u32(); a > 4 {
		r.fail("alignment 2^%d", a)
	}
	r.u32()
}

// bulk reads what follows prefix 0xfc: saturating conversions, memory.copy and
// memory.fill.
func (r *reader) bulk() uint16 {
	sub := r.u32()
	zeros := 0
	switch {
	case sub <= 7:
	case sub == 10:
		zeros = 2
	case sub == 11:
		zeros = 1
	default:
		r.fail("opcode 0xfc %d is not allowed", sub)
	}
	for _, b := range r.bytes(zeros) {
		if b != 0 {
			r.fail("memory index %d", b)
		}
	}
	return uint16(sub)
}

// relaxedMadd is the one instruction of relaxed SIMD that a program may have, and
// only in fused products: hosts that do not round it once refuse those programs.
const relaxedMadd = 0x105

// simd reads what follows prefix 0xfd: the fixed-width instructions, which give
// equal bits everywhere. Relaxed SIMD (256 and up) does not.
func (r *reader) simd() uint32 {
	sub := r.u32()
	switch {
	case sub == relaxedMadd:
	case sub > 0xff:
		r.fail("opcode 0xfd %d is not allowed: no relaxed SIMD but f32x4.relaxed_madd", sub)
	case sub <= 11, sub == 92, sub == 93: // loads and stores
		r.memarg()
	case sub == 12, sub == 13: // v128.const, i8x16.shuffle
		r.bytes(16)
	case sub >= 21 && sub <= 34: // extract and replace lane
		r.byte()
	case sub >= 84 && sub <= 91: // load and store lane
		r.memarg()
		r.byte()
	}
	return sub
}

// joins reports whether an engine may start a new basic block at an instruction:
// structured control, and arithmetic that traps or is compiled with branches.
func (in instr) joins() bool {
	switch op := in.op; {
	case op >= opBlock && op <= opIf, op == opElse, op == opEnd, op == opBr, op == opBrIf, op == opReturn:
		return true
	case op >= 0x6d && op <= 0x70, op >= 0x7f && op <= 0x82: // integer division
		return true
	case op >= 0xa8 && op <= 0xab, op >= 0xae && op <= 0xb1: // truncation of floats
		return true
	case op >= 0xfc00 && op <= 0xfcff: // saturating truncation, copy and fill
		return true
	}
	return false
}
