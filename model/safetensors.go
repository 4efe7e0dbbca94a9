package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of the safetensors decoder.
const (
	maxHeader  = 16 << 20 // bytes of JSON; a header never exceeds the file either
	maxRank    = 8        // axes of a tensor
	maxJSON    = 8 << 20  // bytes of config.json, tokenizer.json and the like
	maxTensors = 1 << 16
)

// ErrSafetensors is the cause of every refused safetensors file.
var ErrSafetensors = errors.New("model: invalid safetensors")

// dtypeBits lists the dtypes of safetensors 0.6 that are whole bytes.
var dtypeBits = map[string]int{
	"BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8,
	"I16": 16, "U16": 16, "F16": 16, "BF16": 16,
	"I32": 32, "U32": 32, "F32": 32,
	"I64": 64, "U64": 64, "F64": 64,
}

// RawTensor is a tensor as it lies in a safetensors file: little-endian,
// row-major.
type RawTensor struct {
	Name  string
	DType string // "F32", "BF16", "F16", "U8", ...
	Shape []int
	Data  []byte
}

// SafeTensors is the content of a safetensors file
// (https://github.com/huggingface/safetensors): named tensors and free-form
// string metadata.
type SafeTensors struct {
	Metadata map[string]string
	Tensors  []RawTensor
}

// Lookup finds a tensor by name.
func (s *SafeTensors) Lookup(name string) (RawTensor, bool) {
	for _, t := range s.Tensors {
		if t.Name == name {
			return t, true
		}
	}
	return RawTensor{}, false
}

// Add appends a float32 tensor stored as dtype "F32", "F16" or "BF16".
func (s *SafeTensors) Add(name, dtype string, shape []int, data []float32) error {
	raw, err := encodeFloats(dtype, data)
	if err != nil {
		return fmt.Errorf("%w: tensor %q: %w", ErrSafetensors, name, err)
	}
	if Elements(shape) != len(data) {
		return fmt.Errorf("%w: tensor %q has %d values for shape %v", ErrSafetensors, name, len(data), shape)
	}
	s.Tensors = append(s.Tensors, RawTensor{name, dtype, slices.Clone(shape), raw})
	return nil
}

// Float32 decodes an F32, F16, BF16 or F64 tensor.
func (t RawTensor) Float32() ([]float32, error) {
	v, err := decodeFloats(t.DType, t.Data)
	if err != nil {
		return nil, fmt.Errorf("%w: tensor %q: %w", ErrSafetensors, t.Name, err)
	}
	return v, nil
}

type headerEntry struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// ParseSafeTensors decodes a file. The tensors alias data and are sorted by
// offset. Refused: a header that is too long or not what the format says,
// duplicate names, unknown dtypes, shapes that do not match their offsets,
// gaps or overlaps, bytes left over.
func ParseSafeTensors(data []byte) (*SafeTensors, error) {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrSafetensors, fmt.Sprintf(format, args...))
	}
	if len(data) < 8 {
		return nil, bad("%d bytes, want at least 8", len(data))
	}
	n := binary.LittleEndian.Uint64(data)
	if n > maxHeader || n > uint64(len(data)-8) {
		return nil, bad("header of %d bytes in a file of %d, limit %d", n, len(data), maxHeader)
	}
	header, body := data[8:8+n], data[8+n:]
	if len(header) == 0 || header[0] != '{' || !utf8.Valid(header) {
		return nil, bad("header is not a JSON object in UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(header))
	if _, err := dec.Token(); err != nil { // '{'
		return nil, bad("header: %v", err)
	}
	st := &SafeTensors{}
	type placed struct {
		RawTensor
		begin, end int64
	}
	var list []placed
	seen := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, bad("header: %v", err)
		}
		name := tok.(string) // an object's keys are strings
		if seen[name] {
			return nil, bad("name %q occurs twice", name)
		}
		seen[name] = true
		if name == "__metadata__" {
			if err := dec.Decode(&st.Metadata); err != nil {
				return nil, bad("__metadata__: %v", err)
			}
			continue
		}
		if len(list) == maxTensors {
			return nil, bad("more than %d tensors", maxTensors)
		}
		var e headerEntry
		if err := dec.Decode(&e); err != nil {
			return nil, bad("tensor %q: %v", name, err)
		}
		size, err := byteSize(e)
		if err != nil {
			return nil, bad("tensor %q: %v", name, err)
		}
		begin, end := e.Offsets[0], e.Offsets[1]
		if begin < 0 || end < begin || end > int64(len(body)) || end-begin != size {
			return nil, bad("tensor %q: offsets %d..%d do not hold %s%v (%d bytes) in %d bytes of data",
				name, begin, end, e.DType, e.Shape, size, len(body))
		}
		list = append(list, placed{RawTensor{name, e.DType, e.Shape, body[begin:end:end]}, begin, end})
	}
	if _, err := dec.Token(); err != nil { // '}'
		return nil, bad("header: %v", err)
	}
	if rest := strings.TrimLeft(string(header[dec.InputOffset():]), " "); rest != "" {
		return nil, bad("%d bytes after the header's object", len(rest))
	}
	slices.SortStableFunc(list, func(a, b placed) int {
		if a.begin != b.begin {
			return int(min(max(a.begin-b.begin, -1), 1))
		}
		return int(min(max(a.end-b.end, -1), 1)) // an empty tensor comes before its neighbour
	})
	at := int64(0)
	for _, p := range list {
		if p.begin != at {
			return nil, bad("tensor %q begins at %d, want %d: a gap or an overlap", p.Name, p.begin, at)
		}
		at = p.end
		st.Tensors = append(st.Tensors, p.RawTensor)
	}
	if at != int64(len(body)) {
		return nil, bad("%d bytes of data that no tensor holds", int64(len(body))-at)
	}
	return st, nil
}

