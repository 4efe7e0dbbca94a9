package model

import (
	"encoding/binary"
	"fmt"
	"io"
	"unsafe"
)

// extent is where a tensor's values are in a file. They are read where they are
// needed and not mapped: the pages are the system's cache in both cases, but a file
// that somebody truncates is an error here, where a mapping would end the process,
// and what is read does not count as this process's memory.
type extent struct {
	file     io.ReaderAt // nil: the values are in memory
	at, size int64
}

// ReadSafeTensors is ParseSafeTensors for a file of so many bytes whose tensors stay
// in it: only the header is read. It must stay open, and as it is, for as long as the
// tensors are used.
func ReadSafeTensors(file io.ReaderAt, size int64) (*SafeTensors, error) {
	start := make([]byte, min(8, max(size, 0)))
	if err := readFull(file, start, 0); err != nil {
		return nil, err
	}
	n, err := headerSize(start, size)
	if err != nil {
		return nil, err
	}
	header := make([]byte, n)
	if err := readFull(file, header, 8); err != nil {
		return nil, err
	}
	st, err := parseHeader(header, size-8-n)
	if err != nil {
		return nil, err
	}
	for i := range st.Tensors {
		e := &st.Tensors[i].stored
		e.file, e.at = file, 8+n+e.at
	}
	return st, nil
}

// readFull reads all of p; a file that ends before is io.ErrUnexpectedEOF.
func readFull(file io.ReaderAt, p []byte, at int64) error {
	n, err := file.ReadAt(p, at)
	if n == len(p) {
		return nil // io.EOF where the file ends with them
	}
	if err == io.EOF || err == nil {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("model: read %d bytes of safetensors at %d: %w", len(p), at, err)
}

// size is the bytes of the values.
func (t RawTensor) size() int64 {
	if t.stored.file != nil {
		return t.stored.size
	}
	return int64(len(t.Data))
}

// readAt fills p with the values' bytes from the given one on.
func (t RawTensor) readAt(p []byte, from int64) error {
	if t.stored.file == nil {
		copy(p, t.Data[from:])
		return nil
	}
	return t.named(readFull(t.stored.file, p, t.stored.at+from))
}

// bytes yields the values: those in memory, which must not be changed, or what is
// read now.
func (t RawTensor) bytes() ([]byte, error) {
	if t.stored.file == nil {
		return t.Data, nil
	}
	data := make([]byte, t.stored.size)
	return data, t.readAt(data, 0)
}

// Float32 decodes an F32, F16, BF16 or F64 tensor.
func (t RawTensor) Float32() ([]float32, error) {
	if t.DType == "F32" && t.stored.file != nil && nativeLittle {
		// As they are in the file, without a second copy.
		out := make([]float32, t.stored.size/4)
		if len(out) == 0 {
			return out, nil
		}
		return out, t.readAt(unsafe.Slice((*byte)(unsafe.Pointer(&out[0])), 4*len(out)), 0)
	}
	data, err := t.bytes()
	if err != nil {
		return nil, err
	}
	v, err := decodeFloats(t.DType, data)
	return v, t.named(err)
}

// named says of an error which tensor it is about.
func (t RawTensor) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: tensor %q: %w", ErrSafetensors, t.Name, err)
}

var nativeLittle = binary.NativeEndian.Uint16([]byte{1, 0}) == 1
