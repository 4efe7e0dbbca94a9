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

func (f *function) DotGeneral(lhs compute.Value, lhsContract, lhsBatch []int, rhs compute.Value,
	rhsContract, rhsBatch []int, config compute.DotGeneralConfig) (compute.Value, error) {
	ns, err := f.nodes(lhs, rhs)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.DotGeneral(shapeOf(ns[0]), lhsContract, lhsBatch, shapeOf(ns[1]), rhsContract, rhsBatch, config)
	if err != nil {
		return nil, err
	}
	own := goType(ns[0].DType)
	if (config.AccumulatorDType != dtypes.InvalidDType && config.AccumulatorDType != own) || shape.DType != own {
		return nil, errors.Wrapf(notOffered(compute.OpTypeDotGeneral), "with an accumulator or output dtype of its own")
	}
	dot := &ir.DotAxes{LhsContract: slices.Clone(lhsContract), LhsBatch: slices.Clone(lhsBatch),
		RhsContract: slices.Clone(rhsContract), RhsBatch: slices.Clone(rhsBatch)}
	if ns[0].DType != ir.F32 {
		return f.integerDot(ns[0], ns[1], dot, shape)
	}
	return f.add(ir.Dot, shape, ir.Attr{Dot: dot}, ns[0], ns[1])
}

// integerDot writes a product of integers as broadcast, multiply, sum: rare, and outside the training step.
func (f *function) integerDot(lhs, rhs *ir.Node, dot *ir.DotAxes, shape shapes.Shape) (compute.Value, error) {
	if lhs.DType == ir.Bool {
		return nil, errors.Wrapf(notOffered(compute.OpTypeDotGeneral), "for booleans")
	}
	free := func(n *ir.Node, a, b []int) (axes []int) {
		for i := range n.Dims {
			if !slices.Contains(a, i) && !slices.Contains(b, i) {
				axes = append(axes, i)
			}
		}
		return axes
	}
	lf, rf := free(lhs, dot.LhsContract, dot.LhsBatch), free(rhs, dot.RhsContract, dot.RhsBatch)
	nb, nl, nr := len(dot.LhsBatch), len(lf), len(rf)
	dims := slices.Clone(shape.Dimensions)
	for _, a := range dot.LhsContract {
		dims = append(dims, lhs.Dims[a])
	}
	spread := func(n *ir.Node, batch, own, contract []int, at int) *ir.Node {
		perm := slices.Concat(batch, own, contract)
		tdims := make([]int, len(perm))
		place := make([]int, len(perm))
		for i, a := range perm {
			tdims[i] = n.Dims[a]
			switch {
			case i < len(batch):
				place[i] = i
			case i < len(batch)+len(own):
				place[i] = at + i - len(batch)
			default:
				place[i] = nb + nl + nr + i - len(batch) - len(own)
			}
		}
		g := f.builder.graph
		t := g.Add(ir.Transpose, n.DType, tdims, ir.Attr{Axes: perm}, n)
		return g.Add(ir.Broadcast, n.DType, dims, ir.Attr{Axes: place}, t)
	}
	g := f.builder.graph
	l := spread(lhs, dot.LhsBatch, lf, dot.LhsContract, nb)
	r := spread(rhs, dot.RhsBatch, rf, dot.RhsContract, nb+nl)
	p := g.Add(ir.Mul, lhs.DType, dims, ir.Attr{}, l, r)
	var axes []int
	for i := nb + nl + nr; i < len(dims); i++ {
		axes = append(axes, i)
	}
	return g.Add(ir.ReduceSum, lhs.DType, shape.Dimensions, ir.Attr{Axes: axes}, p), nil
}