func byteSize(e headerEntry) (int64, error) {
	bits, ok := dtypeBits[e.DType]
	if !ok {
		return 0, fmt.Errorf("unknown dtype %q", e.DType)
	}
	if len(e.Shape) > maxRank {
		return 0, fmt.Errorf("%d axes, limit %d", len(e.Shape), maxRank)
	}
	n := int64(bits / 8)
	for _, d := range e.Shape {
		if d < 0 || d > math.MaxInt32 {
			return 0, fmt.Errorf("shape %v", e.Shape)
		}
		if d > 0 && n > math.MaxInt64/8/int64(d) {
			return 0, fmt.Errorf("shape %v overflows", e.Shape)
		}
		n *= int64(d)
	}
	return n, nil
}

// Encode writes the file canonically: wider dtypes first, then by name (the
// reference implementation's order), metadata keys sorted, the header padded
// with spaces to a multiple of 8. The same content gives the same bytes.
func (s *SafeTensors) Encode() ([]byte, error) {
	ts := slices.Clone(s.Tensors)
	slices.SortStableFunc(ts, func(a, b RawTensor) int {
		if d := dtypeBits[b.DType] - dtypeBits[a.DType]; d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	var h bytes.Buffer
	h.WriteByte('{')
	put := func(key string, v any) error {
		if h.Len() > 1 {
			h.WriteByte(',')
		}
		for _, x := range []any{key, v} {
			b, err := json.Marshal(x)
			if err != nil {
				return err
			}
			h.Write(b)
			h.WriteByte(':')
		}
		h.Truncate(h.Len() - 1)
		return nil
	}
	if len(s.Metadata) > 0 {
		if err := put("__metadata__", maps.Clone(s.Metadata)); err != nil { // Marshal sorts the keys
			return nil, err
		}
	}
	at := int64(0)
	for i, t := range ts {
		e := headerEntry{t.DType, t.Shape, [2]int64{at, at + int64(len(t.Data))}}
		if e.Shape == nil {
			e.Shape = []int{}
		}
		size, err := byteSize(e)
		if err != nil {
			return nil, fmt.Errorf("%w: tensor %q: %w", ErrSafetensors, t.Name, err)
		}
		if size != int64(len(t.Data)) || t.Name == "__metadata__" || i > 0 && ts[i-1].Name == t.Name {
			return nil, fmt.Errorf("%w: tensor %q: %d bytes for %s%v, or its name is taken", ErrSafetensors, t.Name, len(t.Data), t.DType, t.Shape)
		}
		if err := put(t.Name, e); err != nil {
			return nil, err
		}
		at = e.Offsets[1]
	}
	h.WriteByte('}')
	for h.Len()%8 != 0 {
		h.WriteByte(' ')
	}
	if h.Len() > maxHeader {
		return nil, fmt.Errorf("%w: header of %d bytes, limit %d", ErrSafetensors, h.Len(), maxHeader)
	}
	out := make([]byte, 8, 8+int64(h.Len())+at)
	binary.LittleEndian.PutUint64(out, uint64(h.Len()))
	out = append(out, h.Bytes()...)
	for _, t := range ts {
		out = append(out, t.Data...)
	}
	return out, nil
}
