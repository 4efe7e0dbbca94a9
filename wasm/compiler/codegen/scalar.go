package codegen

import (
	"math"

	"github.com/starling-fl/starling/wasm/compiler/emit"
	"github.com/starling-fl/starling/wasm/compiler/ir"
	"github.com/starling-fl/starling/wasm/compiler/plan"
)

// scalarValue pushes one element: f32, i64, or i32 (also for bool, 0 or 1).
func (k *kernel) scalarValue(v *plan.Value) {
	f := k.f
	switch v.Op {
	case ir.Param:
		f.Get(k.leaves[v.Leaf].local)
		f.Load(loadOp(v.DType), 0)
		return
	case ir.Const:
		pushConst(f, v.DType, v.Bits)
		return
	case ir.Iota:
		f.Get(k.iotas[v].local)
		switch v.DType {
		case ir.F32:
			f.Op(emit.F32ConvertI32S)
		case ir.I64:
			f.Op(emit.I64ExtendI32S)
		}
		return
	case ir.Select:
		k.emit(v.In[1], 0, false)
		k.emit(v.In[2], 0, false)
		k.emit(v.In[0], 0, false)
		f.Op(emit.Select)
		return
	}
	for _, in := range v.In {
		k.emit(in, 0, false)
	}
	if v.Op == ir.Convert {
		convert(f, v.In[0].DType, v.DType)
		return
	}
	k.scalarOp(v.Op, v.In[0].DType)
}

func convert(f *emit.Func, from, to ir.DType) {
	switch {
	case from == to:
	case to == ir.Bool:
		pushConst(f, from, 0)
		f.Op(map[ir.DType]emit.Opcode{ir.F32: emit.F32Ne, ir.I32: emit.I32Ne, ir.I64: emit.I64Ne}[from])
	case to == ir.F32 && from == ir.I64:
		f.Op(emit.F32ConvertI64S)
	case to == ir.F32:
		f.Op(emit.F32ConvertI32S)
	case from == ir.F32 && to == ir.I64:
		f.TruncSat(emit.I64TruncSatF32S)
	case from == ir.F32:
		f.TruncSat(emit.I32TruncSatF32S)
	case to == ir.I64:
		f.Op(emit.I64ExtendI32S)
	case from == ir.I64:
		f.Op(emit.I32WrapI64)
	}
}

var scalarF32 = map[ir.Op]emit.Opcode{ir.Neg: emit.F32Neg, ir.Abs: emit.F32Abs, ir.Sqrt: emit.F32Sqrt,
	ir.Floor: emit.F32Floor, ir.Ceil: emit.F32Ceil, ir.Round: emit.F32Nearest, ir.Add: emit.F32Add, ir.Sub: emit.F32Sub,
	ir.Mul: emit.F32Mul, ir.Div: emit.F32Div, ir.Max: emit.F32Max, ir.Min: emit.F32Min, ir.Eq: emit.F32Eq,
	ir.Ne: emit.F32Ne, ir.Lt: emit.F32Lt, ir.Le: emit.F32Le, ir.Gt: emit.F32Gt, ir.Ge: emit.F32Ge}

var scalarI32 = map[ir.Op]emit.Opcode{ir.Add: emit.I32Add, ir.Sub: emit.I32Sub, ir.Mul: emit.I32Mul, ir.And: emit.I32And,
	ir.Or: emit.I32Or, ir.Xor: emit.I32Xor, ir.Eq: emit.I32Eq, ir.Ne: emit.I32Ne, ir.Lt: emit.I32LtS, ir.Le: emit.I32LeS,
	ir.Gt: emit.I32GtS, ir.Ge: emit.I32GeS, ir.Clz: emit.I32Clz, ir.Popcnt: emit.I32Popcnt}