func (f *function) Gather(operand, startIndices compute.Value, indexVectorAxis int, offsetOutputAxes, collapsedSliceAxes,
	startIndexMap, sliceSizes []int, _ bool) (compute.Value, error) {
	ns, err := f.nodes(operand, startIndices)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.Gather(shapeOf(ns[0]), shapeOf(ns[1]), indexVectorAxis, offsetOutputAxes,
		collapsedSliceAxes, startIndexMap, sliceSizes, false)
	if err != nil {
		return nil, err
	}
	return f.add(ir.Gather, shape, ir.Attr{Gather: &ir.GatherSpec{IndexVectorAxis: indexVectorAxis,
		OffsetAxes: slices.Clone(offsetOutputAxes), CollapsedAxes: slices.Clone(collapsedSliceAxes),
		StartIndexMap: slices.Clone(startIndexMap), SliceSizes: slices.Clone(sliceSizes)}}, ns[0], ns[1])
}

func (f *function) scatter(opType compute.OpType, op ir.Op, operand, indices, updates compute.Value, indexVectorAxis int,
	updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes []int) (compute.Value, error) {
	ns, err := f.nodes(operand, indices, updates)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.Scatter(shapeOf(ns[0]), shapeOf(ns[1]), shapeOf(ns[2]), indexVectorAxis,
		updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes)
	if err != nil {
		return nil, err
	}
	if ns[0].DType == ir.Bool {
		return nil, errors.Wrapf(notOffered(opType), "for booleans")
	}
	return f.add(op, shape, ir.Attr{Gather: &ir.GatherSpec{IndexVectorAxis: indexVectorAxis,
		UpdateWindowAxes: slices.Clone(updateWindowAxes), InsertedWindowAxes: slices.Clone(insertedWindowAxes),
		ScatterAxesToOperandAxes: slices.Clone(scatterAxesToOperandAxes)}}, ns[0], ns[1], ns[2])
}

func (f *function) ScatterSum(operand, indices, updates compute.Value, indexVectorAxis int,
	updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes []int, _, _ bool) (compute.Value, error) {
	return f.scatter(compute.OpTypeScatterSum, ir.ScatterSum, operand, indices, updates, indexVectorAxis,
		updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes)
}

func (f *function) ScatterMax(operand, indices, updates compute.Value, indexVectorAxis int,
	updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes []int, _, _ bool) (compute.Value, error) {
	return f.scatter(compute.OpTypeScatterMax, ir.ScatterMax, operand, indices, updates, indexVectorAxis,
		updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes)
}

func (f *function) ScatterMin(operand, indices, updates compute.Value, indexVectorAxis int,
	updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes []int, _, _ bool) (compute.Value, error) {
	return f.scatter(compute.OpTypeScatterMin, ir.ScatterMin, operand, indices, updates, indexVectorAxis,
		updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes)
}

func (f *function) Pad(x, fill compute.Value, axesConfig ...compute.PadAxis) (compute.Value, error) {
	ns, err := f.nodes(x, fill)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.Pad(shapeOf(ns[0]), axesConfig...)
	if err != nil {
		return nil, err
	}
	if len(ns[1].Dims) != 0 || ns[1].DType != ns[0].DType {
		return nil, errors.Errorf("Pad: fill must be a scalar %s, got %s", ns[0].DType, shapeOf(ns[1]))
	}
	pads := make([]ir.PadAxis, len(ns[0].Dims))
	for i, p := range axesConfig {
		pads[i] = ir.PadAxis(p)
	}
	return f.add(ir.Pad, shape, ir.Attr{Pads: pads}, ns[0], ns[1])
}

func (f *function) Concatenate(axis int, operands ...compute.Value) (compute.Value, error) {
	ns, err := f.nodes(operands...)
	if err != nil {
		return nil, err
	}
	in := make([]shapes.Shape, len(ns))
	for i, n := range ns {
		in[i] = shapeOf(n)
	}
	shape, err := shapeinference.Concatenate(in, axis)
	if err != nil {
		return nil, err
	}
	if len(ns) == 1 {
		return ns[0], nil
	}
	return f.add(ir.Concat, shape, ir.Attr{Axis: axis}, ns...)
}

