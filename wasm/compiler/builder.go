package compiler

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/notimplemented"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"

	"github.com/starling-fl/starling/wasm/compiler/ir"
)

// builder records one computation.
type builder struct {
	notimplemented.Builder
	backend *Backend
	name    string
	graph   *ir.Graph
	main    *function
}

var _ compute.Builder = (*builder)(nil)

func (b *builder) Name() string           { return b.name }
func (b *builder) Main() compute.Function { return b.main }

func (b *builder) NewFunction(string) (compute.Function, error) {
	return nil, notOffered(compute.OpTypeCall)
}

func (b *builder) OpShape(op compute.Value) (shapes.Shape, error) { return b.main.Shape(op) }

// Compile makes the executable; under Compile of this package it only hands back what was recorded.
func (b *builder) Compile() (compute.Executable, error) {
	if !b.main.returned {
		return nil, errors.Errorf("computation %q was compiled before Return", b.name)
	}
	if b.backend.record {
		return &recording{graph: b.graph}, nil
	}
	return newExecutable(b.backend, b.name, b.graph)
}

// recording stands in for an executable where only the graph is wanted.
type recording struct {
	compute.Executable
	graph *ir.Graph
}

func (r *recording) Finalize() {}

// function records operations. A compute.Value is an *ir.Node.
type function struct {
	notimplemented.Function
	builder  *builder
	returned bool
}

var _ compute.Function = (*function)(nil)

func (f *function) Name() string             { return compute.MainName }
func (f *function) Builder() compute.Builder { return f.builder }
func (f *function) Parent() compute.Function { return nil }
func (f *function) Closure() (compute.Function, error) {
	return nil, notOffered(compute.OpTypeCall)
}

func (f *function) Call(compute.Function, ...compute.Value) ([]compute.Value, error) {
	return nil, notOffered(compute.OpTypeCall)
}

func (f *function) Shape(v compute.Value) (shapes.Shape, error) {
	n, ok := v.(*ir.Node)
	if !ok {
		return shapes.Invalid(), errors.Errorf("value of type %T is not from %s", v, BackendName)
	}
	return shapeOf(n), nil
}

func shapeOf(n *ir.Node) shapes.Shape { return shapes.Make(goType(n.DType), n.Dims...) }

// nodes checks that values are this backend's, and that the function still records.
func (f *function) nodes(vs ...compute.Value) ([]*ir.Node, error) {
	if f.returned {
		return nil, errors.Errorf("function of %q has already returned", f.builder.name)
	}
	ns := make([]*ir.Node, len(vs))
	for i, v := range vs {
		n, ok := v.(*ir.Node)
		if !ok || n == nil {
			return nil, errors.Errorf("operand %d is a %T, not a value of %s", i, v, BackendName)
		}
		if n.ID >= len(f.builder.graph.Nodes) || f.builder.graph.Nodes[n.ID] != n {
			return nil, errors.Errorf("operand %d belongs to another computation", i)
		}
		ns[i] = n
	}
	return ns, nil
}

// add records an operation whose result has the given shape.
func (f *function) add(op ir.Op, shape shapes.Shape, attr ir.Attr, in ...*ir.Node) (compute.Value, error) {
	d, err := irType(shape.DType)
	if err != nil {
		return nil, err
	}
	for _, dim := range shape.Dimensions {
		if dim < 0 {
			return nil, errors.Wrapf(compute.ErrNotImplemented, "%s offers no dynamic axes (%s)", BackendName, shape)
		}
	}
	return f.builder.graph.Add(op, d, shape.Dimensions, attr, in...), nil
}

// broadcast gives n the dimensions dims: a scalar, or equal rank with axes of size 1 to stretch.
func (f *function) broadcast(n *ir.Node, dims []int) *ir.Node {
	if slices.Equal(n.Dims, dims) {
		return n
	}
	axes := make([]int, len(n.Dims))
	for i := range axes {
		axes[i] = i
	}
	return f.builder.graph.Add(ir.Broadcast, n.DType, dims, ir.Attr{Axes: axes}, n)
}

func (f *function) Parameter(name string, shape shapes.Shape, _ *compute.ShardingSpec) (compute.Value, error) {
	if _, err := f.nodes(); err != nil {
		return nil, err
	}
	d, err := irType(shape.DType)
	if err != nil {
		return nil, err
	}
	for _, dim := range shape.Dimensions {
		if dim < 0 {
			return nil, errors.Wrapf(compute.ErrNotImplemented, "%s offers no dynamic axes (%s)", BackendName, shape)
		}
	}
	return f.builder.graph.Parameter(name, d, shape.Dimensions), nil
}

func (f *function) Constant(flat any, dims ...int) (compute.Value, error) {
	if _, err := f.nodes(); err != nil {
		return nil, err
	}
	d, data, n, err := encode(flat)
	if err != nil {
		return nil, err
	}
	if n != ir.Len(dims) {
		return nil, errors.Errorf("constant has %d elements, dimensions %v need %d", n, dims, ir.Len(dims))
	}
	return f.builder.graph.Add(ir.Const, d, dims, ir.Attr{Data: data}), nil
}

