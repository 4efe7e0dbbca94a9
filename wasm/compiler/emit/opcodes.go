package emit

import "github.com/starling-fl/starling/wasm/cost"

// Opcode is a one-byte instruction.
type Opcode byte

// Scalar instructions, named as in the text format.
const (
	Unreachable Opcode = 0x00
	Return      Opcode = 0x0f
	Drop        Opcode = 0x1a
	Select      Opcode = 0x1b

	I32Load    Opcode = 0x28
	I64Load    Opcode = 0x29
	F32Load    Opcode = 0x2a
	F64Load    Opcode = 0x2b
	I32Load8S  Opcode = 0x2c
	I32Load8U  Opcode = 0x2d
	I32Load16S Opcode = 0x2e
	I32Load16U Opcode = 0x2f
	I32Store   Opcode = 0x36
	I64Store   Opcode = 0x37
	F32Store   Opcode = 0x38
	F64Store   Opcode = 0x39
	I32Store8  Opcode = 0x3a
	I32Store16 Opcode = 0x3b

	I32Eqz Opcode = 0x45
	I32Eq  Opcode = 0x46
	I32Ne  Opcode = 0x47
	I32LtS Opcode = 0x48
	I32LtU Opcode = 0x49
	I32GtS Opcode = 0x4a
	I32GtU Opcode = 0x4b
	I32LeS Opcode = 0x4c
	I32LeU Opcode = 0x4d
	I32GeS Opcode = 0x4e
	I32GeU Opcode = 0x4f
	I64Eqz Opcode = 0x50
	I64Eq  Opcode = 0x51
	I64Ne  Opcode = 0x52
	I64LtS Opcode = 0x53
	I64LtU Opcode = 0x54
	I64GtS Opcode = 0x55
	I64GtU Opcode = 0x56
	I64LeS Opcode = 0x57
	I64LeU Opcode = 0x58
	I64GeS Opcode = 0x59
	I64GeU Opcode = 0x5a
	F32Eq  Opcode = 0x5b
	F32Ne  Opcode = 0x5c
	F32Lt  Opcode = 0x5d
	F32Gt  Opcode = 0x5e
	F32Le  Opcode = 0x5f
	F32Ge  Opcode = 0x60

	I32Clz    Opcode = 0x67
	I32Ctz    Opcode = 0x68
	I32Popcnt Opcode = 0x69
	I32Add    Opcode = 0x6a
	I32Sub    Opcode = 0x6b
	I32Mul    Opcode = 0x6c
	I32DivS   Opcode = 0x6d
	I32DivU   Opcode = 0x6e
	I32RemS   Opcode = 0x6f
	I32RemU   Opcode = 0x70
	I32And    Opcode = 0x71
	I32Or     Opcode = 0x72
	I32Xor    Opcode = 0x73
	I32Shl    Opcode = 0x74
	I32ShrS   Opcode = 0x75
	I32ShrU   Opcode = 0x76
	I64Clz    Opcode = 0x79
	I64Popcnt Opcode = 0x7b
	I64Add    Opcode = 0x7c
	I64Sub    Opcode = 0x7d
	I64Mul    Opcode = 0x7e
	I64DivS   Opcode = 0x7f
	I64RemS   Opcode = 0x81
	I64And    Opcode = 0x83
	I64Or     Opcode = 0x84
	I64Xor    Opcode = 0x85
	I64Shl    Opcode = 0x86
	I64ShrS   Opcode = 0x87
	I64ShrU   Opcode = 0x88

	F32Abs      Opcode = 0x8b
	F32Neg      Opcode = 0x8c
	F32Ceil     Opcode = 0x8d
	F32Floor    Opcode = 0x8e
	F32Trunc    Opcode = 0x8f
	F32Nearest  Opcode = 0x90
	F32Sqrt     Opcode = 0x91
	F32Add      Opcode = 0x92
	F32Sub      Opcode = 0x93
	F32Mul      Opcode = 0x94
	F32Div      Opcode = 0x95
	F32Min      Opcode = 0x96
	F32Max      Opcode = 0x97
	F32Copysign Opcode = 0x98

	F64Eq       Opcode = 0x61
	F64Ne       Opcode = 0x62
	F64Lt       Opcode = 0x63
	F64Gt       Opcode = 0x64
	F64Le       Opcode = 0x65
	F64Ge       Opcode = 0x66
	F64Abs      Opcode = 0x99
	F64Neg      Opcode = 0x9a
	F64Trunc    Opcode = 0x9d
	F64Nearest  Opcode = 0x9e
	F64Add      Opcode = 0xa0
	F64Sub      Opcode = 0xa1
	F64Mul      Opcode = 0xa2
	F64Div      Opcode = 0xa3
	F64Min      Opcode = 0xa4
	F64Max      Opcode = 0xa5
	F64Copysign Opcode = 0xa6

	F32DemoteF64     Opcode = 0xb6
	F64ConvertI64S   Opcode = 0xb9
	F64PromoteF32    Opcode = 0xbb
	I64ReinterpretF  Opcode = 0xbd
	F64ReinterpretI  Opcode = 0xbf
	I32WrapI64       Opcode = 0xa7
	I64ExtendI32S    Opcode = 0xac
	I64ExtendI32U    Opcode = 0xad
	F32ConvertI32S   Opcode = 0xb2
	F32ConvertI64S   Opcode = 0xb4
	I32ReinterpretF  Opcode = 0xbc
	F32ReinterpretI  Opcode = 0xbe
	truncSatPrefix   byte   = 0xfc
	I32TruncSatF32S  uint32 = 0
	I64TruncSatF32S  uint32 = 4
	I64TruncSatF64S  uint32 = 6
	MemoryCopyOpcode uint32 = 10
)

