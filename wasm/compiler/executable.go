package compiler

import (
	"context"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"

	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler/codegen"
	"github.com/starling-fl/starling/wasm/compiler/ir"
	"github.com/starling-fl/starling/wasm/compiler/plan"
)

// executable runs a compiled graph through package wasm. Tensors that are not float32 travel as 32-bit words.
type executable struct {
	backend *Backend
	program *wasm.Program
	params  []*ir.Node
	outputs []*ir.Node

	mu       sync.Mutex // of what follows: an instance runs one step at a time
	instance *wasm.Instance
	becomes  []int           // each output's parameter, -1 where it becomes none
	kept     []*buffer       // what is in parameters that are kept
	written  []reflect.Value // what each input's memory holds: buffers never change, so equal ones are not written again
}

var _ compute.Executable = (*executable)(nil)

func words(n *ir.Node) int { return max(1, (n.Bytes()+3)/4) }

func asFloats(n *ir.Node) bool { return n.DType == ir.F32 && n.Len() > 0 }

func newExecutable(b *Backend, name string, g *ir.Graph) (*executable, error) {
	e := &executable{backend: b, params: g.Params, outputs: g.Outputs, written: make([]reflect.Value, len(g.Params)),
		kept: make([]*buffer, len(g.Params))}
	cfg := e.planning()
	m, p, err := assemble(g, cfg, b.host, false, longest)
	if err != nil {
		return nil, err
	}
	tensor := func(role string, i int, n *ir.Node, b *plan.Buffer) wasm.Tensor {
		t := wasm.Tensor{Name: fmt.Sprintf("%s%d", role, i), DType: wasm.Int32, Shape: []int{words(n)}, Offset: uint32(b.Addr)}
		if asFloats(n) {
			t.DType = wasm.Float32
		}
		if b.NF4 {
			t.Shape, t.NF4 = n.Dims, &wasm.NF4{Block: codegen.NF4Block, Scales: uint32(b.Scales)}
		}
		return t
	}
	m.manifest.Name = "graph"
	for i, n := range g.Params {
		list := &m.manifest.Inputs
		switch {
		case cfg.codes[i] > 0:
			list = &m.manifest.Frozen
		case slices.Contains(e.becomes, i):
			list = &m.manifest.State
		}
		*list = append(*list, tensor("in", i, n, p.Params[i]))
	}
	for i, n := range g.Outputs {
		if e.becomes[i] < 0 {
			m.manifest.Outputs = append(m.manifest.Outputs, tensor("out", i, n, p.Outputs[i]))
		}
	}
	bin, err := m.bytes()
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	if e.program, err = wasm.Load(ctx, bin, wasm.Config{Limits: wasm.Limits{MemoryPages: maxPages}}); err != nil {
		return nil, errors.WithMessagef(err, "loading computation %q", name)
	}
	if e.instance, err = e.program.NewInstance(ctx); err != nil {
		return nil, errors.WithMessagef(err, "instance of computation %q (closing: %v)", name, e.program.Close())
	}
	return e, nil
}

// planning says what the backend's computations keep, of this one's parameters and outputs.
func (e *executable) planning() planning {
	p := planning{codes: make([]int, len(e.params)), pages: maxPages}
	p.Becomes, p.NF4 = make([]int, len(e.outputs)), make([]bool, len(e.params))
	for i := range p.Becomes {
		p.Becomes[i] = -1
	}
	e.becomes = p.Becomes
	k := e.backend.keeping
	if k == nil {
		return p
	}
	frozen := 0
	for i, n := range e.params {
		if p.NF4[i] = k.nf4[n.Name]; p.NF4[i] {
			frozen++
			p.codes[i] = frozen
		}
		if o := slices.Index(k.becomes, n.Name); o >= 0 && o < len(p.Becomes) {
			p.Becomes[o] = i
		}
	}
	return p
}

func (e *executable) Finalize() {
	// compute.Executable has no way to say that what is thrown away is still there.
	_, _ = e.instance.Close(), e.program.Close()
}

func (e *executable) Inputs() (names []string, inputShapes []shapes.Shape) {
	for _, p := range e.params {
		names = append(names, p.Name)
		inputShapes = append(inputShapes, shapeOf(p))
	}
	return names, inputShapes
}

