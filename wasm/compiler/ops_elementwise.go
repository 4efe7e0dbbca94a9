package compiler

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"

	"github.com/starling-fl/starling/wasm/compiler/ir"
)

// offered says which dtypes an elementwise operation takes.
func offered(op ir.Op, d ir.DType) bool {
	switch op {
	case ir.Sqrt, ir.Rsqrt, ir.Exp, ir.Expm1, ir.Log, ir.Log1p, ir.Tanh, ir.Erf, ir.Logistic, ir.Sin, ir.Cos,
		ir.Floor, ir.Ceil, ir.Round, ir.IsFinite, ir.IsNaN:
		return d == ir.F32
	case ir.Clz, ir.Popcnt, ir.Shl, ir.ShrS, ir.ShrU:
		return d == ir.I32 || d == ir.I64
	case ir.Not, ir.And, ir.Or, ir.Xor:
		return d != ir.F32
	case ir.Eq, ir.Ne, ir.Select:
		return true
	}
	return d != ir.Bool
}

func (f *function) unary(opType compute.OpType, op ir.Op, x compute.Value) (compute.Value, error) {
	ns, err := f.nodes(x)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.UnaryOp(opType, shapeOf(ns[0]))
	if err != nil {
		return nil, err
	}
	if !offered(op, ns[0].DType) {
		return nil, errors.Wrapf(notOffered(opType), "for %s", shape.DType)
	}
	return f.add(op, shape, ir.Attr{}, ns[0])
}

func (f *function) predicate(opType compute.OpType, op ir.Op, x compute.Value) (compute.Value, error) {
	ns, err := f.nodes(x)
	if err != nil {
		return nil, err
	}
	if !offered(op, ns[0].DType) {
		return nil, errors.Wrapf(notOffered(opType), "for %s", ns[0].DType)
	}
	return f.add(op, shapes.Make(dtypes.Bool, ns[0].Dims...), ir.Attr{}, ns[0])
}

func (f *function) binary(opType compute.OpType, op ir.Op, lhs, rhs compute.Value) (compute.Value, error) {
	ns, err := f.nodes(lhs, rhs)
	if err != nil {
		return nil, err
	}
	infer := shapeinference.BinaryOp
	if op >= ir.Eq && op <= ir.GeTotal {
		infer = shapeinference.ComparisonOp
	}
	shape, err := infer(opType, shapeOf(ns[0]), shapeOf(ns[1]))
	if err != nil {
		return nil, err
	}
	if !offered(op, ns[0].DType) {
		return nil, errors.Wrapf(notOffered(opType), "for %s", ns[0].DType)
	}
	d := shape.Dimensions
	return f.add(op, shape, ir.Attr{}, f.broadcast(ns[0], d), f.broadcast(ns[1], d))
}

// Where selects elements; scalars are broadcast.
func (f *function) Where(condition, onTrue, onFalse compute.Value) (compute.Value, error) {
	ns, err := f.nodes(condition, onTrue, onFalse)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.Where(shapeOf(ns[0]), shapeOf(ns[1]), shapeOf(ns[2]))
	if err != nil {
		return nil, err
	}
	d := shape.Dimensions
	return f.add(ir.Select, shape, ir.Attr{}, f.broadcast(ns[0], d), f.broadcast(ns[1], d), f.broadcast(ns[2], d))
}

// Clamp is Min(Max(x, min), max).
func (f *function) Clamp(low, x, high compute.Value) (compute.Value, error) {
	m, err := f.Max(x, low)
	if err != nil {
		return nil, err
	}
	return f.Min(m, high)
}

// ConvertDType converts numbers; float32 to integers truncates and saturates.
func (f *function) ConvertDType(x compute.Value, dtype dtypes.DType) (compute.Value, error) {
	ns, err := f.nodes(x)
	if err != nil {
		return nil, err
	}
	return f.add(ir.Convert, shapes.Make(dtype, ns[0].Dims...), ir.Attr{}, ns[0])
}

func (f *function) reduce(opType compute.OpType, op ir.Op, x compute.Value, axes []int) (compute.Value, error) {
	ns, err := f.nodes(x)
	if err != nil {
		return nil, err
	}
	n := ns[0]
	if len(axes) == 0 { // all of them
		for i := range n.Dims {
			axes = append(axes, i)
		}
	}
	shape, err := shapeinference.Reduce(shapeOf(n), axes)
	if err != nil {
		return nil, err
	}
	switch logical := op == ir.ReduceAnd || op == ir.ReduceOr || op == ir.ReduceXor; {
	case logical && n.DType == ir.F32, !logical && n.DType == ir.Bool:
		return nil, errors.Wrapf(notOffered(opType), "for %s", n.DType)
	}
	axes = slices.Clone(axes)
	slices.Sort(axes)
	return f.add(op, shape, ir.Attr{Axes: axes}, n)
}

func (f *function) Abs(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeAbs, ir.Abs, x)
}

func (f *function) Ceil(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeCeil, ir.Ceil, x)
}

func (f *function) Cos(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeCos, ir.Cos, x)
}

func (f *function) Erf(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeErf, ir.Erf, x)
}

func (f *function) Exp(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeExp, ir.Exp, x)
}

func (f *function) Expm1(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeExpm1, ir.Expm1, x)
}

func (f *function) Floor(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeFloor, ir.Floor, x)
}

func (f *function) Log(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeLog, ir.Log, x)
}

func (f *function) Log1p(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeLog1p, ir.Log1p, x)
}

func (f *function) Logistic(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeLogistic, ir.Logistic, x)
}

func (f *function) Neg(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeNeg, ir.Neg, x)
}

func (f *function) Round(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeRound, ir.Round, x)
}

func (f *function) Rsqrt(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeRsqrt, ir.Rsqrt, x)
}

func (f *function) Sign(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeSign, ir.Sign, x)
}

func (f *function) Sin(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeSin, ir.Sin, x)
}

func (f *function) Sqrt(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeSqrt, ir.Sqrt, x)
}

func (f *function) Tanh(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeTanh, ir.Tanh, x)
}

func (f *function) BitwiseNot(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeBitwiseNot, ir.Not, x)
}

func (f *function) LogicalNot(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeLogicalNot, ir.Not, x)
}

func (f *function) Clz(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeClz, ir.Clz, x)
}

func (f *function) BitCount(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeBitCount, ir.Popcnt, x)
}

func (f *function) IsFinite(x compute.Value) (compute.Value, error) {
	return f.predicate(compute.OpTypeIsFinite, ir.IsFinite, x)
}

func (f *function) IsNaN(x compute.Value) (compute.Value, error) {
	return f.predicate(compute.OpTypeIsNaN, ir.IsNaN, x)
}
