package wasm

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/starling-fl/starling/quant/nf4"
)

// Format is the version of the program format that this package reads and writes.
const Format = 9

// SectionName is the name of the custom section that holds the Manifest.
const SectionName = "starling.program"

// align is the alignment of every tensor and region in memory, in bytes: one
// v128 register.
const align = 16

// Manifest describes a program: where its tensors are in memory and what its
// segments are. It travels in the module's custom section as Encode writes it; the
// names here are those that people are shown.
type Manifest struct {
	Format   int    `json:"format"`          // always Format
	Name     string `json:"name"`            // free text for people, e.g. "bert-tiny r8 b16 s32 adamw"
	Compiler string `json:"compiler"`        // what emitted it, with version
	Host     string `json:"host"`            // code shape: "wazero" or "v8"; runs on either, equal results
	FLOPs    uint64 `json:"flops,omitempty"` // floating-point operations of one step; 0: not recorded
	Fused    bool   `json:"fused,omitempty"` // products add a term with one rounding: see Product

	Arena    Region    `json:"arena"`              // scratch, packed panels included; the host keeps out
	Inputs   []Tensor  `json:"inputs,omitempty"`   // written by the host before a step
	Outputs  []Tensor  `json:"outputs,omitempty"`  // read by the host after a step
	State    []Tensor  `json:"state,omitempty"`    // read and, in place, replaced by a step
	Frozen   []Tensor  `json:"frozen,omitempty"`   // written once, before the first step
	Prepare  []Segment `json:"prepare,omitempty"`  // exports p0.., run once all frozen tensors are written
	Segments []Segment `json:"segments,omitempty"` // exports s0.., one step in order
	Repeats  []Repeat  `json:"repeats,omitempty"`  // which of them run more than once, in their order
	Products []Product `json:"products,omitempty"` // what some of the segments compute, in their order
}

// Region is a span of linear memory in bytes. Offset is a multiple of 16.
type Region struct {
	Offset uint32 `json:"offset"`
	Size   uint32 `json:"size"`
}

// DType is the element type of a tensor in memory.
type DType string

// The element types: little-endian, 4 bytes each.
const (
	Float32 DType = "f32"
	Int32   DType = "i32"
)

// Tensor is a dense row-major array in linear memory.
type Tensor struct {
	Name   string `json:"name"` // unique in the manifest
	DType  DType  `json:"dtype"`
	Shape  []int  `json:"shape"`         // empty: a scalar
	Offset uint32 `json:"offset"`        // bytes, a multiple of 16
	NF4    *NF4   `json:"nf4,omitempty"` // frozen f32 tensors may be in memory as 4-bit codes
}

// NF4 says that a tensor's memory holds NormalFloat-4 codes (QLoRA, Dettmers et
// al. 2023, section 3) instead of floats: see package nf4 for the layout.
type NF4 struct {
	Block  int    `json:"block"`  // values that share a scale; a multiple of 16
	Scales uint32 `json:"scales"` // offset of the scales, a multiple of 16
}

// Segment describes one exported function of a program.
type Segment struct {
	Name  string `json:"name,omitempty"`  // for profiles
	FLOPs uint64 `json:"flops,omitempty"` // 0: not recorded
	// When is the address of a byte of the arena: of a step, the segment runs where the byte
	// is not 0 when its turn comes, and is passed over else. 0: it always runs.
	When uint32 `json:"when,omitempty" cbor:",optional"`
}