func (e *executable) Outputs() (outputShapes []shapes.Shape) {
	for _, o := range e.outputs {
		outputShapes = append(outputShapes, shapeOf(o))
	}
	return outputShapes
}

func (e *executable) Execute(inputs []compute.Buffer, donate []bool, _ compute.DeviceNum) ([]compute.Buffer, error) {
	if len(inputs) != len(e.params) {
		return nil, errors.Errorf("%d inputs given, the computation takes %d", len(inputs), len(e.params))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, in := range inputs {
		b, ok := in.(*buffer)
		if !ok || b == nil {
			return nil, errors.Errorf("input %d is a %T, not a buffer of %s", i, in, BackendName)
		}
		if !b.flat.IsValid() && b.keeper == nil {
			return nil, errors.WithMessagef(errFinalized, "input %d", i)
		}
		if want := shapeOf(e.params[i]); !b.shape.Equal(want) {
			return nil, errors.Errorf("input %d is %s, the computation takes %s", i, b.shape, want)
		}
		if err := e.write(i, b); err != nil {
			return nil, err
		}
	}
	for _, b := range e.kept { // their values are replaced now
		if b != nil {
			b.keeper = nil
		}
	}
	clear(e.kept)
	err := e.instance.Step(context.Background())
	if err != nil {
		return nil, err
	}
	for i, in := range inputs {
		if i < len(donate) && donate[i] {
			_ = in.Finalize() // never fails
		}
	}
	outs := make([]compute.Buffer, len(e.outputs))
	for i, n := range e.outputs {
		out := &buffer{backend: e.backend, shape: shapeOf(n)}
		if in := e.becomes[i]; in >= 0 {
			out.keeper, out.input, e.kept[in] = e, in, out
		} else if out.flat, err = e.read(fmt.Sprintf("out%d", i), n); err != nil {
			return nil, err
		}
		outs[i] = out
	}
	return outs, nil
}

// write copies input i into the program's memory, unless it is there already.
func (e *executable) write(i int, b *buffer) error {
	kept := slices.Contains(e.becomes, i)
	if kept || b.keeper != nil {
		if there, err := e.keep(i, b); there || err != nil {
			return err
		}
	}
	flat := b.flat
	if last := e.written[i]; last.IsValid() && last.Len() > 0 && last.Pointer() == flat.Pointer() {
		return nil
	}
	e.written[i] = reflect.Value{}
	if err := e.put(fmt.Sprintf("in%d", i), e.params[i], b); err != nil {
		return err
	}
	if !kept { // what is kept the call replaces
		e.written[i] = flat
	}
	return nil
}

func (e *executable) put(name string, n *ir.Node, b *buffer) error {
	if b.scales != nil {
		return e.instance.WriteFrozenNF4(name, b.flat.Bytes(), b.scales)
	}
	if asFloats(n) {
		return e.instance.WriteFloat32(name, b.flat.Interface().([]float32))
	}
	raw, err := binary.Append(nil, binary.LittleEndian, b.flat.Interface())
	if err != nil {
		return errors.Wrapf(err, "input %q", n.Name)
	}
	w := make([]int32, words(n))
	raw = append(raw, make([]byte, 4*len(w)-len(raw))...)
	for j := range w {
		w[j] = int32(binary.LittleEndian.Uint32(raw[4*j:]))
	}
	return e.instance.WriteInt32(name, w)
}

// read copies what has n's shape out of the program's memory.
func (e *executable) read(name string, n *ir.Node) (reflect.Value, error) {
	if asFloats(n) {
		v := make([]float32, n.Len())
		return reflect.ValueOf(v), e.instance.ReadFloat32(name, v)
	}
	w := make([]int32, words(n))
	if err := e.instance.ReadInt32(name, w); err != nil {
		return reflect.Value{}, err
	}
	raw := make([]byte, 0, 4*len(w))
	for _, v := range w {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(v))
	}
	flat := reflect.MakeSlice(reflect.SliceOf(goType(n.DType).GoType()), n.Len(), n.Len())
	if _, err := binary.Decode(raw[:n.Bytes()], binary.LittleEndian, flat.Interface()); err != nil {
		return flat, errors.Wrapf(err, "output of type %v", n.DType)
	}
	return flat, nil
}
