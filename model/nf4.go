package model

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/starling-fl/starling/quant/nf4"
)

// NF4 in a safetensors file follows bitsandbytes: the weight's own name holds
// the packed codes, U8 [ceil(n/2), 1] with the first element in the high
// nibble; beside it lie .absmax F32 [ceil(n/64)], .quant_map F32 [16] and
// .quant_state.bitsandbytes__nf4, a U8 tensor of JSON with the true shape.
const (
	nf4Absmax = ".absmax"
	nf4Map    = ".quant_map"
	nf4State  = ".quant_state.bitsandbytes__nf4"

	maxNF4State = 1 << 16 // bytes
)

// nf4Parts are behind a tensor's name what it has in a file that holds it in NF4.
var nf4Parts = []string{"", nf4State, nf4Absmax, nf4Map}

type nf4Meta struct {
	QuantType string `json:"quant_type"`
	BlockSize int    `json:"blocksize"`
	DType     string `json:"dtype"`
	Shape     []int  `json:"shape"`
}

// AddNF4 appends a tensor quantized to NF4 in blocks of 64: 4.5 bits a value.
func (s *SafeTensors) AddNF4(name string, shape []int, data []float32) error {
	if Elements(shape) != len(data) {
		return fmt.Errorf("%w: tensor %q has %d values for shape %v", ErrSafetensors, name, len(data), shape)
	}
	codes, absmax := make([]byte, nf4.CodesLen(len(data))), make([]float32, nf4.Blocks(len(data), nf4.Block))
	if err := nf4.Encode(codes, absmax, data, nf4.Block); err != nil {
		return fmt.Errorf("%w: tensor %q: %w", ErrSafetensors, name, err)
	}
	meta, err := json.Marshal(nf4Meta{"nf4", nf4.Block, "float32", shape})
	if err != nil {
		return err
	}
	s.Tensors = append(s.Tensors,
		RawTensor{Name: name, DType: "U8", Shape: []int{len(codes), 1}, Data: codes},
		RawTensor{Name: name + nf4State, DType: "U8", Shape: []int{len(meta)}, Data: meta})
	if err := s.Add(name+nf4Absmax, "F32", []int{len(absmax)}, absmax); err != nil {
		return err
	}
	return s.Add(name+nf4Map, "F32", []int{len(nf4.Levels)}, nf4.Levels[:])
}

// nf4Group is a tensor stored in NF4 with what belongs to it.
type nf4Group struct {
	meta   nf4Meta
	codes  RawTensor
	absmax []float32
	levels [16]float32
}

// standard reports whether packing the decoded values again gives the same codes.
func (g *nf4Group) standard() bool {
	return g.meta.BlockSize == nf4.Block && g.levels == nf4.Levels
}

// nf4Group finds and checks an NF4 tensor; nil without an error where the
// tensor is not stored in NF4.
func (s *SafeTensors) nf4Group(name string) (*nf4Group, error) {
	raw, ok := s.Lookup(name)
	if !ok {
		return nil, fmt.Errorf("%w: no tensor %q", ErrSafetensors, name)
	}
	state, ok := s.Lookup(name + nf4State)
	if !ok {
		return nil, nil
	}
	bad := func(what string) (*nf4Group, error) {
		return nil, fmt.Errorf("%w: NF4 tensor %q: %s", ErrSafetensors, name, what)
	}
	g := &nf4Group{codes: raw, levels: nf4.Levels}
	if state.size() > maxNF4State {
		return bad(fmt.Sprintf("%d bytes of %s, limit %d", state.size(), nf4State, maxNF4State))
	}
	doc, err := state.bytes()
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(doc, &g.meta); err != nil {
		return bad(err.Error())
	}
	if g.meta.QuantType != "nf4" || g.meta.BlockSize < 1 || g.meta.BlockSize > 1<<16 {
		return bad(fmt.Sprintf("quant_type %q with blocks of %d", g.meta.QuantType, g.meta.BlockSize))
	}
	// The element count is bounded by the codes that are really there.
	n, err := byteSize(headerEntry{DType: "U8", Shape: g.meta.Shape})
	if err != nil || raw.DType != "U8" || raw.size() != (n+1)/2 {
		return bad(fmt.Sprintf("%d bytes of codes for shape %v", raw.size(), g.meta.Shape))
	}
	scales, ok := s.Lookup(name + nf4Absmax)
	if !ok {
		return bad("no " + nf4Absmax)
	}
	if g.absmax, err = scales.Float32(); err != nil {
		return bad(err.Error())
	}
	if blocks := (n + int64(g.meta.BlockSize) - 1) / int64(g.meta.BlockSize); int64(len(g.absmax)) != blocks {
		return bad(fmt.Sprintf("%d values of absmax for %d blocks", len(g.absmax), blocks))
	}
	if m, ok := s.Lookup(name + nf4Map); ok {
		levels, err := m.Float32()
		if err != nil || len(levels) != len(g.levels) {
			return bad("quant_map does not hold 16 floats")
		}
		g.levels = [16]float32(levels)
	}
	return g, nil
}