var scalarI64 = map[ir.Op]emit.Opcode{ir.Add: emit.I64Add, ir.Sub: emit.I64Sub, ir.Mul: emit.I64Mul, ir.And: emit.I64And,
	ir.Or: emit.I64Or, ir.Xor: emit.I64Xor, ir.Eq: emit.I64Eq, ir.Ne: emit.I64Ne, ir.Lt: emit.I64LtS, ir.Le: emit.I64LeS,
	ir.Gt: emit.I64GtS, ir.Ge: emit.I64GeS, ir.Clz: emit.I64Clz, ir.Popcnt: emit.I64Popcnt}

// total maps the total-order comparisons to plain ones.
var total = map[ir.Op]ir.Op{ir.EqTotal: ir.Eq, ir.NeTotal: ir.Ne, ir.LtTotal: ir.Lt, ir.LeTotal: ir.Le, ir.GtTotal: ir.Gt,
	ir.GeTotal: ir.Ge}

// scalarOp replaces the operands on the stack, of dtype d, by the result.
func (k *kernel) scalarOp(op ir.Op, d ir.DType) {
	f := k.f
	table := map[ir.DType]map[ir.Op]emit.Opcode{ir.F32: scalarF32, ir.I32: scalarI32, ir.I64: scalarI64, ir.Bool: scalarI32}[d]
	if t, ok := total[op]; ok {
		if d == ir.F32 {
			k.totalOrder(t)
		} else {
			f.Op(table[t])
		}
		return
	}
	if o, ok := table[op]; ok {
		f.Op(o)
		return
	}
	if d != ir.F32 {
		k.integerOp(op, d)
		return
	}
	switch op {
	case ir.Pow, ir.Rem:
		k.wide2(op)
	case ir.Sin, ir.Cos, ir.Expm1, ir.Log1p:
		k.wide1(op)
	default: // the vector code, in every lane
		f.SIMD(emit.F32x4Splat)
		k.vecOp(op, ir.F32)
		if op == ir.IsNaN || op == ir.IsFinite {
			f.SIMDLane(emit.I32x4ExtractLane, 0)
			f.I32(1)
			f.Op(emit.I32And)
		} else {
			f.SIMDLane(emit.F32x4ExtractLane, 0)
		}
	}
}

// totalOrder compares two floats as -NaN < -Inf < ... < -0 < +0 < ... < +Inf < +NaN.
func (k *kernel) totalOrder(op ir.Op) {
	f := k.f
	b := f.New(emit.I32)
	key := func() {
		f.Op(emit.I32ReinterpretF)
		f.Tee(b)
		f.Get(b)
		f.I32(31)
		f.Op(emit.I32ShrS)
		f.I32(math.MaxInt32)
		f.Op(emit.I32And)
		f.Op(emit.I32Xor)
	}
	y, x := f.New(emit.I32), f.New(emit.I32)
	key()
	f.Set(y)
	key()
	f.Set(x)
	f.Get(x)
	f.Get(y)
	f.Op(scalarI32[op])
	f.Free(b, y, x)
}

// intCode names the instructions of one integer width.
type intCode struct {
	t                                                  emit.ValType
	bits                                               int64
	add, sub, mul, div, rem, and, xor, shl, shrS, shrU emit.Opcode
	eq, lt, gt, geU, eqz                               emit.Opcode
}

var code32 = intCode{emit.I32, 32, emit.I32Add, emit.I32Sub, emit.I32Mul, emit.I32DivS, emit.I32RemS, emit.I32And,
	emit.I32Xor, emit.I32Shl, emit.I32ShrS, emit.I32ShrU, emit.I32Eq, emit.I32LtS, emit.I32GtS, emit.I32GeU, emit.I32Eqz}

var code64 = intCode{emit.I64, 64, emit.I64Add, emit.I64Sub, emit.I64Mul, emit.I64DivS, emit.I64RemS, emit.I64And,
	emit.I64Xor, emit.I64Shl, emit.I64ShrS, emit.I64ShrU, emit.I64Eq, emit.I64LtS, emit.I64GtS, emit.I64GeU, emit.I64Eqz}

