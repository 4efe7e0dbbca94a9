package compiler

import (
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
)

// capabilities lists what the backend offers. What is missing gives compute.ErrNotImplemented.
var capabilities = sync.OnceValue(func() compute.Capabilities {
	c := compute.Capabilities{Operations: map[compute.OpType]bool{}, DTypes: map[dtypes.DType]bool{
		dtypes.Float32: true, dtypes.Int32: true, dtypes.Int64: true, dtypes.Bool: true}}
	for _, op := range []compute.OpType{
		compute.OpTypeParameter, compute.OpTypeConstant, compute.OpTypeIdentity, compute.OpTypeIota,
		compute.OpTypeReshape, compute.OpTypeTranspose, compute.OpTypeBroadcastInDim, compute.OpTypeSlice,
		compute.OpTypeReverse, compute.OpTypePad, compute.OpTypeConcatenate, compute.OpTypeDotGeneral, compute.OpTypeDot,
		compute.OpTypeGather, compute.OpTypeScatterSum, compute.OpTypeScatterMax, compute.OpTypeScatterMin,
		compute.OpTypeDynamicSlice, compute.OpTypeDynamicUpdateSlice, compute.OpTypeArgMinMax, compute.OpTypeReduceWindow,
		compute.OpTypeWhere, compute.OpTypeClamp, compute.OpTypeConvertDType,
		compute.OpTypeOptimizationBarrier, compute.OpTypeSchedulingBarrier,

		compute.OpTypeAbs, compute.OpTypeBitCount, compute.OpTypeBitwiseNot, compute.OpTypeCeil, compute.OpTypeClz,
		compute.OpTypeCos, compute.OpTypeErf, compute.OpTypeExp, compute.OpTypeExpm1, compute.OpTypeFloor,
		compute.OpTypeIsFinite, compute.OpTypeIsNaN, compute.OpTypeLog, compute.OpTypeLog1p, compute.OpTypeLogicalNot,
		compute.OpTypeLogistic, compute.OpTypeNeg, compute.OpTypeRound, compute.OpTypeRsqrt, compute.OpTypeSign,
		compute.OpTypeSin, compute.OpTypeSqrt, compute.OpTypeTanh,

		compute.OpTypeAdd, compute.OpTypeSub, compute.OpTypeMul, compute.OpTypeDiv, compute.OpTypeRem, compute.OpTypePow,
		compute.OpTypeMax, compute.OpTypeMin, compute.OpTypeBitwiseAnd, compute.OpTypeBitwiseOr, compute.OpTypeBitwiseXor,
		compute.OpTypeLogicalAnd, compute.OpTypeLogicalOr, compute.OpTypeLogicalXor, compute.OpTypeShiftLeft,
		compute.OpTypeShiftRightArithmetic, compute.OpTypeShiftRightLogical,

		compute.OpTypeEqual, compute.OpTypeNotEqual, compute.OpTypeLessThan, compute.OpTypeLessOrEqual,
		compute.OpTypeGreaterThan, compute.OpTypeGreaterOrEqual, compute.OpTypeEqualTotalOrder,
		compute.OpTypeNotEqualTotalOrder, compute.OpTypeLessThanTotalOrder, compute.OpTypeLessOrEqualTotalOrder,
		compute.OpTypeGreaterThanTotalOrder, compute.OpTypeGreaterOrEqualTotalOrder,

		compute.OpTypeReduceSum, compute.OpTypeReduceProduct, compute.OpTypeReduceMax, compute.OpTypeReduceMin,
		compute.OpTypeReduceBitwiseAnd, compute.OpTypeReduceBitwiseOr, compute.OpTypeReduceBitwiseXor,
		compute.OpTypeReduceLogicalAnd, compute.OpTypeReduceLogicalOr, compute.OpTypeReduceLogicalXor,
	} {
		c.Operations[op] = true
	}
	return c
})