// floats is the tensor as plain F32 that decodes what is read of it.
func (g *nf4Group) floats() RawTensor {
	n := int64(Elements(g.meta.Shape))
	return RawTensor{Name: g.codes.Name, DType: "F32", Shape: g.meta.Shape, stored: extent{file: (*nf4Floats)(g), size: 4 * n}}
}

// nf4Floats reads a group as the floats that its codes stand for.
type nf4Floats nf4Group

// ReadAt is io.ReaderAt's. It decodes the values of which p holds a part.
func (f *nf4Floats) ReadAt(p []byte, off int64) (int, error) {
	n := int64(Elements(f.meta.Shape))
	size := min(int64(len(p)), 4*n-off)
	if size <= 0 {
		return 0, io.EOF
	}
	block := int64(f.meta.BlockSize)
	first := off / 4 / block // blocks
	to := min(n, ((off+size-1)/4/block+1)*block)
	from := first * block
	even := from &^ 1 // of odd blocks, half a byte belongs to the one before
	codes := make([]byte, (to-even+1)/2)
	if err := (*nf4Group)(f).codes.readAt(codes, even/2); err != nil {
		return 0, err
	}
	if even != from {
		for i := range codes {
			codes[i] <<= 4
			if i+1 < len(codes) {
				codes[i] |= codes[i+1] >> 4
			}
		}
	}
	values := make([]float32, to-from)
	nf4.DecodeLevels(values, codes, f.absmax[first:], f.meta.BlockSize, &f.levels)
	raw := make([]byte, 4*len(values))
	for i, v := range values {
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(v))
	}
	copy(p, raw[off-4*from:][:size])
	if size < int64(len(p)) {
		return int(size), io.EOF
	}
	return int(size), nil
}

// Tensor decodes a tensor by name into float32 with its true shape, whether it
// is stored as floats or as NF4.
func (s *SafeTensors) Tensor(name string) (Tensor, error) {
	g, err := s.nf4Group(name)
	if err != nil {
		return Tensor{}, err
	}
	if g == nil {
		raw, _ := s.Lookup(name)
		v, err := raw.Float32()
		return Tensor{name, raw.Shape, v}, err
	}
	codes, err := g.codes.bytes()
	if err != nil {
		return Tensor{}, err
	}
	out := make([]float32, Elements(g.meta.Shape))
	nf4.DecodeLevels(out, codes, g.absmax, g.meta.BlockSize, &g.levels)
	return Tensor{name, g.meta.Shape, out}, nil
}

// checkFinite refuses a tensor with a value that is not finite, or that is no
// float tensor, and returns its true shape. It decodes a chunk at a time.
func (s *SafeTensors) checkFinite(name string) ([]int, error) {
	g, err := s.nf4Group(name)
	if err != nil {
		return nil, err
	}
	finite := func(v []float32) error {
		for _, x := range v {
			if x-x != 0 {
				return fmt.Errorf("%w: tensor %q has a value %v", ErrSafetensors, name, x)
			}
		}
		return nil
	}
	if g != nil {
		for _, l := range g.levels {
			if !(l >= -1 && l <= 1) { // so that a finite scale gives finite values
				return nil, fmt.Errorf("%w: NF4 tensor %q has the level %v, want within -1..1", ErrSafetensors, name, l)
			}
		}
		return g.meta.Shape, finite(g.absmax)
	}
	raw, _ := s.Lookup(name)
	const chunk = 1 << 16 // bytes, a multiple of every width
	buf := make([]byte, min(chunk, raw.size()))
	for at := int64(0); ; at += chunk {
		data := buf[:min(chunk, raw.size()-at)]
		if err := raw.readAt(data, at); err != nil {
			return nil, err
		}
		v, err := decodeFloats(raw.DType, data)
		if err != nil {
			return nil, raw.named(err)
		}
		if err := finite(v); err != nil {
			return nil, err
		}
		if raw.size()-at <= chunk {
			return raw.Shape, nil
		}
	}
}