// TruncSat appends one of the saturating conversions.
func (f *Func) TruncSat(op uint32) {
	f.code = append(f.code, truncSatPrefix)
	f.code = AppendUint(f.code, uint64(op))
	f.charge(cost.Of(uint16(truncSatPrefix)<<8 + uint16(op)))
}

// MemoryCopy appends memory.copy of n bytes; destination and source addresses are on the stack.
func (f *Func) MemoryCopy(n uint32) {
	f.I32(int32(n))
	f.code = append(f.code, truncSatPrefix, byte(MemoryCopyOpcode), 0, 0)
	f.charge(cost.Of(uint16(truncSatPrefix)<<8+uint16(MemoryCopyOpcode)) + cost.Filled*uint64(n)/16)
}

func naturalAlign(op Opcode) byte {
	switch op {
	case I64Load, I64Store, F64Load, F64Store:
		return 3
	case I32Load8S, I32Load8U, I32Store8:
		return 0
	case I32Load16S, I32Load16U, I32Store16:
		return 1
	}
	return 2
}

// SIMDOp is a vector instruction (after the prefix 0xfd).
type SIMDOp uint32

// Vector instructions, named as in the text format.
const (
	V128Load        SIMDOp = 0
	V128Load32Splat SIMDOp = 9
	V128Store       SIMDOp = 11
	V128Const       SIMDOp = 12
	I8x16Shuffle    SIMDOp = 13
	I8x16Swizzle    SIMDOp = 14
	I8x16Splat      SIMDOp = 15
	I32x4Splat      SIMDOp = 17
	F32x4Splat      SIMDOp = 19

	I32x4ExtractLane SIMDOp = 27
	I32x4ReplaceLane SIMDOp = 28
	F32x4ExtractLane SIMDOp = 31
	F32x4ReplaceLane SIMDOp = 32

	I32x4Eq  SIMDOp = 55
	I32x4Ne  SIMDOp = 56
	I32x4LtS SIMDOp = 57
	I32x4GtS SIMDOp = 59
	I32x4LeS SIMDOp = 61
	I32x4GeS SIMDOp = 63
	F32x4Eq  SIMDOp = 65
	F32x4Ne  SIMDOp = 66
	F32x4Lt  SIMDOp = 67
	F32x4Gt  SIMDOp = 68
	F32x4Le  SIMDOp = 69
	F32x4Ge  SIMDOp = 70

	V128Not       SIMDOp = 77
	V128And       SIMDOp = 78
	V128AndNot    SIMDOp = 79
	V128Or        SIMDOp = 80
	V128Xor       SIMDOp = 81
	V128Bitselect SIMDOp = 82
	V128AnyTrue   SIMDOp = 83

	V128Store32Lane SIMDOp = 90
	V128Store64Lane SIMDOp = 91
	V128Load32Zero  SIMDOp = 92
	V128Load64Zero  SIMDOp = 93
	V128Load64Lane  SIMDOp = 87

	F32x4Ceil    SIMDOp = 103
	F32x4Floor   SIMDOp = 104
	F32x4Trunc   SIMDOp = 105
	F32x4Nearest SIMDOp = 106

	I16x8ExtendLowI8x16U SIMDOp = 137
	I32x4ExtendLowI16x8U SIMDOp = 169

	I32x4Abs  SIMDOp = 160
	I32x4Neg  SIMDOp = 161
	I32x4Shl  SIMDOp = 171
	I32x4ShrS SIMDOp = 172
	I32x4ShrU SIMDOp = 173
	I32x4Add  SIMDOp = 174
	I32x4Sub  SIMDOp = 177
	I32x4Mul  SIMDOp = 181
	I32x4MinS SIMDOp = 182
	I32x4MaxS SIMDOp = 184

	F32x4Abs  SIMDOp = 224
	F32x4Neg  SIMDOp = 225
	F32x4Sqrt SIMDOp = 227
	F32x4Add  SIMDOp = 228
	F32x4Sub  SIMDOp = 229
	F32x4Mul  SIMDOp = 230
	F32x4Div  SIMDOp = 231
	// F32x4RelaxedMadd is a*b + c, rounded once or twice, as the host has it.
	F32x4RelaxedMadd SIMDOp = 0x105
	F32x4Min         SIMDOp = 232
	F32x4Max         SIMDOp = 233
	F32x4Pmin        SIMDOp = 234
	F32x4Pmax        SIMDOp = 235

	I32x4TruncSatF32x4S SIMDOp = 248
	F32x4ConvertI32x4S  SIMDOp = 250
)

func vectorAlign(op SIMDOp) byte {
	switch op {
	case V128Load32Splat, V128Store32Lane, V128Load32Zero:
		return 2
	case V128Store64Lane, V128Load64Zero, V128Load64Lane:
		return 3
	}
	return 4
}
