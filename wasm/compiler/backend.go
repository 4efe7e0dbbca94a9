package compiler

import (
	"reflect"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/notimplemented"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"

	"github.com/starling-fl/starling/wasm/compiler/ir"
)

// BackendName is the result of Backend.Name.
const BackendName = "starling-wasm"

// Backend implements compute.Backend: graphs are compiled to WebAssembly and run by package wasm, their products by
// this host's kernels. It is what evaluation, prediction and pretraining run on. Buffers live in Go: what an input's
// memory holds already is not copied again, outputs always are, but for what Keeping says. Devices' training uses Compile.
type Backend struct {
	notimplemented.Backend
	host      string
	record    bool // Compile keeps the graph and makes no module
	finalized bool
	keeping   *keeping // nil: computations keep nothing
}

var _ compute.Backend = (*Backend)(nil)

// New returns a backend that compiles for the host it runs on.
func New() *Backend { return &Backend{host: HostWazero} }

// Name returns BackendName.
func (b *Backend) Name() string { return BackendName }

// String returns BackendName.
func (b *Backend) String() string { return BackendName }

// Description says what the backend is.
func (b *Backend) Description() string { return "graphs compiled to SIMD WebAssembly, one thread" }

// DeviceDescription describes the only device.
func (b *Backend) DeviceDescription(compute.DeviceNum) string { return "WebAssembly" }

// Finalize makes the backend unusable.
func (b *Backend) Finalize() { b.finalized = true }

// IsFinalized reports whether Finalize was called.
func (b *Backend) IsFinalized() bool { return b.finalized }

// Capabilities lists operations and dtypes offered.
func (b *Backend) Capabilities() compute.Capabilities { return capabilities().Clone() }

// Builder starts recording a computation.
func (b *Backend) Builder(name string) compute.Builder {
	bl := &builder{backend: b, name: name, graph: ir.New()}
	bl.Builder.ErrFn = notOffered
	bl.main = &function{builder: bl}
	bl.main.Function.ErrFn = notOffered
	return bl
}

func notOffered(op compute.OpType) error {
	return errors.Wrapf(compute.ErrNotImplemented, "%s does not offer %s", BackendName, op)
}

// BufferFromFlatData copies flat into a new buffer.
func (b *Backend) BufferFromFlatData(_ compute.DeviceNum, flat any, shape shapes.Shape) (compute.Buffer, error) {
	if _, err := irType(shape.DType); err != nil {
		return nil, err
	}
	v := reflect.ValueOf(flat)
	if v.Kind() != reflect.Slice || v.Type().Elem() != shape.DType.GoType() || v.Len() != shape.Size() {
		return nil, errors.Errorf("flat data is %T of length %d, shape %s needs []%s of length %d",
			flat, v.Len(), shape, shape.DType.GoType(), shape.Size())
	}
	c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	reflect.Copy(c, v)
	return &buffer{backend: b, shape: shape, flat: c}, nil
}

// buffer is a tensor on the Go side.
type buffer struct {
	backend *Backend
	shape   shapes.Shape
	flat    reflect.Value // slice of the dtype's Go type; invalid after Finalize, and while a computation keeps the values
	keeper  *executable   // which does, as what it keeps of its parameter input
	input   int
	scales  []float32 // of 4-bit codes, which flat then holds
}

var errFinalized = errors.New("buffer was finalized or donated")

func (b *buffer) Backend() compute.Backend { return b.backend }

func (b *buffer) Finalize() error {
	b.flat, b.keeper = reflect.Value{}, nil
	return nil
}

func (b *buffer) Shape() (shapes.Shape, error) { return b.shape, nil }

func (b *buffer) DeviceNum() (compute.DeviceNum, error) { return 0, nil }

func (b *buffer) ToFlatData(flat any) error {
	if err := b.fetch(); err != nil {
		return err
	}
	v := reflect.ValueOf(flat)
	if v.Type() != b.flat.Type() || v.Len() != b.flat.Len() {
		return errors.Errorf("cannot copy buffer %s into %T of length %d", b.shape, flat, v.Len())
	}
	reflect.Copy(v, b.flat)
	return nil
}

func (b *buffer) Data() (any, error) {
	return nil, errors.Errorf("%s has no shared buffers", BackendName)
}

func (b *buffer) CopyToDevice(compute.DeviceNum) (compute.Buffer, error) {
	if err := b.fetch(); err != nil {
		return nil, err
	}
	return b.backend.BufferFromFlatData(0, b.flat.Interface(), b.shape)
}

// irType translates a dtype, or says that it is not offered.
func irType(d dtypes.DType) (ir.DType, error) {
	switch d {
	case dtypes.Float32:
		return ir.F32, nil
	case dtypes.Int32:
		return ir.I32, nil
	case dtypes.Int64:
		return ir.I64, nil
	case dtypes.Bool:
		return ir.Bool, nil
	}
	return 0, errors.Wrapf(compute.ErrNotImplemented, "%s does not offer dtype %s", BackendName, d)
}

func goType(d ir.DType) dtypes.DType {
	return [...]dtypes.DType{ir.F32: dtypes.Float32, ir.I32: dtypes.Int32, ir.I64: dtypes.Int64, ir.Bool: dtypes.Bool}[d]
}
