package wasm

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"sync"
	"unsafe"

	"github.com/starling-fl/starling/quant/nf4"
)

// Instance is a program with its own memory. Calls exclude one another: Close waits for a running Step.
type Instance struct {
	program *Program

	mu       sync.Mutex
	host     hostInstance // this and all below: guarded by mu
	written  []bool       // by index of the frozen tensor
	missing  int          // frozen tensors still to be written
	prepared bool
	closed   bool
}

// Program returns the program that this is an instance of.
func (in *Instance) Program() *Program { return in.program }

// WriteFloat32 sets an input or state tensor. len(data) must be the tensor's
// number of elements.
func (in *Instance) WriteFloat32(name string, data []float32) error {
	return in.writePlain(name, Float32, len(data), rawBytes(data))
}

// WriteInt32 sets an input or state tensor of int32.
func (in *Instance) WriteInt32(name string, data []int32) error {
	return in.writePlain(name, Int32, len(data), rawBytes(data))
}

func (in *Instance) writePlain(name string, dtype DType, n int, data []byte) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	t, err := in.tensor(name, dtype, n, "input", "state")
	if err != nil {
		return err
	}
	return in.host.write(t.Offset, data)
}

// ReadFloat32 copies an output, state or input tensor to dst, whose length must
// be the tensor's number of elements.
func (in *Instance) ReadFloat32(name string, dst []float32) error {
	return in.readPlain(name, Float32, len(dst), rawBytes(dst))
}

// ReadInt32 copies an output, state or input tensor of int32 to dst.
func (in *Instance) ReadInt32(name string, dst []int32) error {
	return in.readPlain(name, Int32, len(dst), rawBytes(dst))
}

func (in *Instance) readPlain(name string, dtype DType, n int, dst []byte) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	t, err := in.tensor(name, dtype, n, "output", "state", "input")
	if err != nil {
		return err
	}
	return in.host.read(t.Offset, dst)
}

// tensor looks a tensor up and holds n against its number of elements.
func (in *Instance) tensor(name string, dtype DType, n int, roles ...string) (tensorRef, error) {
	if in.closed {
		return tensorRef{}, ErrClosed
	}
	t, err := in.program.lookup(name, dtype, roles...)
	if err == nil && n != t.Len() {
		err = fmt.Errorf("%w: %d elements for %s %q of shape %v", ErrLayout, n, t.role, name, t.Shape)
	}
	return t, err
}

// WriteFrozen sets a frozen float32 tensor, once. Where the program keeps the
// tensor as NF4 it is quantized on the way.
func (in *Instance) WriteFrozen(name string, data []float32) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	t, err := in.tensor(name, Float32, len(data), "frozen")
	if err != nil {
		return err
	}
	if t.NF4 == nil {
		return in.freeze(t, rawBytes(data), nil)
	}
	codes := make([]byte, t.DataSize())
	scales := make([]float32, t.ScalesSize()/4)
	if err := nf4.Encode(codes, scales, data, t.NF4.Block); err != nil {
		return fmt.Errorf("wasm: frozen %q: %w", name, err)
	}
	return in.freeze(t, codes, scales)
}

// WriteFrozenInt32 sets a frozen int32 tensor, once.
func (in *Instance) WriteFrozenInt32(name string, data []int32) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	t, err := in.tensor(name, Int32, len(data), "frozen")
	if err != nil {
		return err
	}
	return in.freeze(t, rawBytes(data), nil)
}

// WriteFrozenNF4 sets a frozen NF4 tensor, once, from codes and scales in the
// layout of package nf4.
func (in *Instance) WriteFrozenNF4(name string, codes []byte, scales []float32) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return ErrClosed
	}
	t, err := in.program.lookup(name, Float32, "frozen")
	if err != nil {
		return err
	}
	if t.NF4 == nil {
		return fmt.Errorf("%w: frozen %q is not NF4", ErrLayout, name)
	}
	if uint64(len(codes)) != t.DataSize() || 4*uint64(len(scales)) != t.ScalesSize() {
		return fmt.Errorf("%w: %d bytes of codes and %d scales for frozen %q, want %d and %d",
			ErrLayout, len(codes), len(scales), name, t.DataSize(), t.ScalesSize()/4)
	}
	return in.freeze(t, codes, scales)
}

func (in *Instance) freeze(t tensorRef, data []byte, scales []float32) error {
	if in.written[t.frozen] {
		return fmt.Errorf("%w: frozen %q is already written", ErrLayout, t.Name)
	}
	if err := in.host.write(t.Offset, data); err != nil {
		return err
	}
	if t.NF4 != nil {
		if err := in.host.write(t.NF4.Scales, rawBytes(scales)); err != nil {
			return err
		}
	}
	in.written[t.frozen] = true
	in.missing--
	return nil
}

// Prepare runs the prepare segments, if they have not run yet: what the program
// computes once from its frozen tensors. Step does so too; calling Prepare first
// keeps the work out of the first step.
func (in *Instance) Prepare(ctx context.Context) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.prepare(ctx)
}