// Len returns the number of elements of t.
func (t *Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// DataSize returns the bytes of t at Offset: 4 a value, or the NF4 codes.
func (t *Tensor) DataSize() uint64 {
	if t.NF4 == nil {
		return 4 * uint64(t.Len())
	}
	return uint64(nf4.CodesLen(t.Len()))
}

// ScalesSize returns the bytes of t's scales at NF4.Scales; 0 for plain tensors.
func (t *Tensor) ScalesSize() uint64 {
	if t.NF4 == nil {
		return 0
	}
	return 4 * uint64(nf4.Blocks(t.Len(), t.NF4.Block))
}

// validate checks everything that does not need the module: names, types,
// shapes, that regions are aligned and pairwise disjoint, and that products
// keep to them. It returns the step without repeats.
func (m *Manifest) validate() (step *Manifest, err error) {
	const where = "manifest"
	if m.Format != Format {
		return nil, refuse(where, "format %d, this loader reads %d", m.Format, Format)
	}
	for _, s := range []struct{ field, v string }{{"name", m.Name}, {"compiler", m.Compiler}, {"host", m.Host}} {
		if !plainText(s.v, 256, " ._/=+:,-") {
			return nil, refuse(where, "%s %.40q: letters, digits and \" ._/=+:,-\", at most 256", s.field, s.v)
		}
	}
	if len(m.Segments) == 0 {
		return nil, refuse(where, "no segments")
	}
	if n := max(len(m.Segments), len(m.Prepare)); n > maxSegments {
		return nil, refuse(where, "%d segments, limit %d", n, maxSegments)
	}
	for _, list := range [][]Segment{m.Prepare, m.Segments} {
		for _, s := range list {
			if !plainText(s.Name, 256, " ._/=+:,-") {
				return nil, refuse(where, "segment name %.40q: letters, digits and \" ._/=+:,-\", at most 256", s.Name)
			}
		}
	}
	if n := len(m.Inputs) + len(m.Outputs) + len(m.State) + len(m.Frozen); n > maxTensors {
		return nil, refuse(where, "%d tensors, limit %d", n, maxTensors)
	}
	if err := m.checkWhen(); err != nil {
		return nil, err
	}
	if err := m.checkRepeats(); err != nil {
		return nil, err
	}
	if m.Arena.Offset%align != 0 {
		return nil, refuse(where, "arena offset %d is not a multiple of %d", m.Arena.Offset, align)
	}
	seen := make(map[string]bool)
	for _, role := range m.roles() {
		for i := range role.tensors {
			t := &role.tensors[i]
			if err := t.validate(role.name); err != nil {
				return nil, err
			}
			if seen[t.Name] {
				return nil, refuse(where, "%s %q: the name is taken", role.name, t.Name)
			}
			seen[t.Name] = true
		}
	}
	memory, err := m.checkOverlap()
	if err != nil {
		return nil, err
	}
	if step, err = m.Unrolled(); err != nil {
		return nil, err
	}
	return step, step.checkProducts(memory)
}

// checkWhen refuses conditions outside the arena, which a step alone writes, and before a step.
func (m *Manifest) checkWhen() error {
	for i, s := range m.Prepare {
		if s.When != 0 {
			return refuse("segment "+segmentExport(true, i), "it has a condition, which only a step's have")
		}
	}
	for i, s := range m.Segments {
		if s.When != 0 && (s.When < m.Arena.Offset || uint64(s.When) >= uint64(m.Arena.Offset)+uint64(m.Arena.Size)) {
			return refuse("segment "+segmentExport(false, i), "its condition at %d is not in the arena", s.When)
		}
	}
	return nil
}

type roleList struct {
	name    string
	tensors []Tensor
}

func (m *Manifest) roles() [4]roleList {
	return [4]roleList{{"input", m.Inputs}, {"output", m.Outputs}, {"state", m.State}, {"frozen", m.Frozen}}
}

func (t *Tensor) validate(role string) error {
	const where = "manifest"
	if t.Name == "" || !plainText(t.Name, 128, "._/-") {
		return refuse(where, "%s name %.40q: letters, digits and \"._/-\", 1 to 128", role, t.Name)
	}
	if t.DType != Float32 && t.DType != Int32 {
		return refuse(where, "%s %q: dtype %.20q, known are f32 and i32", role, t.Name, string(t.DType))
	}
	if t.Shape == nil {
		return refuse(where, "%s %q: shape missing", role, t.Name)
	}
	if len(t.Shape) > maxRank {
		return refuse(where, "%s %q: rank %d, limit %d", role, t.Name, len(t.Shape), maxRank)
	}
	n := uint64(1)
	for _, d := range t.Shape {
		if d < 1 || d > maxElements {
			return refuse(where, "%s %q: dimension %d, want 1 to %d", role, t.Name, d, maxElements)
		}
		// Both factors are at most 2^28, so the product cannot wrap.
		if n *= uint64(d); n > maxElements {
			return refuse(where, "%s %q: more than %d elements", role, t.Name, maxElements)
		}
	}
	if t.Offset%align != 0 {
		return refuse(where, "%s %q: offset %d is not a multiple of %d", role, t.Name, t.Offset, align)
	}
	if t.NF4 == nil {
		return nil
	}
	switch q := t.NF4; {
	case role != "frozen" || t.DType != Float32 || len(t.Shape) == 0:
		return refuse(where, "%s %q: only frozen f32 tensors with an axis may be NF4", role, t.Name)
	case q.Block < 16 || q.Block > 4096 || q.Block%16 != 0:
		return refuse(where, "%s %q: NF4 block %d, want a multiple of 16 up to 4096", role, t.Name, q.Block)
	case q.Scales%align != 0:
		return refuse(where, "%s %q: scales offset %d is not a multiple of %d", role, t.Name, q.Scales, align)
	}
	return nil
}

// span is a piece of memory, in bytes.
type span struct {
	role, name string
	from, to   uint64
	holds      DType // plain values of this type; anyType: of any
}

const anyType DType = "any"

func (s span) String() string { return strings.TrimSpace(s.role + " " + s.name) }

func (m *Manifest) spans() []span {
	arena := uint64(m.Arena.Offset)
	spans := []span{{role: "arena", from: arena, to: arena + uint64(m.Arena.Size), holds: anyType}}
	for _, role := range m.roles() {
		for i := range role.tensors {
			t := &role.tensors[i]
			o := uint64(t.Offset)
			s := span{role.name, t.Name, o, o + t.DataSize(), t.DType}
			if t.NF4 != nil {
				s.holds = ""
			}
			spans = append(spans, s)
			if t.NF4 != nil {
				o = uint64(t.NF4.Scales)
				spans = append(spans, span{role: role.name, name: t.Name + " scales", from: o, to: o + t.ScalesSize()})
			}
		}
	}
	return spans
}

// checkOverlap refuses tensors that share memory with each other or the arena. It
// returns the memory in use, by address.
func (m *Manifest) checkOverlap() (declared, error) {
	spans := m.spans()
	sort.Slice(spans, func(i, j int) bool { return spans[i].from < spans[j].from })
	spans = slices.DeleteFunc(spans, func(s span) bool { return s.from == s.to })
	for i := range len(spans) - 1 {
		if spans[i+1].from < spans[i].to {
			return nil, refuse("manifest", "%s and %s overlap", spans[i], spans[i+1])
		}
	}
	return spans, nil
}

// checkMemory refuses tensors outside a memory of size bytes.
func (m *Manifest) checkMemory(size uint64) error {
	for _, s := range m.spans() {
		if s.to > size {
			return refuse("manifest", "%s ends at %d, memory at %d", s, s.to, size)
		}
	}
	return nil
}

// plainText reports whether s is at most limit bytes of ASCII letters, digits and
// the extra characters.
func plainText(s string, limit int, extra string) bool {
	if len(s) > limit {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		default:
			if !bytes.ContainsRune([]byte(extra), rune(c)) {
				return false
			}
		}
	}
	return true
}

// segmentExport names the i-th segment's export: "p3" for prepare, "s3" for a step.
func segmentExport(prepare bool, i int) string {
	if prepare {
		return fmt.Sprintf("p%d", i)
	}
	return fmt.Sprintf("s%d", i)
}
