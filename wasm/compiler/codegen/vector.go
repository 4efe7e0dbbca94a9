package codegen

import (
	"math"

	"github.com/starling-fl/starling/wasm/compiler/emit"
	"github.com/starling-fl/starling/wasm/compiler/ir"
	"github.com/starling-fl/starling/wasm/compiler/plan"
)

// In vector code a float32 or int32 is a lane, a bool a lane of ones or zeros. Values that do not depend on the
// vectorised loop have four equal lanes. Code for a single element computes all four lanes and uses lane 0.

// vectorizable reports whether every value of the loop can be computed in lanes.
func (k *kernel) vectorizable() bool {
	for _, o := range k.l.Outs {
		if o.DType == ir.I64 {
			return false
		}
	}
	for _, v := range k.values {
		if v.DType == ir.I64 || !laneOp(v) {
			return false
		}
	}
	switch k.l.Reduce {
	case ir.Invalid, ir.ReduceSum, ir.ReduceProd, ir.ReduceMax, ir.ReduceMin:
		return true
	}
	return false
}

func laneOp(v *plan.Value) bool {
	d := v.DType
	if len(v.In) > 0 {
		d = v.In[len(v.In)-1].DType
	}
	switch v.Op {
	case ir.Param, ir.Const, ir.Iota, ir.Neg, ir.Abs, ir.Add, ir.Sub, ir.Mul, ir.Max, ir.Min, ir.Select,
		ir.Eq, ir.Ne, ir.Lt, ir.Le, ir.Gt, ir.Ge:
		return true
	case ir.Convert:
		return d != ir.I64
	case ir.And, ir.Or, ir.Xor, ir.Not:
		return true
	case ir.Div, ir.Sqrt, ir.Rsqrt, ir.Exp, ir.Log, ir.Tanh, ir.Erf, ir.Logistic, ir.Floor, ir.Ceil, ir.Round, ir.Sign,
		ir.IsFinite, ir.IsNaN:
		return d == ir.F32
	}
	return false
}

// constV pushes a splatted constant.
func (k *kernel) constV(bits uint32) {
	if l, ok := k.consts[bits]; ok {
		k.f.Get(l)
		return
	}
	for _, w := range k.wanted {
		if w == bits {
			k.f.V32(bits)
			return
		}
	}
	k.wanted = append(k.wanted, bits)
	k.f.V32(bits)
}

func (k *kernel) constF(x float32) { k.constV(math.Float32bits(x)) }

func splat(f *emit.Func, d ir.DType) {
	if d == ir.F32 {
		f.SIMD(emit.F32x4Splat)
	} else {
		f.SIMD(emit.I32x4Splat)
	}
}

// boolMask turns 0 or 1 in each lane into zeros or ones.
func boolMask(f *emit.Func) { f.SIMD(emit.I32x4Neg) }

func (k *kernel) vecValue(v *plan.Value, u int, vector bool) {
	f := k.f
	in := func(i int) { k.emit(v.In[i], u, vector) }
	switch v.Op {
	case ir.Param:
		k.vecLoad(v, u, vector)
		return
	case ir.Const:
		bits := uint32(v.Bits)
		if v.DType == ir.Bool && bits != 0 {
			bits = math.MaxUint32
		}
		k.constV(bits)
		return
	case ir.Iota:
		m := k.iotas[v]
		f.Get(m.local)
		if s := m.strides; k.vecAt >= 0 && vector && s[k.order[k.vecAt]] != 0 {
			st := s[k.order[k.vecAt]]
			if u > 0 {
				f.I32(int32(4 * u * st))
				f.Op(emit.I32Add)
			}
			f.SIMD(emit.I32x4Splat)
			var b [16]byte
			for lane := range 4 {
				w := uint32(int32(lane * st))
				b[4*lane], b[4*lane+1], b[4*lane+2], b[4*lane+3] = byte(w), byte(w>>8), byte(w>>16), byte(w>>24)
			}
			f.VBytes(b)
			f.SIMD(emit.I32x4Add)
		} else {
			f.SIMD(emit.I32x4Splat)
		}
		if v.DType == ir.F32 {
			f.SIMD(emit.F32x4ConvertI32x4S)
		}
		return
	case ir.Convert:
		in(0)
		k.vecConvert(v.In[0].DType, v.DType)
		return
	case ir.Select:
		in(1)
		in(2)
		in(0)
		f.SIMD(emit.V128Bitselect)
		return
	}
	for i := range v.In {
		in(i)
	}
	k.vecOp(v.Op, v.In[0].DType)
}