// encode turns a Go slice into little-endian bytes.
func encode(flat any) (d ir.DType, data []byte, n int, err error) {
	switch s := flat.(type) {
	case []float32:
		d, n = ir.F32, len(s)
	case []int32:
		d, n = ir.I32, len(s)
	case []int64:
		d, n = ir.I64, len(s)
	case []bool:
		d, n = ir.Bool, len(s)
	default:
		return 0, nil, 0, errors.Wrapf(compute.ErrNotImplemented, "%s does not offer constants of type %T", BackendName, flat)
	}
	if data, err = binary.Append(nil, binary.LittleEndian, flat); err != nil {
		return 0, nil, 0, errors.Wrapf(err, "%d constants of type %T", n, flat)
	}
	return d, data, n, nil
}

func (f *function) Return(outputs []compute.Value, shardings []*compute.ShardingSpec) error {
	ns, err := f.nodes(outputs...)
	if err != nil {
		return err
	}
	if len(ns) == 0 {
		return errors.New("a computation must return at least one value")
	}
	if len(shardings) != 0 {
		return errors.Wrapf(compute.ErrNotImplemented, "%s offers no sharding", BackendName)
	}
	f.builder.graph.Outputs = ns
	f.returned = true
	return nil
}

func (f *function) Identity(x compute.Value) (compute.Value, error) {
	ns, err := f.nodes(x)
	if err != nil {
		return nil, err
	}
	return ns[0], nil
}

func (f *function) OptimizationBarrier(operands ...compute.Value) ([]compute.Value, error) {
	ns, err := f.nodes(operands...)
	if err != nil {
		return nil, err
	}
	out := make([]compute.Value, len(ns))
	for i, n := range ns {
		if out[i], err = f.add(ir.Barrier, shapeOf(n), ir.Attr{}, n); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// SchedulingBarrier returns operand after dependencies, which a program satisfies anyway: it runs in recorded order.
func (f *function) SchedulingBarrier(operand compute.Value, dependencies ...compute.Value) (compute.Value, error) {
	ns, err := f.nodes(append([]compute.Value{operand}, dependencies...)...)
	if err != nil {
		return nil, err
	}
	return f.add(ir.Barrier, shapeOf(ns[0]), ir.Attr{}, ns...)
}

func (f *function) Iota(shape shapes.Shape, axis int) (compute.Value, error) {
	if _, err := f.nodes(); err != nil {
		return nil, err
	}
	if axis < 0 || axis >= shape.Rank() {
		return nil, errors.Errorf("Iota: axis %d is out of range for %s", axis, shape)
	}
	return f.add(ir.Iota, shape, ir.Attr{Axis: axis})
}

func (f *function) Reshape(x compute.Value, dims ...int) (compute.Value, error) {
	ns, err := f.nodes(x)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.Reshape(shapeOf(ns[0]), dims)
	if err != nil {
		return nil, err
	}
	return f.add(ir.Reshape, shape, ir.Attr{}, ns[0])
}

func (f *function) Transpose(x compute.Value, axes ...int) (compute.Value, error) {
	ns, err := f.nodes(x)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.Transpose(shapeOf(ns[0]), axes)
	if err != nil {
		return nil, err
	}
	return f.add(ir.Transpose, shape, ir.Attr{Axes: slices.Clone(axes)}, ns[0])
}

func (f *function) BroadcastInDim(x compute.Value, shape shapes.Shape, axes []int) (compute.Value, error) {
	ns, err := f.nodes(x)
	if err != nil {
		return nil, err
	}
	if err := shapeinference.BroadcastInDim(shapeOf(ns[0]), shape, axes, nil); err != nil {
		return nil, err
	}
	shape = shape.Clone()
	shape.DType = goType(ns[0].DType)
	return f.add(ir.Broadcast, shape, ir.Attr{Axes: slices.Clone(axes)}, ns[0])
}

func (f *function) Slice(x compute.Value, starts, limits, strides []int) (compute.Value, error) {
	ns, err := f.nodes(x)
	if err != nil {
		return nil, err
	}
	if len(strides) == 0 {
		strides = make([]int, len(starts))
		for i := range strides {
			strides[i] = 1
		}
	}
	limits = slices.Clone(limits)
	for i, l := range limits {
		if l == shapes.DynamicDim && i < len(ns[0].Dims) {
			limits[i] = ns[0].Dims[i]
		}
	}
	shape, err := shapeinference.Slice(shapeOf(ns[0]), starts, limits, strides)
	if err != nil {
		return nil, err
	}
	return f.add(ir.Slice, shape, ir.Attr{Starts: slices.Clone(starts), Limits: limits, Strides: slices.Clone(strides)}, ns[0])
}

func (f *function) Reverse(x compute.Value, axes ...int) (compute.Value, error) {
	ns, err := f.nodes(x)
	if err != nil {
		return nil, err
	}
	for _, a := range axes {
		if a < 0 || a >= len(ns[0].Dims) {
			return nil, fmt.Errorf("Reverse: axis %d is out of range for %v", a, ns[0].Dims)
		}
	}
	return f.add(ir.Reverse, shapeOf(ns[0]), ir.Attr{Axes: slices.Clone(axes)}, ns[0])
}