// integerOp writes the integer operations that are not one instruction. Division by zero gives -1, a remainder by zero
// the dividend, as in XLA; nothing traps.
func (k *kernel) integerOp(op ir.Op, d ir.DType) {
	f := k.f
	c := code32
	if d == ir.I64 {
		c = code64
	}
	con := func(v int64) {
		if c.t == emit.I64 {
			f.I64(v)
		} else {
			f.I32(int32(v))
		}
	}
	x, y := f.New(c.t), f.New(c.t)
	defer f.Free(x, y)
	switch op {
	case ir.Not:
		if d == ir.Bool {
			f.Op(emit.I32Eqz)
			return
		}
		con(-1)
		f.Op(c.xor)
		return
	case ir.Neg:
		f.Set(x)
		con(0)
		f.Get(x)
		f.Op(c.sub)
		return
	case ir.Abs:
		f.Set(x)
		con(0)
		f.Get(x)
		f.Op(c.sub)
		f.Get(x)
		f.Get(x)
		con(0)
		f.Op(c.lt)
		f.Op(emit.Select)
		return
	case ir.Sign: // (x > 0) - (x < 0)
		f.Set(x)
		f.Get(x)
		con(0)
		f.Op(c.gt)
		f.Get(x)
		con(0)
		f.Op(c.lt)
		f.Op(emit.I32Sub)
		if c.t == emit.I64 {
			f.Op(emit.I64ExtendI32S)
		}
		return
	}
	f.Set(y)
	f.Set(x)
	switch op {
	case ir.Max, ir.Min:
		f.Get(x)
		f.Get(y)
		f.Get(x)
		f.Get(y)
		if op == ir.Max {
			f.Op(c.gt)
		} else {
			f.Op(c.lt)
		}
		f.Op(emit.Select)
	case ir.Div, ir.Rem:
		// y = 0: -1 or x. y = -1: -x or 0, which also avoids the overflow of the least integer.
		f.Get(y)
		f.Op(c.eqz)
		f.IfType(c.t)
		if op == ir.Div {
			con(-1)
		} else {
			f.Get(x)
		}
		f.Else()
		f.Get(y)
		con(-1)
		f.Op(c.eq)
		f.IfType(c.t)
		con(0)
		if op == ir.Div {
			f.Get(x)
			f.Op(c.sub)
		}
		f.Else()
		f.Get(x)
		f.Get(y)
		if op == ir.Div {
			f.Op(c.div)
		} else {
			f.Op(c.rem)
		}
		f.End()
		f.End()
	case ir.Shl, ir.ShrU, ir.ShrS: // a count of the width or more empties the word
		inst := map[ir.Op]emit.Opcode{ir.Shl: c.shl, ir.ShrU: c.shrU, ir.ShrS: c.shrS}[op]
		if op == ir.ShrS {
			f.Get(x)
			con(c.bits - 1)
			f.Op(c.shrS)
		} else {
			con(0)
		}
		f.Get(x)
		f.Get(y)
		f.Op(inst)
		f.Get(y)
		con(c.bits)
		f.Op(c.geU)
		f.Op(emit.Select)
	case ir.Pow: // square and multiply over every bit of the exponent; negative exponents give 0
		r, i := f.New(c.t), f.New(emit.I32)
		con(1)
		f.Set(r)
		f.Get(y)
		con(0)
		f.Op(c.lt)
		f.If()
		con(0)
		f.Set(r)
		f.End()
		f.Loop(i, int(c.bits), 1, func() {
			f.Get(r)
			f.Get(x)
			f.Op(c.mul)
			f.Get(r)
			f.Get(y)
			con(1)
			f.Op(c.and)
			f.Op(c.eqz)
			f.Op(emit.I32Eqz)
			f.Op(emit.Select)
			f.Set(r)
			f.Get(x)
			f.Get(x)
			f.Op(c.mul)
			f.Set(x)
			f.Get(y)
			con(1)
			f.Op(c.shrU)
			f.Set(y)
		})
		f.Get(r)
		f.Free(r, i)
	default:
		panic("codegen: no integer code for an operation that the recorder offers")
	}
}
