package compiler

import (
	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/wasm/compiler/ir"
)

func (f *function) Add(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeAdd, ir.Add, lhs, rhs)
}

func (f *function) Sub(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeSub, ir.Sub, lhs, rhs)
}

func (f *function) Mul(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeMul, ir.Mul, lhs, rhs)
}

func (f *function) Div(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeDiv, ir.Div, lhs, rhs)
}

func (f *function) Rem(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeRem, ir.Rem, lhs, rhs)
}

func (f *function) Pow(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypePow, ir.Pow, lhs, rhs)
}

func (f *function) Max(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeMax, ir.Max, lhs, rhs)
}

func (f *function) Min(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeMin, ir.Min, lhs, rhs)
}

func (f *function) BitwiseAnd(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeBitwiseAnd, ir.And, lhs, rhs)
}

func (f *function) BitwiseOr(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeBitwiseOr, ir.Or, lhs, rhs)
}

func (f *function) BitwiseXor(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeBitwiseXor, ir.Xor, lhs, rhs)
}

func (f *function) LogicalAnd(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLogicalAnd, ir.And, lhs, rhs)
}

func (f *function) LogicalOr(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLogicalOr, ir.Or, lhs, rhs)
}

func (f *function) LogicalXor(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLogicalXor, ir.Xor, lhs, rhs)
}

func (f *function) ShiftLeft(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeShiftLeft, ir.Shl, lhs, rhs)
}

func (f *function) ShiftRightArithmetic(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeShiftRightArithmetic, ir.ShrS, lhs, rhs)
}

func (f *function) ShiftRightLogical(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeShiftRightLogical, ir.ShrU, lhs, rhs)
}

func (f *function) Equal(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeEqual, ir.Eq, lhs, rhs)
}

func (f *function) NotEqual(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeNotEqual, ir.Ne, lhs, rhs)
}

func (f *function) LessThan(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLessThan, ir.Lt, lhs, rhs)
}

func (f *function) LessOrEqual(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLessOrEqual, ir.Le, lhs, rhs)
}

func (f *function) GreaterThan(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeGreaterThan, ir.Gt, lhs, rhs)
}

func (f *function) GreaterOrEqual(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeGreaterOrEqual, ir.Ge, lhs, rhs)
}

func (f *function) EqualTotalOrder(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeEqualTotalOrder, ir.EqTotal, lhs, rhs)
}

func (f *function) NotEqualTotalOrder(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeNotEqualTotalOrder, ir.NeTotal, lhs, rhs)
}

func (f *function) LessThanTotalOrder(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLessThanTotalOrder, ir.LtTotal, lhs, rhs)
}

func (f *function) LessOrEqualTotalOrder(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLessOrEqualTotalOrder, ir.LeTotal, lhs, rhs)
}

func (f *function) GreaterThanTotalOrder(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeGreaterThanTotalOrder, ir.GtTotal, lhs, rhs)
}

func (f *function) GreaterOrEqualTotalOrder(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeGreaterOrEqualTotalOrder, ir.GeTotal, lhs, rhs)
}

func (f *function) ReduceSum(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceSum, ir.ReduceSum, x, axes)
}

func (f *function) ReduceProduct(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceProduct, ir.ReduceProd, x, axes)
}

func (f *function) ReduceMax(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceMax, ir.ReduceMax, x, axes)
}

func (f *function) ReduceMin(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceMin, ir.ReduceMin, x, axes)
}

func (f *function) ReduceBitwiseAnd(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceBitwiseAnd, ir.ReduceAnd, x, axes)
}

func (f *function) ReduceBitwiseOr(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceBitwiseOr, ir.ReduceOr, x, axes)
}

func (f *function) ReduceBitwiseXor(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceBitwiseXor, ir.ReduceXor, x, axes)
}

func (f *function) ReduceLogicalAnd(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceLogicalAnd, ir.ReduceAnd, x, axes)
}

func (f *function) ReduceLogicalOr(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceLogicalOr, ir.ReduceOr, x, axes)
}

func (f *function) ReduceLogicalXor(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceLogicalXor, ir.ReduceXor, x, axes)
}