func (k *kernel) vecLoad(v *plan.Value, u int, vector bool) {
	f := k.f
	m := k.leaves[v.Leaf]
	d := k.l.Leaves[v.Leaf].DType
	size := d.Size()
	stride := 0
	if vector {
		stride = m.strides[k.order[k.vecAt]] / size
	}
	switch {
	case stride == 1 && d == ir.Bool:
		f.Get(m.local)
		f.VLoad(emit.V128Load32Zero, uint32(4*u))
		f.SIMD(emit.I16x8ExtendLowI8x16U)
		f.SIMD(emit.I32x4ExtendLowI16x8U)
		boolMask(f)
	case stride == 1:
		f.Get(m.local)
		f.VLoad(emit.V128Load, uint32(16*u))
	case stride == 0:
		f.Get(m.local)
		f.Load(loadOp(d), 0)
		splat(f, d)
		if d == ir.Bool {
			boolMask(f)
		}
	default:
		for lane := range 4 {
			off := (4*u + lane) * stride * size
			f.Get(m.local)
			if off < 0 {
				f.I32(int32(off))
				f.Op(emit.I32Add)
				off = 0
			}
			f.Load(loadOp(d), uint32(off))
			switch {
			case lane == 0:
				splat(f, d)
			case d == ir.F32:
				f.SIMDLane(emit.F32x4ReplaceLane, lane)
			default:
				f.SIMDLane(emit.I32x4ReplaceLane, lane)
			}
		}
		if d == ir.Bool {
			boolMask(f)
		}
	}
}

// storeVec evaluates v and stores it at ptr: a vector at the offset, or lane 0.
func (k *kernel) storeVec(v *plan.Value, d ir.DType, ptr emit.Local, offset, u int, vector bool) {
	f := k.f
	if d == ir.Bool {
		k.emit(v, u, vector)
		t := f.New(emit.V128)
		f.Set(t)
		lanes := 1
		if vector {
			lanes = 4
		}
		for lane := range lanes {
			f.Get(ptr)
			f.Get(t)
			f.SIMDLane(emit.I32x4ExtractLane, lane)
			f.I32(1)
			f.Op(emit.I32And)
			f.Store(emit.I32Store8, uint32(offset+lane))
		}
		f.Free(t)
		return
	}
	f.Get(ptr)
	k.emit(v, u, vector)
	if vector {
		f.VLoad(emit.V128Store, uint32(offset))
		return
	}
	k.storeLane0(d)
}

func (k *kernel) storeLane0(d ir.DType) {
	if d == ir.F32 {
		k.f.SIMDLane(emit.F32x4ExtractLane, 0)
	} else {
		k.f.SIMDLane(emit.I32x4ExtractLane, 0)
	}
	k.f.Store(storeOp(d), 0)
}

func (k *kernel) vecConvert(from, to ir.DType) {
	f := k.f
	switch {
	case from == to:
	case from == ir.Bool:
		if to == ir.F32 {
			k.constF(1)
		} else {
			k.constV(1)
		}
		f.SIMD(emit.V128And)
	case to == ir.Bool && from == ir.F32:
		k.constF(0)
		f.SIMD(emit.F32x4Ne)
	case to == ir.Bool:
		k.constV(0)
		f.SIMD(emit.I32x4Ne)
	case to == ir.F32:
		f.SIMD(emit.F32x4ConvertI32x4S)
	default:
		f.SIMD(emit.I32x4TruncSatF32x4S)
	}
}

