package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/starling-fl/starling/model"
)

// Types of metadata, as GGUF numbers them.
const (
	typeUint32  = 4
	typeInt32   = 5
	typeFloat32 = 6
	typeBool    = 7
	typeString  = 8
	typeArray   = 9
)

// Types of tensors, as ggml numbers them.
const (
	tensorF32 = 0
	tensorF16 = 1
	tensorQ8  = 8
)

const (
	version   = 3
	alignment = 32
)

// file is a GGUF file that is put together (github.com/ggml-org/ggml/blob/master/docs/gguf.md).
type file struct {
	keys    []byte
	count   int
	tensors []tensor
}

// tensor is one, with its bytes; shape is [rows, columns] or [columns].
type tensor struct {
	name  string
	shape []int
	kind  uint32
	data  []byte
}

func appendText(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

// set adds a key. Values are string, bool, uint32, float32, or lists of strings, int32 and float32.
func (f *file) set(key string, value any) {
	u32 := binary.LittleEndian.AppendUint32
	list := func(kind uint32, n int) {
		f.keys = binary.LittleEndian.AppendUint64(u32(u32(f.keys, typeArray), kind), uint64(n))
	}
	f.count++
	f.keys = appendText(f.keys, key)
	switch v := value.(type) {
	case string:
		f.keys = appendText(u32(f.keys, typeString), v)
	case bool:
		f.keys = append(u32(f.keys, typeBool), map[bool]byte{true: 1}[v])
	case uint32:
		f.keys = u32(u32(f.keys, typeUint32), v)
	case float32:
		f.keys = u32(u32(f.keys, typeFloat32), math.Float32bits(v))
	case []string:
		list(typeString, len(v))
		for _, s := range v {
			f.keys = appendText(f.keys, s)
		}
	case []int32:
		list(typeInt32, len(v))
		for _, x := range v {
			f.keys = u32(f.keys, uint32(x))
		}
	default:
		panic(fmt.Sprintf("gguf: no key is a %T", value))
	}
}

// add adds a tensor's values as a kind of tensor holds them.
func (f *file) add(name string, shape []int, v []float32, kind uint32) {
	f.tensors = append(f.tensors, tensor{name, shape, kind, encode(v, kind)})
}

// encode gives rows the bytes of a kind.
func encode(v []float32, kind uint32) []byte {
	var b []byte
	switch kind {
	case tensorF32:
		b = make([]byte, 0, 4*len(v))
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	case tensorF16:
		b = make([]byte, 0, 2*len(v))
		for _, x := range v {
			b = binary.LittleEndian.AppendUint16(b, model.ToF16(x))
		}
	default:
		b = make([]byte, 0, len(v)/block*(2+block))
		for part := range slices.Chunk(v, block) {
			b = appendBlock(b, part)
		}
	}
	return b
}

// block is how many values share a scale.
const block = 32

// appendBlock appends values as Q8_0: their scale in float16, then each as a number of 8 bits, as ggml rounds them.
func appendBlock(b []byte, v []float32) []byte {
	most := float32(0)
	for _, x := range v {
		most = max(most, float32(math.Abs(float64(x))))
	}
	scale := most / 127
	inverse := float32(0)
	if scale > 0 {
		inverse = 1 / scale
	}
	b = binary.LittleEndian.AppendUint16(b, model.ToF16(scale))
	for _, x := range v {
		b = append(b, byte(int8(math.Round(float64(x*inverse)))))
	}
	return b
}

// bytes is the file.
func (f *file) bytes() []byte {
	b := []byte("GGUF")
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(f.tensors)))
	b = binary.LittleEndian.AppendUint64(b, uint64(f.count))
	b = append(b, f.keys...)
	at := 0
	for _, t := range f.tensors {
		b = appendText(b, t.name)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(t.shape)))
		for _, n := range slices.Backward(t.shape) {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
		b = binary.LittleEndian.AppendUint32(b, t.kind)
		b = binary.LittleEndian.AppendUint64(b, uint64(at))
		at += aligned(len(t.data))
	}
	b = append(b, make([]byte, aligned(len(b))-len(b))...)
	b = slices.Grow(b, at)
	for _, t := range f.tensors {
		b = append(b, t.data...)
		b = append(b, make([]byte, aligned(len(t.data))-len(t.data))...)
	}
	return b
}

func aligned(n int) int { return (n + alignment - 1) / alignment * alignment }
