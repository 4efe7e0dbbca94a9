package compiler

import (
	"math"

	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler/ir"
	"github.com/starling-fl/starling/wasm/compiler/plan"
)

// flattener lists the values of a loop, operands first.
type flattener struct {
	list    []wasm.LoopStep
	at      map[*plan.Value]int
	consts  map[uint32]int
	unknown bool // one is no operation of a declared loop
}

func (f *flattener) add(v *plan.Value) int {
	if i, ok := f.at[v]; ok {
		return i
	}
	var in []int
	for _, x := range v.In {
		in = append(in, f.add(x))
	}
	i := f.step(v, in)
	f.at[v] = i
	return i
}

// step appends the steps of a value and returns the last one's number.
func (f *flattener) step(v *plan.Value, in []int) int {
	switch {
	case v.DType == ir.I64:
	case v.Op == ir.Param:
		return f.append(wasm.LoopStep{Op: "load", Leaf: v.Leaf})
	case v.Op == ir.Const:
		bits := uint32(v.Bits)
		if v.DType == ir.Bool && bits != 0 {
			bits = math.MaxUint32
		}
		return f.constant(bits)
	case v.Op == ir.Convert:
		return f.convert(v.In[0].DType, v.DType, in[0])
	case v.Op == ir.Select:
		return f.append(wasm.LoopStep{Op: "select", In: in})
	case len(in) > 0:
		names := map[ir.DType]map[ir.Op]string{ir.F32: floatSteps, ir.I32: intSteps, ir.Bool: boolSteps}
		if name := names[v.In[0].DType][v.Op]; name != "" {
			return f.append(wasm.LoopStep{Op: name, In: in})
		}
	}
	f.unknown = true
	return 0
}

func (f *flattener) append(s wasm.LoopStep) int {
	f.list = append(f.list, s)
	return len(f.list) - 1
}

func (f *flattener) constant(bits uint32) int {
	i, ok := f.consts[bits]
	if !ok {
		i = f.append(wasm.LoopStep{Op: "const", Bits: bits})
		f.consts[bits] = i
	}
	return i
}

// convert does as vector code does: a truth is all ones or all zeros.
func (f *flattener) convert(from, to ir.DType, x int) int {
	with := func(op string, bits uint32) int {
		c := f.constant(bits)
		return f.append(wasm.LoopStep{Op: op, In: []int{x, c}})
	}
	switch {
	case from == to:
		return x
	case from == ir.Bool && to == ir.F32:
		return with("and", math.Float32bits(1))
	case from == ir.Bool && to == ir.I32:
		return with("and", 1)
	case from == ir.F32 && to == ir.Bool:
		return with("ne", 0)
	case from == ir.I32 && to == ir.Bool:
		return with("ine", 0)
	case from == ir.I32 && to == ir.F32:
		return f.append(wasm.LoopStep{Op: "i2f", In: []int{x}})
	case from == ir.F32 && to == ir.I32:
		return f.append(wasm.LoopStep{Op: "f2i", In: []int{x}})
	}
	f.unknown = true // from int64
	return 0
}

// Names of operations in declared loops, by what they work on. Vector code has all of them.
var (
	floatSteps = map[ir.Op]string{ir.Neg: "neg", ir.Abs: "abs", ir.Sign: "sign", ir.Sqrt: "sqrt", ir.Rsqrt: "rsqrt",
		ir.Exp: "exp", ir.Log: "log", ir.Tanh: "tanh", ir.Erf: "erf", ir.Logistic: "logistic", ir.Floor: "floor",
		ir.Ceil: "ceil", ir.Round: "round", ir.IsFinite: "isfinite", ir.IsNaN: "isnan", ir.Add: "add", ir.Sub: "sub",
		ir.Mul: "mul", ir.Div: "div", ir.Max: "max", ir.Min: "min", ir.Eq: "eq", ir.Ne: "ne", ir.Lt: "lt", ir.Le: "le",
		ir.Gt: "gt", ir.Ge: "ge"}
	intSteps = map[ir.Op]string{ir.Neg: "ineg", ir.Abs: "iabs", ir.Add: "iadd", ir.Sub: "isub", ir.Mul: "imul",
		ir.Max: "imax", ir.Min: "imin", ir.Eq: "ieq", ir.Ne: "ine", ir.Lt: "ilt", ir.Le: "ile", ir.Gt: "igt",
		ir.Ge: "ige", ir.And: "and", ir.Or: "or", ir.Xor: "xor", ir.Not: "not"}
	boolSteps = map[ir.Op]string{ir.And: "and", ir.Or: "or", ir.Xor: "xor", ir.Not: "not"}
)