func (in *Instance) prepare(ctx context.Context) error {
	if in.closed {
		return ErrClosed
	}
	if in.missing > 0 {
		for i, done := range in.written {
			if !done {
				return fmt.Errorf("%w: %d, among them %q", ErrNotReady, in.missing, in.program.manifest.Frozen[i].Name)
			}
		}
	}
	if in.prepared {
		return nil
	}
	if err := in.runAll(ctx, true, in.program.report.Prepare); err != nil {
		return err
	}
	in.prepared = true
	return nil
}

// Step runs one training step: Prepare if that is still to do, then every step
// segment in order. It looks at ctx before each segment. After an error the state
// tensors are undefined: write them anew before the next Step.
func (in *Instance) Step(ctx context.Context) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := in.prepare(ctx); err != nil {
		return err
	}
	defer in.program.products.begin(in.host)()
	return in.runAll(ctx, false, in.program.report.Segments)
}

func (in *Instance) runAll(ctx context.Context, prepare bool, segments []SegmentReport) error {
	for i := 0; i < len(segments); i++ {
		in.host.pause()
		if err := ctx.Err(); err != nil {
			return err
		}
		c := Call{Segment: i}
		if !prepare {
			c = in.program.calls[i]
			if skip, err := in.skips(c); skip || err != nil {
				if err != nil {
					return err
				}
				continue
			}
			n, err := in.program.products.run(ctx, in.host, i)
			if err != nil {
				return err
			}
			if n > 0 {
				i += n - 1
				continue
			}
		}
		if err := in.host.call(ctx, prepare, c, segments[i].Budget); err != nil {
			return fmt.Errorf("%w: segment %s: %w", ErrTrap, c.name(prepare), err)
		}
	}
	return nil
}

// skips reports whether a segment of a step has a condition that does not hold.
func (in *Instance) skips(c Call) (bool, error) {
	when := in.program.manifest.Segments[c.Segment].When
	if when == 0 {
		return false, nil
	}
	var holds [1]byte
	err := in.host.read(when, holds[:])
	return holds[0] == 0, err
}

// StateSHA256 hashes the state tensors' bytes in manifest order: equal hashes
// mean bit-identical training.
func (in *Instance) StateSHA256() (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	if err := in.dump(h, roleList{"state", in.program.manifest.State}); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// Snapshot writes the bytes of all frozen, state and input tensors, in this order
// and in manifest order, as they are in memory (NF4: codes, then scales): what
// lab/bench/wasm/run_program.mjs reads.
func (in *Instance) Snapshot(w io.Writer) error {
	m := in.program.manifest
	return in.dump(w, roleList{"frozen", m.Frozen}, roleList{"state", m.State}, roleList{"input", m.Inputs})
}

// Restore reads what Snapshot wrote for a program with the same tensors: it sets all frozen
// tensors, the state and the inputs. No frozen tensor may have been written before.
func (in *Instance) Restore(r io.Reader) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return ErrClosed
	}
	m := in.program.manifest
	if in.missing != len(m.Frozen) {
		return fmt.Errorf("%w: frozen tensors are already written", ErrLayout)
	}
	for _, role := range []roleList{{"frozen", m.Frozen}, {"state", m.State}, {"input", m.Inputs}} {
		for i := range role.tensors {
			t := &role.tensors[i]
			err := in.copyIn(r, t.Offset, t.DataSize())
			if err == nil && t.NF4 != nil {
				err = in.copyIn(r, t.NF4.Scales, t.ScalesSize())
			}
			if err != nil {
				return fmt.Errorf("wasm: snapshot, %s %q: %w", role.name, t.Name, err)
			}
		}
	}
	for i := range in.written {
		in.written[i] = true
	}
	in.missing = 0
	return nil
}

// copyIn moves size bytes from r to memory, a piece at a time.
func (in *Instance) copyIn(r io.Reader, offset uint32, size uint64) error {
	buf := make([]byte, min(size, 1<<18))
	for size > 0 {
		part := buf[:min(size, uint64(len(buf)))]
		if _, err := io.ReadFull(r, part); err != nil {
			return err
		}
		if err := in.host.write(offset, part); err != nil {
			return err
		}
		offset += uint32(len(part))
		size -= uint64(len(part))
	}
	return nil
}

func (in *Instance) dump(w io.Writer, roles ...roleList) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return ErrClosed
	}
	var buf []byte
	put := func(offset uint32, size uint64) error {
		if uint64(cap(buf)) < size {
			buf = make([]byte, size)
		}
		if err := in.host.read(offset, buf[:size]); err != nil {
			return err
		}
		_, err := w.Write(buf[:size])
		return err
	}
	for _, role := range roles {
		for i := range role.tensors {
			t := &role.tensors[i]
			if err := put(t.Offset, t.DataSize()); err != nil {
				return err
			}
			if t.NF4 != nil {
				if err := put(t.NF4.Scales, t.ScalesSize()); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Close gives the instance's memory back.
func (in *Instance) Close() error {
	p := in.program
	p.mu.Lock()
	delete(p.open, in)
	p.mu.Unlock()
	return in.release()
}

func (in *Instance) release() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return nil
	}
	in.closed = true
	return in.host.close()
}

// rawBytes views a slice of 4-byte numbers as bytes. WebAssembly memory is
// little-endian; Load refuses to work on a host that is not.
func rawBytes[T float32 | int32](data []T) []byte {
	if len(data) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&data[0])), 4*len(data))
}