func (f *function) ArgMinMax(x compute.Value, axis int, outputDType dtypes.DType, isMin bool) (compute.Value, error) {
	ns, err := f.nodes(x)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.ArgMinMax(shapeOf(ns[0]), axis, outputDType)
	if err != nil {
		return nil, err
	}
	if outputDType != dtypes.Int32 && outputDType != dtypes.Int64 || ns[0].DType == ir.Bool {
		return nil, errors.Wrapf(notOffered(compute.OpTypeArgMinMax), "from %s to %s", ns[0].DType, outputDType)
	}
	op := ir.ArgMax
	if isMin {
		op = ir.ArgMin
	}
	return f.add(op, shape, ir.Attr{Axis: axis}, ns[0])
}

func (f *function) DynamicSlice(operand compute.Value, startIndices []compute.Value, sizes []int) (compute.Value, error) {
	ns, err := f.nodes(append([]compute.Value{operand}, startIndices...)...)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.DynamicSlice(shapeOf(ns[0]), sizes)
	if err != nil {
		return nil, err
	}
	if err := checkStarts(ns[0], ns[1:]); err != nil {
		return nil, err
	}
	return f.add(ir.DynamicSlice, shape, ir.Attr{}, ns...)
}

func (f *function) DynamicUpdateSlice(operand, update compute.Value, startIndices []compute.Value) (compute.Value, error) {
	ns, err := f.nodes(append([]compute.Value{operand, update}, startIndices...)...)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.DynamicUpdateSlice(shapeOf(ns[0]), shapeOf(ns[1]))
	if err != nil {
		return nil, err
	}
	if err := checkStarts(ns[0], ns[2:]); err != nil {
		return nil, err
	}
	return f.add(ir.DynamicUpdate, shape, ir.Attr{}, ns...)
}

func checkStarts(x *ir.Node, starts []*ir.Node) error {
	if len(starts) != len(x.Dims) {
		return errors.Errorf("%d start indices for %d axes", len(starts), len(x.Dims))
	}
	for i, s := range starts {
		if len(s.Dims) != 0 || s.DType != ir.I32 && s.DType != ir.I64 {
			return errors.Errorf("start index %d is %s, need an integer scalar", i, shapeOf(s))
		}
	}
	return nil
}

func (f *function) ReduceWindow(x compute.Value, kind compute.ReduceOpType, dims, strides, inputDilations,
	windowDilations []int, pads [][2]int) (compute.Value, error) {
	ns, err := f.nodes(x)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.ReduceWindow(shapeOf(ns[0]), dims, strides, inputDilations, windowDilations, pads)
	if err != nil {
		return nil, err
	}
	op, ok := map[compute.ReduceOpType]ir.Op{compute.ReduceOpSum: ir.ReduceSum, compute.ReduceOpProduct: ir.ReduceProd,
		compute.ReduceOpMax: ir.ReduceMax, compute.ReduceOpMin: ir.ReduceMin}[kind]
	if !ok || ns[0].DType == ir.Bool {
		return nil, errors.Wrapf(notOffered(compute.OpTypeReduceWindow), "%s of %s", kind, ns[0].DType)
	}
	or := func(v []int, def func(int) int) []int {
		if len(v) > 0 {
			return slices.Clone(v)
		}
		r := make([]int, len(dims))
		for i := range r {
			r[i] = def(i)
		}
		return r
	}
	one := func(int) int { return 1 }
	if len(pads) == 0 {
		pads = make([][2]int, len(dims))
	}
	return f.add(ir.Window, shape, ir.Attr{Reduce: op, Window: &ir.WindowSpec{Dims: slices.Clone(dims),
		Strides:        or(strides, func(i int) int { return dims[i] }),
		InputDilations: or(inputDilations, one), WindowDilations: or(windowDilations, one),
		Pads: slices.Clone(pads)}}, ns[0])
}
