package model

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of the safetensors decoder.
const (
	maxHeader = 32 << 20 // bytes of JSON, a tokenizer's among them; a header never exceeds the file either
	maxRank   = 8        // axes of a tensor
	maxJSON   = 8 << 20  // bytes of config.json and the like

	// Bytes of tokenizer.json in a folder, and without the white space between its tokens:
	// Gemma 3's has 33 and 14 million.
	maxTokenizerFile = 64 << 20
	maxTokenizer     = 24 << 20
	maxTensors       = 1 << 16
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

// RawTensor is a tensor as it is in a safetensors file: little-endian,
// row-major.
type RawTensor struct {
	Name  string
	DType string // "F32", "BF16", "F16", "U8", ...
	Shape []int
	Data  []byte // nil where the values stay in a file: see ReadSafeTensors

	stored extent
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
	s.Tensors = append(s.Tensors, RawTensor{Name: name, DType: dtype, Shape: slices.Clone(shape), Data: raw})
	return nil
}

type headerEntry struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

func refuseSafeTensors(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrSafetensors, fmt.Sprintf(format, args...))
}

// ParseSafeTensors decodes a file. The tensors alias data and are sorted by
// offset. Refused: a header that is too long or not what the format says,
// duplicate names, unknown dtypes, shapes that do not match their offsets,
// gaps or overlaps, bytes left over.
func ParseSafeTensors(data []byte) (*SafeTensors, error) {
	n, err := headerSize(data, int64(len(data)))
	if err != nil {
		return nil, err
	}
	st, err := parseHeader(data[8:8+n], int64(len(data))-8-n)
	if err != nil {
		return nil, err
	}
	for i := range st.Tensors {
		t := &st.Tensors[i]
		from, to := 8+n+t.stored.at, 8+n+t.stored.at+t.stored.size
		t.Data, t.stored = data[from:to:to], extent{}
	}
	return st, nil
}

// headerSize reads a file's first 8 bytes.
func headerSize(start []byte, size int64) (int64, error) {
	if len(start) < 8 || size < 8 {
		return 0, refuseSafeTensors("%d bytes, want at least 8", size)
	}
	n := binary.LittleEndian.Uint64(start)
	if n > maxHeader || n > uint64(size-8) {
		return 0, refuseSafeTensors("header of %d bytes in a file of %d, limit %d", n, size, maxHeader)
	}
	return int64(n), nil
}

// parseHeader reads the header of a file with so many bytes of tensors. Each tensor's
// extent counts from the first of them.
func parseHeader(header []byte, body int64) (*SafeTensors, error) {
	bad := refuseSafeTensors
	if len(header) == 0 || header[0] != '{' || !utf8.Valid(header) {
		return nil, bad("header is not a JSON object in UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(header))
	if _, err := dec.Token(); err != nil { // '{'
		return nil, bad("header: %v", err)
	}
	st := &SafeTensors{}
	var list []RawTensor
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
		if begin < 0 || end < begin || end > body || end-begin != size {
			return nil, bad("tensor %q: offsets %d..%d do not hold %s%v (%d bytes) in %d bytes of data",
				name, begin, end, e.DType, e.Shape, size, body)
		}
		list = append(list, RawTensor{Name: name, DType: e.DType, Shape: e.Shape, stored: extent{at: begin, size: size}})
	}
	if _, err := dec.Token(); err != nil { // '}'
		return nil, bad("header: %v", err)
	}
	if rest := strings.TrimLeft(string(header[dec.InputOffset():]), " "); rest != "" {
		return nil, bad("%d bytes after the header's object", len(rest))
	}
	slices.SortStableFunc(list, func(a, b RawTensor) int {
		// An empty tensor comes before its neighbour.
		return cmp.Or(cmp.Compare(a.stored.at, b.stored.at), cmp.Compare(a.stored.size, b.stored.size))
	})
	at := int64(0)
	for _, t := range list {
		if t.stored.at != at {
			return nil, bad("tensor %q begins at %d, want %d: a gap or an overlap", t.Name, t.stored.at, at)
		}
		at += t.stored.size
	}
	if at != body {
		return nil, bad("%d bytes of data that no tensor holds", body-at)
	}
	st.Tensors = list
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