var floatOps = map[ir.Op]emit.SIMDOp{ir.Neg: emit.F32x4Neg, ir.Abs: emit.F32x4Abs, ir.Add: emit.F32x4Add,
	ir.Sub: emit.F32x4Sub, ir.Mul: emit.F32x4Mul, ir.Div: emit.F32x4Div, ir.Max: emit.F32x4Max, ir.Min: emit.F32x4Min,
	ir.Sqrt: emit.F32x4Sqrt, ir.Floor: emit.F32x4Floor, ir.Ceil: emit.F32x4Ceil, ir.Round: emit.F32x4Nearest,
	ir.Eq: emit.F32x4Eq, ir.Ne: emit.F32x4Ne, ir.Lt: emit.F32x4Lt, ir.Le: emit.F32x4Le, ir.Gt: emit.F32x4Gt,
	ir.Ge: emit.F32x4Ge}

var intOps = map[ir.Op]emit.SIMDOp{ir.Neg: emit.I32x4Neg, ir.Abs: emit.I32x4Abs, ir.Add: emit.I32x4Add,
	ir.Sub: emit.I32x4Sub, ir.Mul: emit.I32x4Mul, ir.Max: emit.I32x4MaxS, ir.Min: emit.I32x4MinS, ir.Eq: emit.I32x4Eq,
	ir.Ne: emit.I32x4Ne, ir.Lt: emit.I32x4LtS, ir.Le: emit.I32x4LeS, ir.Gt: emit.I32x4GtS, ir.Ge: emit.I32x4GeS,
	ir.And: emit.V128And, ir.Or: emit.V128Or, ir.Xor: emit.V128Xor, ir.Not: emit.V128Not}

// vecOp replaces the operands on the stack by the result. d is the operands' dtype.
func (k *kernel) vecOp(op ir.Op, d ir.DType) {
	f := k.f
	table := intOps
	if d == ir.F32 {
		table = floatOps
	}
	if s, ok := table[op]; ok {
		f.SIMD(s)
		return
	}
	x := f.New(emit.V128)
	f.Set(x)
	defer f.Free(x)
	switch op {
	case ir.Rsqrt:
		k.constF(1)
		f.Get(x)
		f.SIMD(emit.F32x4Sqrt)
		f.SIMD(emit.F32x4Div)
	case ir.IsNaN:
		f.Get(x)
		f.Get(x)
		f.SIMD(emit.F32x4Ne)
	case ir.IsFinite:
		f.Get(x)
		f.SIMD(emit.F32x4Abs)
		k.constF(math.MaxFloat32)
		f.SIMD(emit.F32x4Le)
	case ir.Sign: // copysign(1, x) where |x| > 0, else x (zeros and NaN)
		f.Get(x)
		k.constV(1 << 31)
		f.SIMD(emit.V128And)
		k.constF(1)
		f.SIMD(emit.V128Or)
		f.Get(x)
		f.Get(x)
		f.SIMD(emit.F32x4Abs)
		k.constF(0)
		f.SIMD(emit.F32x4Gt)
		f.SIMD(emit.V128Bitselect)
	case ir.Exp:
		k.exp(x)
	case ir.Log:
		k.log(x)
	case ir.Tanh:
		k.tanh(x)
	case ir.Erf:
		k.erf(x)
	case ir.Logistic: // 1 / (1 + exp(-x))
		f.Get(x)
		f.SIMD(emit.F32x4Neg)
		f.Set(x)
		k.constF(1)
		k.constF(1)
		k.exp(x)
		f.SIMD(emit.F32x4Add)
		f.SIMD(emit.F32x4Div)
	default:
		panic("codegen: no vector code for an operation that was called vectorizable")
	}
}
