package wasm

import (
	"bytes"
	"fmt"

	"github.com/starling-fl/starling/internal/protocol/cbor"
)

// manifestCode is a manifest as its section has it: CBOR (RFC 8949), core deterministic, in
// arrays. A model's layers multiply the same shapes at other addresses, and products are
// most of a manifest: so a shape stands once, and a product says which is its own.
type manifestCode struct {
	_        struct{} `cbor:",toarray"`
	Format   int
	Name     string
	Compiler string
	Host     string
	FLOPs    uint64
	Fused    bool
	Arena    [2]uint32 // offset, size
	Inputs   []seriesCode
	Outputs  []seriesCode
	State    []seriesCode
	Frozen   []seriesCode
	Prepare  []Segment
	Segments []Segment
	Repeats  []Repeat
	Nests    []nest // in the order of their first products
	Products []productCode
}

type tensorCode struct {
	_      struct{} `cbor:",toarray"`
	Name   string
	DType  DType
	Shape  []int
	Offset uint32
	NF4    []uint32 // none, or block and scales
	Moves  []int64  // none, or in a series of rounds the steps of the offset and of the scales
}

// nest is a product's batch, rows, columns and terms.
type nest [4][]Axis

type productCode struct {
	_       struct{} `cbor:",toarray"`
	First   int
	Count   int
	A, B, C uint32
	NF4     int
	Nest    int
	Parts   []int
	Moves   []int64 // none, or two each of A, B, C and NF4
}

// manifestForm bounds lists by the longest: see TestManifestAllocations.
var manifestForm = cbor.Codec{MaxArray: maxSegments, NilEmpty: true}

// Encode returns the only encoding of m, or why m is not valid.
func (m *Manifest) Encode() ([]byte, error) {
	if _, err := m.validate(); err != nil {
		return nil, err
	}
	return m.marshal()
}

func (m *Manifest) marshal() ([]byte, error) {
	e := manifestCode{
		Format: m.Format, Name: m.Name, Compiler: m.Compiler, Host: m.Host, FLOPs: m.FLOPs, Fused: m.Fused,
		Arena:  [2]uint32{m.Arena.Offset, m.Arena.Size},
		Inputs: seriesOf(m.Inputs), Outputs: seriesOf(m.Outputs), State: seriesOf(m.State), Frozen: seriesOf(m.Frozen),
		Prepare: m.Prepare, Segments: m.Segments, Repeats: m.Repeats,
	}
	known := make(map[string]int)
	for _, p := range m.Products {
		shape := nest(p.groups())
		key, err := manifestForm.Append(nil, shape)
		if err != nil {
			return nil, fmt.Errorf("wasm: manifest: %w", err)
		}
		at, ok := known[string(key)]
		if !ok {
			at = len(e.Nests)
			known[string(key)] = at
			e.Nests = append(e.Nests, shape)
		}
		e.Products = append(e.Products, productCode{First: p.First, Count: p.Count, A: p.A, B: p.B, C: p.C, NF4: p.NF4, Nest: at, Parts: p.Parts, Moves: p.Moves.numbers()})
	}
	payload, err := manifestForm.Append(nil, e)
	if err != nil {
		return nil, fmt.Errorf("wasm: manifest: %w", err)
	}
	return payload, nil
}

// AppendSection appends m as a whole custom section (id, size, name, payload)
// of a module.
func (m *Manifest) AppendSection(dst []byte) ([]byte, error) {
	payload, err := m.Encode()
	if err != nil {
		return nil, err
	}
	if len(payload) > maxManifestBytes {
		return nil, refuse("manifest", "encoding of %d bytes, limit %d", len(payload), maxManifestBytes)
	}
	body := appendU32(nil, uint32(len(SectionName)))
	body = append(body, SectionName...)
	dst = append(dst, sectionCustom)
	dst = appendU32(dst, uint32(len(body)+len(payload)))
	dst = append(dst, body...)
	return append(dst, payload...), nil
}

// DecodeManifest reads the payload of a "starling.program" section. It accepts
// exactly what Encode writes: other spellings of the same manifest are refused.
func DecodeManifest(payload []byte) (*Manifest, error) {
	m, _, err := decodeManifest(payload)
	return m, err
}

// decodeManifest gives the step without repeats, too.
func decodeManifest(payload []byte) (m, step *Manifest, err error) {
	if len(payload) > maxManifestBytes {
		return nil, nil, refuse("manifest", "%d bytes, limit %d", len(payload), maxManifestBytes)
	}
	if len(payload) > 0 && payload[0] == '{' {
		return nil, nil, refuse("manifest", "JSON, as format 6 and older have it; this loader reads %d", Format)
	}
	var e manifestCode
	if err := manifestForm.Unmarshal(payload, &e); err != nil {
		return nil, nil, refuse("manifest", "%v", err)
	}
	if m, err = e.manifest(); err != nil {
		return nil, nil, err
	}
	if step, err = m.validate(); err != nil {
		return nil, nil, err
	}
	again, err := m.marshal()
	if err != nil {
		return nil, nil, refuse("manifest", "%v", err)
	}
	if !bytes.Equal(again, payload) {
		return nil, nil, refuse("manifest", "not in canonical encoding")
	}
	return m, step, nil
}

// manifest is what e says. Products of one shape share its axes.
func (e *manifestCode) manifest() (*Manifest, error) {
	m := &Manifest{
		Format: e.Format, Name: e.Name, Compiler: e.Compiler, Host: e.Host, FLOPs: e.FLOPs, Fused: e.Fused,
		Arena: Region{Offset: e.Arena[0], Size: e.Arena[1]}, Prepare: e.Prepare, Segments: e.Segments, Repeats: orNil(e.Repeats),
	}
	left := maxTensors
	for _, l := range []struct {
		to   *[]Tensor
		from []seriesCode
	}{{&m.Inputs, e.Inputs}, {&m.Outputs, e.Outputs}, {&m.State, e.State}, {&m.Frozen, e.Frozen}} {
		list, err := tensorsOf(l.from, &left)
		if err != nil {
			return nil, err
		}
		*l.to = list
	}
	for i, c := range e.Products {
		if c.Nest < 0 || c.Nest >= len(e.Nests) {
			return nil, refuse("manifest", "product %d: shape %d of %d", i, c.Nest, len(e.Nests))
		}
		moves, err := movesOf(c.Moves)
		if err != nil {
			return nil, refuse("manifest", "product %d: %v", i, err)
		}
		n := e.Nests[c.Nest]
		m.Products = append(m.Products, Product{First: c.First, Count: c.Count, A: c.A, B: c.B, C: c.C, NF4: c.NF4,
			Batch: orNil(n[0]), Rows: orNil(n[1]), Cols: orNil(n[2]), Terms: orNil(n[3]), Parts: orNil(c.Parts), Moves: moves})
	}
	return m, nil
}

// numbers is m as a section has it.
func (m *Moves) numbers() []int64 {
	if m == nil {
		return nil
	}
	return []int64{m.A.Step, m.A.Odd, m.B.Step, m.B.Odd, m.C.Step, m.C.Odd, m.NF4.Step, m.NF4.Odd}
}

func movesOf(n []int64) (*Moves, error) {
	switch len(n) {
	case 0:
		return nil, nil
	case 8:
		return &Moves{Move{n[0], n[1]}, Move{n[2], n[3]}, Move{n[4], n[5]}, Move{n[6], n[7]}}, nil
	}
	return nil, fmt.Errorf("%d numbers of how it moves, want none or 8", len(n))
}

// orNil is a list as its product has it before it is encoded: none is nil.
func orNil[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}
