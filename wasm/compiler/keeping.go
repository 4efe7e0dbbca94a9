package compiler

import (
	"fmt"
	"reflect"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"

	"github.com/starling-fl/starling/quant/nf4"
)

// keeping is what computations of one backend keep in their memory from call to call.
type keeping struct {
	nf4     map[string]bool
	becomes []string
}

// Keeping returns a backend whose computations keep what would be copied into them and out of them: parameters of the
// given names in 4 bits, whose buffers are those of BufferFromNF4, and in place of a parameter the output that becomes
// it, by its place among the outputs, "" where it becomes none. A buffer of such an output is used up by the call that
// finds it in its place; it is fetched from there where it is given elsewhere, or another one in its place. All buffers
// together may be used by one goroutine at a time.
func (b *Backend) Keeping(nf4 map[string]bool, becomes []string) compute.Backend {
	k := *b
	k.keeping = &keeping{nf4: nf4, becomes: becomes}
	return &k
}

// BufferFromNF4 is a buffer of codes and scales in the layout of package nf4, for a parameter that is kept so.
func (b *Backend) BufferFromNF4(codes []byte, scales []float32, shape shapes.Shape) (compute.Buffer, error) {
	if n := shape.Size(); len(codes) != nf4.CodesLen(n) || len(scales) != nf4.Blocks(n, nf4.Block) {
		return nil, fmt.Errorf("compiler: %d bytes of codes and %d scales for %s", len(codes), len(scales), shape)
	}
	return &buffer{backend: b, shape: shape, flat: reflect.ValueOf(codes), scales: scales}, nil
}

// fetch makes sure that a buffer's values are in Go.
func (b *buffer) fetch() (err error) {
	if e := b.keeper; e != nil {
		if b.flat, err = e.read(fmt.Sprintf("in%d", b.input), e.params[b.input]); err != nil {
			return err
		}
		b.keeper, e.kept[b.input] = nil, nil
	}
	if !b.flat.IsValid() {
		return errFinalized
	}
	return nil
}

// keep makes room for an input of a parameter that is kept, and says whether it is there already.
func (e *executable) keep(i int, b *buffer) (there bool, err error) {
	if b.keeper == e && b.input == i {
		return true, nil
	}
	if err := b.fetch(); err != nil {
		return false, err
	}
	if old := e.kept[i]; old != nil && old.keeper == e {
		if err := old.fetch(); err != nil {
			return false, err
		}
	}
	return false, nil
}
